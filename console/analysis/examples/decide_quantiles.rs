//! Prints `src/decide/law.rs`: how far healthy nodes lie from their peers' centre, in spreads of the peers kept, by
//! simulation of normal values; the law `b * t` that has the same quantiles at one in a thousand and in a million.
//!
//! `cargo run --release -p muster-analysis --example decide_quantiles > console/analysis/src/decide/law.rs`

use muster_analysis::Chance;
use muster_analysis::decide::calibrate;

const SIZES: [usize; 18] = [4, 5, 6, 7, 8, 9, 10, 11, 12, 14, 16, 20, 24, 32, 48, 64, 128, 256];

fn main() {
    println!(
        "//! Made by `cargo run --release -p muster-analysis --example decide_quantiles`; see [`super::quantile`]."
    );
    println!("\n/// Nodes, degrees of freedom, factor.\n#[rustfmt::skip]");
    println!("pub(super) const LAW: [(f64, f64, f64); {}] = [", SIZES.len());
    for nodes in SIZES {
        let mut chance = Chance::branch(1, nodes as u64);
        let draws = if nodes <= 24 { 200_000 } else { 60_000 };
        let (df, factor) = calibrate::law(nodes, draws, &mut chance);
        println!("    ({nodes}.0, {df:.4}, {factor:.5}),");
    }
    println!("];");
}
