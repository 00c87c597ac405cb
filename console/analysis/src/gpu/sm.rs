//! Multiprocessors against each other: wrong by majority of digests, slow by cycles.

use std::collections::{BTreeMap, BTreeSet};

use super::{Finding, Row, Share};

/// Cycles over the median of the others from which on a multiprocessor is slow. Healthy ones agree to a tenth of a
/// percent on the same instructions, whatever the clock does.
pub const SLOW: f64 = 1.005;
/// Multiprocessors, or GPUs, without which nobody is odd.
const COMPANY: usize = 3;

/// The value that more than half have.
fn majority(values: impl Iterator<Item = u32>) -> Option<u32> {
    let mut counts: BTreeMap<u32, usize> = BTreeMap::new();
    let mut all = 0;
    for value in values {
        *counts.entry(value).or_default() += 1;
        all += 1;
    }
    counts.into_iter().find(|(_, count)| all >= COMPANY && 2 * count > all).map(|(value, _)| value)
}

/// What each GPU as a whole says of the same work: by unit, rounds and seed, pairs of GPU and digest.
type Works<'a> = BTreeMap<(&'a str, u32, u32), Vec<(u32, u32)>>;

#[derive(Default)]
struct Wrong {
    units: BTreeSet<String>,
    runs: usize,
    agree: usize,
}

/// Multiprocessors, and whole GPUs, whose digests differ from the majority of their peers. Rows without a majority
/// accuse the GPU and no part of it.
#[must_use]
pub fn wrong(rows: &[Row]) -> Vec<Finding> {
    let mut sms: BTreeMap<(u32, u32), Wrong> = BTreeMap::new();
    let mut torn = BTreeSet::new();
    let mut works = Works::new();
    for row in rows {
        let Some(right) = majority(row.shares.iter().map(|share| share.digest)) else {
            if row.shares.iter().any(|share| share.digest != row.shares[0].digest) {
                torn.insert((row.gpu, row.unit.clone()));
            }
            continue;
        };
        works.entry((&row.unit, row.rounds, row.seed)).or_default().push((row.gpu, right));
        let odd: Vec<&Share> = row.shares.iter().filter(|share| share.digest != right).collect();
        for share in &odd {
            let entry = sms.entry((row.gpu, share.sm)).or_default();
            entry.units.insert(row.unit.clone());
            entry.runs += 1;
            entry.agree = row.shares.len() - odd.len();
        }
    }
    let all =
        |gpu: u32, units: &BTreeSet<String>| rows.iter().filter(|r| r.gpu == gpu && units.contains(&r.unit)).count();
    let parts = sms.into_iter().map(|((gpu, sm), found)| Finding::WrongSm {
        gpu,
        sm,
        runs: (found.runs, all(gpu, &found.units)),
        units: found.units.into_iter().collect(),
        agree: found.agree,
    });
    let torn = torn.into_iter().map(|(gpu, unit)| Finding::Disagree { gpu, unit });
    parts.chain(torn).chain(whole(&works)).collect()
}

/// GPUs on which everything is wrong alike.
fn whole(works: &Works<'_>) -> Vec<Finding> {
    let mut found: BTreeMap<(u32, &str), usize> = BTreeMap::new();
    for ((unit, ..), said) in works {
        let Some(right) = majority(said.iter().map(|(_, digest)| *digest)) else { continue };
        let agree = said.iter().filter(|(_, digest)| *digest == right).count();
        for (gpu, _) in said.iter().filter(|(_, digest)| *digest != right) {
            found.insert((*gpu, unit), agree);
        }
    }
    found
        .into_iter()
        .map(|((gpu, unit), agree)| Finding::WrongGpu { gpu, unit: unit.to_owned(), agree, nodes: 1, whole: false })
        .collect()
}

