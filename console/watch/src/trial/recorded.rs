//! A recording with its truth, as methods are shown it.

use super::truth::{BadTruth, Truth};
use crate::minder::{Grid, Labelled, NoGrid, Tick};

/// A recording.
#[derive(Clone, Debug)]
pub struct Recorded {
    /// What people call it.
    pub name: String,
    /// Names of its nodes.
    pub nodes: Vec<String>,
    /// Names of its metrics.
    pub metrics: Vec<String>,
    /// Who was faulty.
    pub truth: Truth,
    /// In order of time.
    pub ticks: Vec<Tick>,
    /// The same, a value a second.
    pub grid: Grid,
    /// Tells it from others: the same for the same names and samples.
    pub fingerprint: u64,
}

/// Why a recording cannot be scored.
#[derive(Debug, thiserror::Error)]
pub enum Unfit {
    /// Its samples make no grid.
    #[error(transparent)]
    Grid(#[from] NoGrid),
    /// Its truth is not its own.
    #[error(transparent)]
    Truth(#[from] BadTruth),
}

impl Recorded {
    /// A recording of `nodes` and `metrics`, in the order that its `ticks` mean.
    ///
    /// # Errors
    /// When its samples make no grid, or the truth is of another recording.
    pub fn new(
        name: String,
        (nodes, metrics): (Vec<String>, Vec<String>),
        mut ticks: Vec<Tick>,
        truth: Truth,
    ) -> Result<Self, Unfit> {
        ticks.sort_by(|a, b| a.time_s.total_cmp(&b.time_s));
        let grid = Grid::of(nodes.len(), metrics.len(), &ticks)?;
        truth.fits(&nodes, (grid.start_s(), grid.start_s() + grid.seconds() as f64))?;
        let fingerprint = fingerprint(&nodes, &metrics, &ticks);
        Ok(Self { name, nodes, metrics, truth, ticks, grid, fingerprint })
    }

    /// Machines times days.
    #[must_use]
    pub fn machine_days(&self) -> f64 {
        self.nodes.len() as f64 * self.grid.seconds() as f64 / 86_400.0
    }

    /// As metrics are put in order by it.
    pub(super) fn labelled(&self) -> Labelled<'_> {
        let start = self.grid.start_s();
        let spans = self.truth.faults.iter().map(|fault| (fault.onset_s - start, fault.end_s - start)).collect();
        (&self.grid, &self.metrics, spans)
    }
}

/// Fowler, Noll and Vo's hash (1a, 64 bits): tells accidents, not attackers.
pub(super) fn fnv(parts: impl IntoIterator<Item = impl AsRef<[u8]>>) -> u64 {
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    for part in parts {
        for byte in part.as_ref() {
            hash = (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }
    hash
}

fn fingerprint(nodes: &[String], metrics: &[String], ticks: &[Tick]) -> u64 {
    let names = fnv(nodes.iter().chain(metrics).flat_map(|name| [name.as_bytes(), b"\0"]));
    // A step of the same hash for each number: bytes one by one would take longer than reading them.
    ticks.iter().fold(names, |hash, tick| {
        let cell = (u64::from(tick.node) << 16) | u64::from(tick.metric) | (u64::from(tick.value.to_bits()) << 32);
        ((hash ^ tick.time_s.to_bits()).wrapping_mul(0x0100_0000_01b3) ^ cell)
            .wrapping_mul(0x0100_0000_01b3)
            .rotate_left(23)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_value_is_another_recording_and_the_order_of_rows_is_none() {
        let tick = |time_s, value| Tick { time_s, value, node: 0, metric: 0 };
        let made = |ticks: Vec<Tick>| {
            Recorded::new("r".into(), (vec!["a".into()], vec!["m".into()]), ticks, Truth::default()).unwrap()
        };
        let one = made(vec![tick(1.0, 2.0), tick(2.0, 3.0)]);
        assert_eq!(one.fingerprint, made(vec![tick(2.0, 3.0), tick(1.0, 2.0)]).fingerprint);
        assert_ne!(one.fingerprint, made(vec![tick(1.0, 2.0), tick(2.0, 3.5)]).fingerprint);
        assert_eq!(fnv(["a"]), 0xaf63_dc4c_8601_ec8c, "the published value");
    }

    fn recorded(names: (&[&str], &[&str]), ticks: Vec<Tick>) -> Recorded {
        let of = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
        Recorded::new("r".into(), (of(names.0), of(names.1)), ticks, Truth::default()).unwrap()
    }

    #[test]
    fn names_times_and_places_tell_a_recording_from_others_and_what_people_call_it_does_not() {
        let tick = |time_s, node, metric| Tick { time_s, value: 2.0, node, metric };
        let base = || vec![tick(1.0, 0, 0), tick(2.0, 1, 1)];
        let one = recorded((&["a", "b"], &["m", "n"]), base());
        let mut renamed = one.clone();
        renamed.name = "other".to_owned();
        assert_eq!(one.fingerprint, recorded((&["a", "b"], &["m", "n"]), base()).fingerprint);
        let others = [
            recorded((&["a", "c"], &["m", "n"]), base()),
            recorded((&["a", "b"], &["m", "o"]), base()),
            recorded((&["ab", "c"], &["m", "n"]), base()),
            recorded((&["a", "bc"], &["m", "n"]), base()),
            recorded((&["a", "b"], &["m", "n"]), vec![tick(1.0, 0, 1), tick(2.0, 1, 0)]),
            recorded((&["a", "b"], &["m", "n"]), vec![tick(1.0, 1, 0), tick(2.0, 0, 1)]),
            recorded((&["a", "b"], &["m", "n"]), vec![tick(1.0, 0, 0), tick(2.5, 1, 1)]),
            recorded((&["a", "b"], &["m", "n"]), vec![tick(1.0, 0, 0)]),
        ];
        let all: std::collections::BTreeSet<u64> =
            others.iter().map(|other| other.fingerprint).chain([one.fingerprint]).collect();
        assert_eq!(all.len(), others.len() + 1);
    }

    #[test]
    fn machine_days_are_those_of_all_nodes_and_spans_are_seconds_of_the_grid() {
        let ticks = vec![
            Tick { time_s: 1_000.5, value: 1.0, node: 0, metric: 0 },
            Tick { time_s: 44_199.0, value: 1.0, node: 0, metric: 0 },
        ];
        let mut one = recorded((&["a", "b", "c"], &["m"]), ticks);
        assert!((one.machine_days() - 1.5).abs() < 1e-12, "three nodes for half a day");
        let fault = super::super::truth::Fault { node: "a".into(), onset_s: 1_500.0, end_s: 2_500.0, detectable: true };
        one.truth.faults.push(fault);
        assert_eq!(one.labelled().2, [(500.0, 1_500.0)]);
    }
}
