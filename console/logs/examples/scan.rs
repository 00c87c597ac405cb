//! How fast is the scan? `scan 500 made.log rules.txt` makes a log of 500 MB with its faults (and, for a comparison with
//! `sed -E 's/\(\?P<[a-z_]+>/(?:/g' rules.txt | rg -c -j1 -a -f - made.log`, writes it and the expressions down), scans it and prints what was found and the CPU time it took.

#![expect(clippy::disallowed_methods, reason = "an example measures, and writes what is to be measured by others")]

use std::error::Error;
use std::fmt::Write as _;

use muster_logs::{Kind, Rules, Scan, Stream};
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};

const MB: usize = 1_000_000;
/// One line in this many is an example of a rule.
const RARE: usize = 200;

fn main() -> Result<(), Box<dyn Error>> {
    let mut args = std::env::args().skip(1);
    let mb: usize = args.next().map_or(Ok(500), |mb| mb.parse())?;
    let rules = Rules::built_in()?;
    let log = made(&rules, mb * MB);
    if let (Some(log_file), Some(rule_file)) = (args.next(), args.next()) {
        std::fs::write(log_file, &log)?;
        std::fs::write(rule_file, rules.expressions().collect::<Vec<_>>().join("\n"))?;
    }
    let (mut hits, mut causes) = (0_u64, 0_u64);
    let before = cpu_s()?;
    let mut scan = Scan::new(&rules, Stream::Any);
    let mut count = |hit: &muster_logs::Hit<'_>| {
        hits += 1;
        causes += u64::from(hit.rule.kind <= Kind::Distributed);
    };
    for piece in log.as_bytes().chunks(MB) {
        scan.feed(piece, &mut count);
    }
    let scanned = scan.finish(&mut count);
    let took = cpu_s()? - before;
    let (lines, bytes) = (scanned.lines, scanned.bytes as f64 / MB as f64);
    println!(
        "{lines} lines, {hits} known, {causes} of them may be a cause; {took:.2} s of CPU, {:.0} MB/s",
        bytes / took
    );
    Ok(())
}

/// What a job prints, for the most part of no interest to anybody, with examples of rules strewn in.
fn made(rules: &Rules, bytes: usize) -> String {
    let mut chance = SmallRng::seed_from_u64(7);
    let mut pick = |of: usize| chance.random_range(..of);
    let examples: Vec<_> = rules.iter().flat_map(|rule| &rule.examples).collect();
    let mut log = String::with_capacity(bytes + 1024);
    let mut step = 0_u64;
    while log.len() < bytes {
        step += 1;
        let _ = match pick(RARE) {
            0 => writeln!(log, "{}", examples[pick(examples.len())]),
            1..=20 => writeln!(
                log,
                "n{}:{}:{} [{}] NCCL INFO Channel {:02}/0 : {}[0] -> {}[1] via P2P/CUMEM/read",
                pick(64),
                pick(90_000),
                pick(90_000),
                pick(8),
                pick(32),
                pick(8),
                pick(8)
            ),
            _ => writeln!(
                log,
                "2026-01-06 20:12:28,{:03} INFO [trainer.py:{}] rank {} batch {step} tokens {} queue depth {}, nothing to report",
                pick(1000),
                pick(900),
                pick(512),
                pick(1 << 20),
                pick(64)
            ),
        };
    }
    log
}

/// Processor time of this process, user and system, from the kernel.
fn cpu_s() -> Result<f64, Box<dyn Error>> {
    let stat = std::fs::read_to_string("/proc/self/stat")?;
    let after = stat.rsplit_once(')').ok_or("no name in /proc/self/stat")?.1;
    let ticks: Vec<&str> = after.split_whitespace().collect();
    let of = |at: usize| ticks.get(at).ok_or("too few fields in /proc/self/stat");
    // Hundredths of a second on every Linux that Rust runs on.
    Ok((of(11)?.parse::<f64>()? + of(12)?.parse::<f64>()?) / 100.0)
}
