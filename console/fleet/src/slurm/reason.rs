//! Whose drain is it? Only muster's own may be renewed or taken back; what others wrote stands.

use std::ops::RangeInclusive;

use muster_wire::clean;

use super::Listed;

/// How a reason of ours begins.
const OURS: &str = "muster: ";
/// Most characters of a reason.
const MOST: usize = 200;
/// Years of the versions that keep the reason of a node that is resumed: 23.11.4, 24.11.5 and 25.11.2 do.
const KEEPING: RangeInclusive<u32> = 23..=25;

/// The reason that Slurm is given for `text`.
#[must_use]
pub fn reason(text: &str) -> String {
    format!("{OURS}{}", clean(text.trim(), MOST))
}

/// Whether muster wrote the reason of this node.
#[must_use]
pub fn ours(node: &Listed) -> bool {
    node.reason.starts_with(OURS.trim_end())
}

/// Why a node is left as it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Left {
    /// Others gave a reason, or drained it without one.
    Others,
    /// It is not drained.
    NotDrained,
}

/// May a node be drained?
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Drain {
    /// It is not drained and has no reason, or that of a drain that is over.
    New,
    /// Muster drained it before: it gets the new reason.
    Again,
    /// Not.
    Left(Left),
}

/// May a node be resumed?
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Resume {
    /// Muster drained it.
    Own,
    /// Not.
    Left(Left),
}

/// What draining a node would mean.
#[must_use]
pub fn drain(node: &Listed) -> Drain {
    match (ours(node), node.is("DRAIN")) {
        (true, true) => Drain::Again,
        (true, false) => Drain::New,
        (false, false) if node.reason.is_empty() || left_over(node) => Drain::New,
        (false, _) => Drain::Left(Left::Others),
    }
}

/// Whether others' reason speaks of a drain that is over. Some versions of Slurm keep a reason when a node is resumed, so that it says nothing of
/// a node in service; where the reason goes with the drain, as in 22.05.8 and 26.05.5, one that stands there is somebody's note.
#[must_use]
pub fn left_over(node: &Listed) -> bool {
    let year = node.version.split('.').next().and_then(|year| year.parse().ok());
    !node.reason.is_empty() && !ours(node) && !node.out() && year.is_some_and(|year: u32| KEEPING.contains(&year))
}

/// What resuming a node would mean.
#[must_use]
pub fn resume(node: &Listed) -> Resume {
    match (ours(node), node.is("DRAIN")) {
        (true, true) => Resume::Own,
        (false, true) => Resume::Left(Left::Others),
        (_, false) => Resume::Left(Left::NotDrained),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn node(states: &[&str], reason: &str) -> Listed {
        let states = states.iter().map(|state| (*state).to_owned()).collect();
        Listed { name: "n1".into(), states, reason: reason.into(), ..Listed::default() }
    }

    #[test]
    fn what_others_wrote_is_neither_overwritten_nor_cleared() {
        let others =
            [node(&["IDLE", "DRAIN"], "bad fan"), node(&["IDLE", "DRAIN"], ""), node(&["DOWN"], "Not responding")];
        for other in &others {
            assert_eq!(drain(other), Drain::Left(Left::Others), "{other:?}");
        }
        for other in &others[..2] {
            assert_eq!(resume(other), Resume::Left(Left::Others), "{other:?}");
        }
        assert_eq!(resume(&others[2]), Resume::Left(Left::NotDrained));
        let like_ours = node(&["IDLE", "DRAIN"], "musterers: x");
        assert_eq!((drain(&like_ours), resume(&like_ours)), (Drain::Left(Left::Others), Resume::Left(Left::Others)));
    }

    #[test]
    fn a_reason_that_outlived_its_drain_keeps_no_node_in_service() {
        let of = |version: &str, states: &[&str]| Listed { version: version.into(), ..node(states, "bad fan") };
        assert_eq!(drain(&of("24.11.5", &["IDLE"])), Drain::New);
        assert_eq!(drain(&of("25.11.2", &["MIXED"])), Drain::New);
        for others in [of("22.05.8", &["IDLE"]), of("26.05.5", &["IDLE"]), of("", &["IDLE"]), of("24.11.5", &["DOWN"])]
        {
            assert_eq!(drain(&others), Drain::Left(Left::Others), "{others:?}");
        }
        assert_eq!(resume(&of("24.11.5", &["IDLE"])), Resume::Left(Left::NotDrained));
    }

    #[test]
    fn own_drains_are_renewed_and_taken_back() {
        let own = node(&["MIXED", "DRAIN"], &reason(" cpu-stream\n 30 % slow "));
        assert_eq!((drain(&own), resume(&own)), (Drain::Again, Resume::Own));
        assert!(!own.reason.contains('\n') && own.reason.starts_with("muster: cpu-stream"), "{}", own.reason);
        assert_eq!(
            (drain(&node(&["IDLE"], "")), resume(&node(&["IDLE"], ""))),
            (Drain::New, Resume::Left(Left::NotDrained))
        );
    }
}