/// Multiprocessors that take more cycles than [`SLOW`] times the median of their peers, in the best of all runs.
#[must_use]
pub fn slow(rows: &[Row]) -> Vec<Finding> {
    let mut best: BTreeMap<(u32, &str, u32), BTreeMap<u32, u64>> = BTreeMap::new();
    for row in rows {
        let sms = best.entry((row.gpu, &row.unit, row.rounds)).or_default();
        for share in &row.shares {
            let least = sms.entry(share.sm).or_insert(share.cycles);
            *least = share.cycles.min(*least);
        }
    }
    let mut worst: BTreeMap<(u32, u32), Finding> = BTreeMap::new();
    for ((gpu, unit, _), sms) in best {
        let mut sorted: Vec<u64> = sms.values().copied().collect();
        sorted.sort_unstable();
        let middle = sorted.get(sorted.len().saturating_sub(1) / 2).copied().unwrap_or(0);
        if sorted.len() < COMPANY || middle == 0 {
            continue;
        }
        for (sm, cycles) in sms {
            let ratio = cycles as f64 / middle as f64;
            let known = worst
                .get(&(gpu, sm))
                .is_some_and(|known| matches!(known, Finding::SlowSm { ratio: r, .. } if *r >= ratio));
            if ratio > SLOW && !known {
                let peers = sorted.len() - 1;
                worst.insert((gpu, sm), Finding::SlowSm { gpu, sm, unit: unit.to_owned(), ratio, peers });
            }
        }
    }
    worst.into_values().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(gpu: u32, seed: u32, change: impl Fn(&mut Share)) -> Row {
        let mut shares: Vec<Share> =
            (0..132).map(|sm| Share { sm, digest: 0xabc0 + seed, cycles: 100_000 + u64::from(sm % 7) * 10 }).collect();
        shares.iter_mut().for_each(change);
        Row { gpu, unit: "ffma".into(), rounds: 8, seed, shares }
    }

    #[test]
    fn a_healthy_gpu_has_no_finding() {
        let rows: Vec<Row> = (0..4).map(|seed| row(0, seed, |_| {})).collect();
        assert_eq!(wrong(&rows), []);
        assert_eq!(slow(&rows), []);
    }

    #[test]
    fn the_multiprocessor_that_is_wrong_once_is_named_with_its_count() {
        let rows = [row(3, 0, |_| {}), row(3, 1, |s| s.digest ^= u32::from(s.sm == 77))];
        let found = wrong(&rows);
        let [Finding::WrongSm { gpu: 3, sm: 77, runs: (1, 2), agree: 131, .. }] = &found[..] else {
            panic!("{found:?}")
        };
        let text = found[0].to_string();
        assert_eq!(text, "GPU 3: multiprocessor 77 computes wrong bits (ffma: 1 of 2 runs), 131 others agree");
    }

    #[test]
    fn two_wrong_ones_are_both_named_and_half_are_none() {
        let found = wrong(&[row(0, 0, |s| s.digest ^= u32::from(s.sm == 1 || s.sm == 9))]);
        assert_eq!(found.len(), 2);
        let found = wrong(&[row(0, 0, |s| s.digest ^= s.sm & 1)]);
        assert_eq!(found, [Finding::Disagree { gpu: 0, unit: "ffma".into() }]);
    }

    #[test]
    fn a_gpu_that_is_wrong_everywhere_alike_is_found_by_its_peers() {
        let rows: Vec<Row> = (0..8).map(|gpu| row(gpu, 1, |s| s.digest ^= u32::from(gpu == 5))).collect();
        assert_eq!(wrong(&rows), [Finding::WrongGpu { gpu: 5, unit: "ffma".into(), agree: 7, nodes: 1, whole: false }]);
        assert_eq!(wrong(&rows[4..6]), [], "two GPUs that disagree accuse nobody");
    }

    #[test]
    fn slowness_counts_from_half_a_percent_and_in_the_best_run() {
        let slowed = |percent: u64| row(2, 0, |s| s.cycles += if s.sm == 40 { s.cycles * percent / 1000 } else { 0 });
        assert_eq!(slow(&[slowed(4)]), []);
        let found = slow(&[slowed(12)]);
        let [Finding::SlowSm { gpu: 2, sm: 40, ratio, peers: 131, .. }] = &found[..] else { panic!("{found:?}") };
        assert!((ratio - 1.012).abs() < 1e-3, "{ratio}");
        assert_eq!(slow(&[slowed(12), row(2, 1, |_| {})]), [], "slow once is not slow");
    }

    #[test]
    fn rows_are_read_as_they_are_written_and_anything_else_is_nothing() {
        let parsed = Row::parse("gpu.3.sm.bf16-mma.64.1", "0:9f3a12bc:51234 1:a:7").unwrap();
        assert_eq!((parsed.gpu, parsed.rounds, parsed.seed, parsed.shares.len()), (3, 64, 1, 2));
        assert_eq!(parsed.shares[0], Share { sm: 0, digest: 0x9f3a_12bc, cycles: 51_234 });
        for (key, text) in
            [("gpu.3.sm.x.1", "0:1:2"), ("gpu.3.sm.x.1.1", "0:1"), ("gpu.3.sm.x.1.1", "0:zz:3"), ("", "")]
        {
            assert_eq!(Row::parse(key, text), None, "{key} {text}");
        }
        let page = super::super::bad_page("gpu.1.page.9", "passes=4 bits=00000010 first=44 words=1").unwrap();
        assert_eq!(page.to_string(), "GPU 1: page 9 of memory does not keep bit 4 of word 44 (4 passes)");
        assert_eq!(super::super::bad_page("gpu.1.pages", "checked=3"), None);
    }
}
