//! Who took the place of a machine in repair, and whose place a machine took: read from what was said of both.

use std::collections::BTreeMap;

use muster_analysis::service::Marked;
use muster_playbook::report::rfc3339;

use super::marks::Mark;

/// The other machine of a swap, as seen from one of the two.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Counterpart {
    /// The machine is in repair, and this one took its place.
    ReplacedBy {
        /// Its name.
        node: String,
        /// Since when, milliseconds since 1970 UTC.
        since_ms: u64,
        /// When it was put into other hands itself; `None` while it is there.
        until_ms: Option<u64>,
    },
    /// The machine took the place of this one, which is in repair.
    InPlaceOf {
        /// Its name.
        node: String,
        /// Since when, milliseconds since 1970 UTC.
        since_ms: u64,
    },
}

impl Counterpart {
    /// Of `node`, by what was said of `all`. `None` where it is not part of a swap, or where the repaired machine is back.
    #[must_use]
    pub fn of(all: &BTreeMap<String, Vec<Mark>>, node: &str) -> Option<Self> {
        let last = all.get(node)?.last()?;
        let other = last.counterpart.as_ref()?;
        let said = all.get(other)?;
        match last.state {
            Marked::InRepair => {
                let (since_ms, until_ms) = in_place_of(said, node)?;
                Some(Self::ReplacedBy { node: other.clone(), since_ms, until_ms })
            }
            Marked::InService => {
                let replaced = said.last()?;
                let still = replaced.state == Marked::InRepair && replaced.counterpart.as_deref() == Some(node);
                still.then(|| Self::InPlaceOf { node: other.clone(), since_ms: last.at_ms })
            }
            Marked::HotBuffer => None,
        }
    }

    /// In words, such as `replaced by n101 on 2026-11-28`.
    #[must_use]
    pub fn sentence(&self) -> String {
        match self {
            Self::ReplacedBy { node, since_ms, until_ms: None } => format!("replaced by {node} on {}", day(*since_ms)),
            Self::ReplacedBy { node, since_ms, until_ms: Some(until_ms) } => {
                format!("replaced by {node} from {} to {}", day(*since_ms), day(*until_ms))
            }
            Self::InPlaceOf { node, since_ms } => format!("in place of {node} since {}", day(*since_ms)),
        }
    }
}

/// When a machine with these marks last took the place of `node`, and when it left it again.
fn in_place_of(said: &[Mark], node: &str) -> Option<(u64, Option<u64>)> {
    let took = |mark: &Mark| mark.state == Marked::InService && mark.counterpart.as_deref() == Some(node);
    let at = said.iter().rposition(took)?;
    Some((said[at].at_ms, said.get(at + 1).map(|next| next.at_ms)))
}

/// The day of a moment in UTC, such as `2026-11-28`.
#[must_use]
pub fn day(ms: u64) -> String {
    rfc3339(ms).chars().take(10).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const DAY_MS: u64 = 86_400_000;

    fn said(days: &[(u64, Marked, Option<&str>)]) -> Vec<Mark> {
        let mark = |(day, state, other): &(u64, Marked, Option<&str>)| Mark {
            state: *state,
            at_ms: day * DAY_MS,
            who: "kim".into(),
            why: String::new(),
            counterpart: other.map(str::to_owned),
        };
        days.iter().map(mark).collect()
    }

    fn sentences(n7: &[(u64, Marked, Option<&str>)], s1: &[(u64, Marked, Option<&str>)]) -> [String; 2] {
        let all = BTreeMap::from([("n7".to_owned(), said(n7)), ("s1".to_owned(), said(s1))]);
        ["n7", "s1"].map(|node| Counterpart::of(&all, node).map_or_else(String::new, |other| other.sentence()))
    }

    #[test]
    fn a_swap_is_told_of_both_as_long_as_it_lasts() {
        use Marked::{HotBuffer, InRepair, InService};
        let repair = (4, InRepair, Some("s1"));
        let took = [(1, HotBuffer, None), (5, InService, Some("n7"))];
        assert_eq!(sentences(&[repair], &took), ["replaced by s1 on 1970-01-06", "in place of n7 since 1970-01-06"]);
        // The repaired one is back, and the other stays in service.
        assert_eq!(sentences(&[repair, (9, InService, None)], &took), ["", ""]);
        // It fails again later, and nobody takes its place.
        assert_eq!(sentences(&[repair, (9, InService, None), (12, InRepair, None)], &took), ["", ""]);
        // The spare is put into other hands while the other is still in repair.
        for state in [HotBuffer, InRepair] {
            let gone = [took[0], took[1], (7, state, None)];
            assert_eq!(sentences(&[repair], &gone), ["replaced by s1 from 1970-01-06 to 1970-01-08", ""]);
        }
        // Another one takes its place.
        assert_eq!(sentences(&[repair, (4, InRepair, Some("s2"))], &took), ["", ""], "nothing was said of s2");
        // Nobody was replaced.
        assert_eq!(sentences(&[(4, InRepair, None)], &[(1, HotBuffer, None), (5, InService, None)]), ["", ""]);
    }

    #[test]
    fn half_a_swap_is_none() {
        let took = [(5, Marked::InService, Some("n7"))];
        assert_eq!(sentences(&[(4, Marked::InRepair, None)], &took), ["", ""]);
        assert_eq!(sentences(&[(4, Marked::InRepair, Some("s1"))], &[(5, Marked::InService, None)]), ["", ""]);
    }
}
