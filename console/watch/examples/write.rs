//! Writes recordings of the second simulator with their truth, for `muster watch evaluate`.
//!
//! `cargo run -p muster-watch --example write -- FOLDER FIRST_SEED SEEDS` writes one of each of its 15 kinds for each seed. Tests use seeds below 100, and
//! 600 recordings of seeds below 40 have been looked at.

#![expect(clippy::unwrap_used, reason = "an example that cannot go on stops where it is")]
#![expect(clippy::disallowed_methods, reason = "writes files, which the library never does")]

#[path = "../tests/detector/sim.rs"]
mod sim;

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;

use flate2::Compression;
use flate2::write::GzEncoder;
use serde_json::json;
use sim::{Kind, METRICS, Made, START, made};

fn main() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [folder, first, seeds] = &words[..] else { panic!("FOLDER FIRST_SEED SEEDS") };
    let (first, seeds): (u64, u64) = (first.parse().unwrap(), seeds.parse().unwrap());
    let folder = Path::new(folder);
    std::fs::create_dir_all(folder).unwrap();
    for seed in first..first + seeds {
        for kind in Kind::ALL {
            write(folder, &made(kind, seed), seed);
        }
    }
}

fn write(folder: &Path, made: &Made, seed: u64) {
    let name = format!("{seed:06}-{:?}", made.kind).to_lowercase();
    let file = BufWriter::new(File::create(folder.join(format!("{name}.csv.gz"))).unwrap());
    let mut out = GzEncoder::new(file, Compression::fast());
    writeln!(out, "time_s,node,metric,value").unwrap();
    for &(time, node, metric, value) in &made.ticks {
        writeln!(out, "{time:.2},n{node},{},{value:.5}", METRICS[metric].0).unwrap();
    }
    out.finish().unwrap().flush().unwrap();
    let fault = |fault: &sim::Fault| {
        let (onset_s, end_s) = (START + fault.onset_s, START + fault.end_s);
        json!({"node": format!("n{}", fault.node), "onset_s": onset_s, "end_s": end_s})
    };
    let faulty: Vec<_> = made.faults.iter().map(fault).collect();
    let kind = format!("{:?}", made.kind).to_lowercase();
    let truth = json!({"schema": "muster.watch.truth", "version": 1, "kind": kind, "seed": seed,
        "duration_s": made.seconds, "faulty": faulty});
    std::fs::write(folder.join(format!("{name}.truth.json")), truth.to_string()).unwrap();
}
