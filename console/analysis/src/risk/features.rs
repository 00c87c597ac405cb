//! What does a node's past say at an hour? The status features of SuperBench (ATC'24, section 4.2), each strictly
//! from the past, as `ln(1 + value)`, and capped, so that a longer log does not shift them.

use super::history::{Check, Past, Window};
use super::{BadTable, Category, History, Table};

/// Names of the features of [`status`], without those of validations.
const GENERAL: [&str; 8] = ["n_all", "up_h", "since_last_h", "mtbi_all_h", "last_gap_h", "repair_h", "n_7d", "n_30d"];
const CHECKED: [&str; 3] = ["since_full_h", "margin", "failed"];

/// How pasts become rows.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sampling {
    /// Hours between two rows of a node.
    pub every_h: f64,
    /// Longest time to an incident that is told apart, and cap of every feature in hours.
    pub cap_h: f64,
    /// Whether to add the features of validations.
    pub checks: bool,
}

impl Default for Sampling {
    fn default() -> Self {
        Self { every_h: 24.0, cap_h: 2400.0, checks: false }
    }
}

/// Names of the features, in order.
#[must_use]
pub fn feature_names(checks: bool) -> Vec<String> {
    let mut names: Vec<String> = GENERAL.iter().map(|n| (*n).to_owned()).collect();
    for category in Category::ALL {
        names.extend(["n", "since", "mtbi"].map(|what| format!("{what}_{}", category.name())));
    }
    if checks {
        names.extend(CHECKED.map(str::to_owned));
    }
    names
}

/// Features of a node at `at_h`; none while it is down or before the window. Reads nothing that begins after
/// `at_h`.
#[must_use]
pub fn status(past: &Past, window: Window, at_h: f64, sampling: &Sampling) -> Option<Vec<f64>> {
    if at_h < window.start_h || past.down(at_h) {
        return None;
    }
    let known = past.until(at_h);
    let age = at_h - window.start_h;
    let mut down = 0.0;
    let mut covered = window.start_h;
    for o in known {
        // Outages may overlap; each hour is down once.
        down += (o.end_h - o.start_h.max(covered)).max(0.0);
        covered = covered.max(o.end_h);
    }
    let up = age - down;
    let n = known.len() as f64;
    let recent = |hours: f64| known.iter().filter(|o| o.start_h > at_h - hours).count() as f64;
    let gap = match known {
        [.., before, last] => (last.start_h - before.end_h).max(0.0),
        [only] => only.start_h - window.start_h,
        [] => age,
    };
    let since = |last: Option<f64>| at_h - last.unwrap_or(window.start_h);
    let last_end = known.iter().map(|o| o.end_h).fold(f64::NEG_INFINITY, f64::max);
    let last = (!known.is_empty()).then_some(last_end);
    let mut values = vec![n, up, since(last), up / (n + 1.0), gap, down, recent(168.0), recent(720.0)];
    for category in Category::ALL {
        let mut own = known.iter().filter(|o| o.category == category);
        let count = own.clone().count() as f64;
        values.extend([count, since(own.next_back().map(|o| o.end_h)), up / (count + 1.0)]);
    }
    if sampling.checks {
        values.extend(checked(&past.checks, window, at_h));
    }
    Some(values.into_iter().map(|v| v.clamp(0.0, sampling.cap_h).ln_1p()).collect())
}

fn checked(checks: &[Check], window: Window, at_h: f64) -> [f64; 3] {
    let known = &checks[..checks.partition_point(|c| c.at_h <= at_h)];
    let full = known.iter().rev().find(|c| c.full).map_or(window.start_h, |c| c.at_h);
    let last = known.last();
    // A margin lies between -1 and 1; moved up so that it survives the logarithm.
    [at_h - full, last.map_or(0.0, |c| c.margin + 1.0), last.map_or(0.0, |c| f64::from(c.failed))]
}

/// Rows for models: the status of every node at regular hours and at the end of each outage, with the time until
/// its next incident.
#[derive(Clone, Debug, PartialEq)]
pub struct Samples {
    /// Features and targets: hours to the next incident, capped at `cap_h`, censored at the end of the log.
    pub table: Table,
    /// Node of each row, by its place in [`History::nodes`].
    pub node: Vec<usize>,
    /// When each row was observed, in hours.
    pub at_h: Vec<f64>,
}

/// Samples of `history`.
///
/// # Errors
/// Never for a history built by [`History::new`]; a window of NaN gives rows that are not numbers.
pub fn samples(history: &History, sampling: &Sampling) -> Result<Samples, BadTable> {
    let window = history.window();
    let (mut values, mut duration, mut event) = (Vec::new(), Vec::new(), Vec::new());
    let (mut node, mut at) = (Vec::new(), Vec::new());
    for (k, (_, past)) in history.nodes().enumerate() {
        for at_h in hours(past, window, phase(k), sampling) {
            let Some(row) = status(past, window, at_h, sampling) else { continue };
            let next = past.next(at_h).map_or(f64::INFINITY, |t| t - at_h);
            let watched = sampling.cap_h.min(window.end_h - at_h);
            values.extend(row);
            duration.push(next.min(watched));
            event.push(next <= watched);
            node.push(k);
            at.push(at_h);
        }
    }
    let table = Table::new(feature_names(sampling.checks), values, duration, event)?;
    Ok(Samples { table, node, at_h: at })
}

