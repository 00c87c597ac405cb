//! How often sound matrices accuse or warn, and how often an accusation is right: made matrices by the thousand.
//!
//! `cargo run -p muster-analysis --example network_campaign -- [SEED] [DRAWS] [clean|faulty|both]`

#[path = "../tests/network/made.rs"]
mod network_made;

use std::collections::BTreeMap;

use muster_analysis::Params;
use muster_analysis::network::localise;
use muster_analysis::network::localise::SURE;
use network_made::{Made, Tail};
use statrs::distribution::{Beta, ContinuousCDF};

/// Clopper and Pearson's 95 % interval of `k` in `n`.
fn interval(k: u64, n: u64) -> [f64; 2] {
    let quantile = |a: u64, b: u64, p: f64| Beta::new(a as f64, b as f64).map_or(f64::NAN, |d| d.inverse_cdf(p));
    let low = if k == 0 { 0.0 } else { quantile(k, n - k + 1, 0.025) };
    let high = if k == n { 1.0 } else { quantile(k + 1, n - k, 0.975) };
    [low, high]
}

#[derive(Default)]
struct Count {
    draws: u64,
    accused: u64,
    warned: u64,
    open: u64,
}

fn shown(what: &str, count: &Count) {
    let rate = |k: u64| {
        let [low, high] = interval(k, count.draws);
        format!("{k:4} ({:.2e}, 95 % {low:.1e} to {high:.1e})", k as f64 / count.draws as f64)
    };
    println!(
        "{what:>16}: {:6} draws, accused {}, warned {}, undecided {}",
        count.draws,
        rate(count.accused),
        rate(count.warned),
        rate(count.open)
    );
}

fn clean(first: u64, draws: u64, verbose: bool) {
    let mut counts: BTreeMap<String, Count> = BTreeMap::new();
    for seed in first..first + draws {
        let made = Made::clean(seed);
        let found = localise(&made.matrix(seed), &made.topology(), &Params::default());
        let accused = found.suspects.iter().any(|s| s.confidence >= SURE);
        let warned = !found.warnings.is_empty();
        let open = !found.undecided.is_empty() || found.suspects.iter().any(|s| s.confidence < SURE);
        if verbose && (accused || warned || open) {
            println!("{seed} {made:?}\n  {:?}\n  {:?}\n  {:?}", found.suspects, found.warnings, found.undecided);
        }
        let size = match made.nodes {
            ..=4 => "3 to 4 nodes",
            5..=8 => "5 to 8 nodes",
            9..=32 => "10 to 32 nodes",
            _ => "48 to 128 nodes",
        };
        let tail = format!("{:?}", made.tail);
        let levels = if made.far < 1.0 { "hop levels" } else { "one level" };
        for key in ["all", size, &tail, levels, if made.given { "topology" } else { "no topology" }] {
            let count = counts.entry(key.to_owned()).or_default();
            count.draws += 1;
            count.accused += u64::from(accused);
            count.warned += u64::from(warned);
            count.open += u64::from(open);
        }
    }
    println!("sound matrices, seeds {first} to {}", first + draws - 1);
    counts.iter().for_each(|(what, count)| shown(what, count));
}

fn faulty(first: u64, draws: u64, verbose: bool) {
    let mut bins: BTreeMap<u32, (u64, u64)> = BTreeMap::new();
    let mut warnings = (0_u64, 0_u64);
    let (mut planted, mut met) = (0_u64, 0_u64);
    let mut silent = 0_u64;
    for seed in first..first + draws {
        let made = Made::faulty(seed);
        let found = localise(&made.matrix(seed), &made.topology(), &Params::default());
        let guilty = made.guilty();
        let right = |element: &String| guilty.contains(element);
        for suspect in &found.suspects {
            let bin = bins.entry((suspect.confidence * 20.0).floor().min(19.0) as u32).or_default();
            bin.0 += u64::from(right(&suspect.element));
            bin.1 += 1;
            if verbose && suspect.confidence >= SURE && !right(&suspect.element) {
                println!("{seed} {made:?}\n  {suspect:?}\n  {:?}", found.undecided);
            }
        }
        warnings.0 += found.warnings.iter().filter(|w| right(&w.element)).count() as u64;
        warnings.1 += found.warnings.len() as u64;
        if verbose && !found.warnings.iter().all(|w| right(&w.element)) {
            println!("{seed} {made:?}\n  warnings {:?}\n {:?}", found.warnings, found.suspects);
        }
        planted += made.faults.len() as u64;
        let sure = |s: &&muster_analysis::network::localise::Suspect| s.confidence >= SURE && right(&s.element);
        met += found.suspects.iter().filter(sure).count().min(made.faults.len()) as u64;
        silent += u64::from(found.suspects.is_empty() && found.undecided.is_empty() && found.warnings.is_empty());
    }
    println!("matrices with one or two faults at 30 to 90 %, seeds {first} to {}", first + draws - 1);
    for (bin, (right, of)) in bins {
        let [low, high] = interval(right, of);
        let from = f64::from(bin) / 20.0;
        println!(
            "  confidence {from:.2} to {:.2}: {right} of {of} right ({:.3}, 95 % {low:.3} to {high:.3})",
            from + 0.05,
            right as f64 / of as f64
        );
    }
    println!("  warnings: {} of {} name a planted fault", warnings.0, warnings.1);
    println!("  {met} of {planted} faults accused, {silent} of {draws} matrices say nothing");
}

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let number = |at: usize, other: u64| args.get(at).and_then(|a| a.parse().ok()).unwrap_or(other);
    let which = args.get(2).map_or("both", String::as_str);
    let verbose = args.iter().any(|a| a == "-v");
    let (first, draws) = (number(0, 1), number(1, 4_000));
    assert!(Tail::Normal != Tail::Mixed);
    if which != "faulty" {
        clean(first, draws, verbose);
    }
    if which != "clean" {
        faulty(first, draws, verbose);
    }
}
