//! Topologies: Slurm's, ibnetdiscover's, a CSV.
#![no_main]

use libfuzzer_sys::fuzz_target;
use muster_analysis::network::topology::{from_csv, ibnetdiscover, slurm};
use muster_fleet::hostlist::expand;

fuzz_target!(|text: &str| {
    let _ = (from_csv(text), slurm(text, expand), ibnetdiscover(text));
});