/// Part of the sampling interval by which node `k` is shifted, so that not all rows fall on the same hour.
fn phase(k: usize) -> f64 {
    (k as f64 * 0.618_033_988_749_895).fract()
}

/// Hours at which to look at a node, rising.
fn hours(past: &Past, window: Window, phase: f64, sampling: &Sampling) -> Vec<f64> {
    let every = sampling.every_h.max(1e-3);
    let count = ((window.end_h - window.start_h) / every - phase).ceil().max(0.0) as usize;
    let regular = (0..count).map(|k| window.start_h + every * (k as f64 + phase));
    let ends = past.outages.iter().map(|o| o.end_h);
    let mut hours: Vec<f64> = regular.chain(ends).filter(|t| *t < window.end_h).collect();
    hours.sort_by(f64::total_cmp);
    hours.dedup();
    hours
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::risk::Incident;
    use crate::risk::history::Outage;

    const WINDOW: Window = Window { start_h: 0.0, end_h: 1000.0 };

    fn outages() -> impl Strategy<Value = Vec<Outage>> {
        let one = (0.0..1000.0_f64, 0.0..80.0_f64, 0..9_usize).prop_map(|(start_h, length, c)| Outage {
            start_h,
            end_h: start_h + length,
            category: Category::ALL[c],
        });
        proptest::collection::vec(one, 0..12)
    }

    fn past(mut outages: Vec<Outage>) -> Past {
        outages.sort_by(|a, b| a.start_h.total_cmp(&b.start_h));
        let checks = vec![Check { at_h: 300.0, full: true, margin: 0.1, failed: 2 }];
        Past { outages, checks }
    }

    proptest! {
        #[test]
        fn the_future_cannot_leak(a in outages(), b in outages(), at in 0.0..1000.0_f64) {
            let sampling = Sampling { checks: true, ..Sampling::default() };
            // The same past until `at`, two different futures.
            let kept: Vec<Outage> = a.iter().copied().filter(|o| o.start_h <= at).collect();
            let future = b.iter().copied().filter(|o| o.start_h > at);
            let mut one = past(a.clone());
            let mut two = past(kept.into_iter().chain(future).collect());
            two.checks.push(Check { at_h: at.max(300.0) + 1.0, full: true, margin: -0.5, failed: 9 });
            prop_assert_eq!(status(&one, WINDOW, at, &sampling), status(&two, WINDOW, at, &sampling));
            // Nor does the end of the log.
            let longer = Window { end_h: 9e9, ..WINDOW };
            prop_assert_eq!(status(&one, WINDOW, at, &sampling), status(&one, longer, at, &sampling));
            // How long an outage will last is future too: a node in it has no status either way.
            if one.down(at) {
                one.outages.iter_mut().filter(|o| o.end_h > at).for_each(|o| o.end_h += 500.0);
                prop_assert_eq!(status(&one, WINDOW, at, &sampling), None);
            }
        }
    }

    fn incident(node: &str, start_h: f64, end_h: f64, category: Category) -> Incident {
        Incident::new(node, start_h, Some(end_h), category)
    }

    #[test]
    fn features_say_what_happened() {
        let log = [incident("a", 100.0, 110.0, Category::Gpu), incident("a", 400.0, 440.0, Category::Network)];
        let h = History::new(&log, &[], WINDOW);
        let s = status(h.past("a").unwrap(), WINDOW, 500.0, &Sampling::default()).unwrap();
        let names = feature_names(false);
        let value = |name: &str| s[names.iter().position(|n| n == name).unwrap()].exp_m1();
        for (name, expected) in [
            ("n_all", 2.0),
            ("up_h", 450.0),
            ("since_last_h", 60.0),
            ("mtbi_all_h", 150.0),
            ("last_gap_h", 290.0),
            ("repair_h", 50.0),
            ("n_7d", 1.0),
            ("n_30d", 2.0),
            ("n_gpu", 1.0),
            ("since_gpu", 390.0),
            ("mtbi_gpu", 225.0),
            ("n_disk", 0.0),
            ("since_disk", 500.0),
        ] {
            assert!((value(name) - expected).abs() < 1e-9, "{name}: {}", value(name));
        }
        assert_eq!(s.len(), names.len());
    }

    #[test]
    fn rows_know_the_time_to_the_next_incident_or_are_censored() {
        let log = [incident("a", 100.0, 110.0, Category::Gpu)];
        let h = History::new(&log, &["b".into()], WINDOW);
        let s = samples(&h, &Sampling::default()).unwrap();
        for i in 0..s.table.len() {
            let (t, e, at) = (s.table.duration()[i], s.table.event()[i], s.at_h[i]);
            if s.node[i] == 0 && at < 100.0 {
                assert!(e && (at + t - 100.0).abs() < 1e-9);
            } else {
                assert!(!e && (at + t - 1000.0).abs() < 1e-9);
            }
        }
        assert!(s.at_h.contains(&110.0), "a row at the end of the outage");
        assert!(!s.at_h.iter().zip(&s.node).any(|(t, n)| *n == 0 && (100.0..110.0).contains(t)));
    }
}
