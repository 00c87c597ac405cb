//! What offline diagnosis says: the published document `muster.triage-offline`.

use std::borrow::Cow;
use std::collections::BTreeSet;

use muster_wire::clean;
use serde::{Deserialize, Serialize};

use super::halving::{Culprit, Found, Nodes, Open};
use super::report::Done;

/// Name of the document.
pub const OFFLINE_SCHEMA: &str = "muster.triage-offline";
/// Bytes of the largest document that is read back.
pub const OFFLINE_BYTES: usize = 4 << 20;
/// Bytes of the longest sentence that is read back.
const SENTENCE: usize = 4_096;

/// The whole answer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Offline {
    /// [`OFFLINE_SCHEMA`].
    pub schema: Cow<'static, str>,
    /// Version of the document; 1.
    pub version: u32,
    /// In one word.
    pub verdict: Answer,
    /// In one sentence.
    pub sentence: String,
    /// What to do now.
    pub action: String,
    /// Nodes that were to be tested.
    pub nodes: Vec<String>,
    /// What is at fault, in the order found.
    pub culprits: Vec<Accused>,
    /// What could not be decided, a sentence each.
    pub open: Vec<String>,
    /// What was done, what it found, and why it ended there or went on.
    pub steps: Vec<Done>,
    /// The reference job, on whom and what came of it, in the order tried.
    pub trials: Vec<Tried>,
    /// Ids of the runs that keep every sample, in their order.
    pub runs: Vec<String>,
}

/// The answer in one word.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Answer {
    /// Something is at fault.
    Named,
    /// Nothing failed and nothing is unlike its peers.
    NothingFound,
    /// Something is wrong or was not looked at, and nobody can say whose fault it is.
    Undecided,
}

/// What is at fault.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Accused {
    /// What kind of thing.
    pub kind: AccusedKind,
    /// Which nodes: of a way, those at one end.
    pub nodes: Vec<String>,
    /// Of a way between nodes, those at its other end; empty for everybody else.
    pub with: Vec<String>,
    /// Of a way that pairs of nodes point at, its name: a leaf, an uplink, a pair.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub element: Option<String>,
    /// The step that found it.
    pub step: Cow<'static, str>,
    /// In one sentence.
    pub sentence: String,
}

/// What kind of thing is at fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum AccusedKind {
    /// A node.
    Node,
    /// The way between nodes: a cable, a switch, an uplink.
    Way,
    /// Two nodes and the way between, of which nobody can say which.
    NodeOrWay,
}

/// One run of the reference job.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tried {
    /// On whom.
    pub nodes: Vec<String>,
    /// Whether it failed.
    pub fails: bool,
    /// Why it failed; empty where it ran.
    pub why: String,
}

/// The step in which every node is tested by itself.
pub const SELF_TESTS: &str = "self-tests";
/// The step in which all nodes run the reference job together.
pub const REFERENCE: &str = "reference-job";
/// The step in which halves run the reference job.
pub const HALVING: &str = "halving";
/// The step in which pairs of nodes send to each other.
pub const PAIRS: &str = "pairs";

/// The steps, in their order.
pub const TESTS: [&str; 4] = [SELF_TESTS, REFERENCE, HALVING, PAIRS];

impl Offline {
    /// Reads the document back.
    ///
    /// # Errors
    /// When it is too large, not JSON, another document, or of another version.
    pub fn parse(text: &[u8]) -> Result<Self, String> {
        if text.len() > OFFLINE_BYTES {
            return Err(format!("more than {OFFLINE_BYTES} bytes"));
        }
        let read: Self = serde_json::from_slice(text).map_err(|why| clean(&why.to_string(), 200))?;
        if (read.schema.as_ref(), read.version) != (OFFLINE_SCHEMA, 1) {
            let schema = clean(&read.schema, 80);
            return Err(format!("{schema} version {}, and {OFFLINE_SCHEMA} version 1 is needed", read.version));
        }
        Ok(read.harmless())
    }

    /// Without control characters in anything that is shown: somebody may have changed the file.
    fn harmless(mut self) -> Self {
        let texts = [&mut self.sentence, &mut self.action].into_iter().chain(&mut self.open).chain(&mut self.nodes);
        let steps = self.steps.iter_mut().flat_map(|done| [&mut done.result, &mut done.why]);
        texts.chain(steps).for_each(|text| *text = clean(text, SENTENCE));
        for accused in &mut self.culprits {
            accused.step = clean(&accused.step, SENTENCE).into();
            let names = accused.nodes.iter_mut().chain(&mut accused.with).chain(&mut accused.element);
            names.chain([&mut accused.sentence]).for_each(|text| *text = clean(text, SENTENCE));
        }
        self
    }
}

/// What the search `found` among `names`, the leaf of each in `leaves`, in sentences; `fold` writes a list of nodes.
#[must_use]
pub fn accused(
    found: &Found,
    (names, leaves): (&[String], &[Option<String>]),
    fold: &dyn Fn(&[&str]) -> String,
) -> Vec<Accused> {
    let people = People { names, leaves, fold };
    found.culprits.iter().map(|culprit| people.accused(culprit)).collect()
}

/// Why a search ended before the rest was shown to be sound.
#[must_use]
pub fn still_open(open: Open) -> String {
    match open {
        Open::Vanished => "The reference job failed on some nodes together and then on no part of them: it does not fail every time, or \
                           only at that size."
            .to_owned(),
        Open::TooMany => "So many nodes make the reference job fail that one cause for all of them is likelier: a driver, an image, \
                          a fabric."
            .to_owned(),
    }
}

struct People<'a> {
    names: &'a [String],
    leaves: &'a [Option<String>],
    fold: &'a dyn Fn(&[&str]) -> String,
}

impl People<'_> {
    fn accused(&self, culprit: &Culprit) -> Accused {
        let (kind, nodes, with, sentence) = match culprit {
            Culprit::One(nodes) if nodes.len() == 1 => {
                let who = self.said(nodes);
                (
                    AccusedKind::Node,
                    nodes,
                    None,
                    format!("{who} makes the reference job fail, whichever nodes it runs with."),
                )
            }
            Culprit::One(nodes) => (
                AccusedKind::Way,
                nodes,
                None,
                format!(
                    "{} run the reference job among themselves and fail with everybody else: the way from there is at fault.",
                    self.said(nodes)
                ),
            ),
            Culprit::Between(a, b) => {
                let how = if a.len() == 1 { "with others" } else { "by itself" };
                let (a_said, b_said) = (self.said(a), self.said(b));
                let sentence = format!(
                    "{a_said} and {b_said} fail with each other, and each runs {how}: the way between is at fault."
                );
                (AccusedKind::Way, a, Some(b), sentence)
            }
            Culprit::Either(a, b) => (
                AccusedKind::NodeOrWay,
                a,
                Some(b),
                format!(
                    "{} and {} fail with each other, and no sound node was left to try each of them with.",
                    self.said(a),
                    self.said(b)
                ),
            ),
        };
        Accused {
            kind,
            nodes: self.list(nodes),
            with: with.map(|with| self.list(with)).unwrap_or_default(),
            element: None,
            step: HALVING.into(),
            sentence,
        }
    }

    /// `n003`, or `n[009-012] (leaf l3)` where that is all of them.
    fn said(&self, nodes: &Nodes) -> String {
        let names: Vec<&str> = nodes.iter().map(|node| self.names[*node].as_str()).collect();
        let leaves: BTreeSet<&Option<String>> = nodes.iter().map(|node| &self.leaves[*node]).collect();
        let folded = (self.fold)(&names);
        match leaves.first() {
            Some(Some(leaf)) if leaves.len() == 1 && nodes.len() > 1 => format!("{folded} (leaf {leaf})"),
            _ => folded,
        }
    }

    fn list(&self, nodes: &Nodes) -> Vec<String> {
        nodes.iter().map(|node| self.names[*node].clone()).collect()
    }
}

/// What all steps together come to: word, sentence and what to do.
#[must_use]
pub fn concluded(
    culprits: &[Accused],
    open: &[String],
    nodes: &[String],
    fold: &dyn Fn(&[&str]) -> String,
) -> (Answer, String, String) {
    let names: Vec<&str> = nodes.iter().map(String::as_str).collect();
    if let Some(first) = culprits.first() {
        let accused: Vec<&str> = first.nodes.iter().chain(&first.with).map(String::as_str).collect();
        let folded = fold(&accused);
        let action = match first.kind {
            AccusedKind::Node => format!(
                "Restart the job without {folded}; drain it and look at it: muster drain -w '{folded}' --reason 'offline diagnosis'"
            ),
            AccusedKind::Way => {
                "Look at the cables, switches and uplinks on that way; until then run the job on one side of it."
                    .to_owned()
            }
            AccusedKind::NodeOrWay => {
                format!("Repeat this with a sound node beside them: muster triage offline -w '{folded},NODE'")
            }
        };
        return (Answer::Named, first.sentence.clone(), action);
    }
    if let Some(first) = open.first() {
        let action =
            "Repeat it with longer steps: muster triage offline --profile quick; or look at the job's program.";
        return (Answer::Undecided, first.clone(), action.to_owned());
    }
    let sentence = format!("Nothing on {} fails, and nothing is unlike its peers.", fold(&names));
    let action = "Restart the job; if it fails again, look at its program and at what this did not test: GPUs under the job's own load, \
                  storage, times of day.";
    (Answer::NothingFound, sentence, action.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(culprits: Vec<Culprit>) -> Vec<String> {
        let names: Vec<String> = (1..=8).map(|at| format!("n{at}")).collect();
        let leaves: Vec<Option<String>> = (0..8).map(|at| Some(format!("l{}", at / 4))).collect();
        let found = Found { culprits, open: None };
        accused(&found, (&names, &leaves), &|names| names.join(","))
            .into_iter()
            .map(|accused| accused.sentence)
            .collect()
    }

    #[test]
    fn what_was_found_reads_as_a_sentence_with_its_nodes_and_leaf() {
        let leaf = |at: usize| (at * 4..at * 4 + 4).collect::<Nodes>();
        assert_eq!(
            said(vec![
                Culprit::One([2].into()),
                Culprit::One(leaf(1)),
                Culprit::Between([0].into(), [5].into()),
                Culprit::Between(leaf(0), leaf(1)),
                Culprit::Either([0].into(), [5].into()),
            ]),
            [
                "n3 makes the reference job fail, whichever nodes it runs with.",
                "n5,n6,n7,n8 (leaf l1) run the reference job among themselves and fail with everybody else: the way from there is at \
                 fault.",
                "n1 and n6 fail with each other, and each runs with others: the way between is at fault.",
                "n1,n2,n3,n4 (leaf l0) and n5,n6,n7,n8 (leaf l1) fail with each other, and each runs by itself: the way between is at \
                 fault.",
                "n1 and n6 fail with each other, and no sound node was left to try each of them with.",
            ]
        );
    }

    #[test]
    fn nothing_found_is_said_only_where_nothing_was_left_open() {
        let fold = |names: &[&str]| names.join(",");
        let of = |open: &[String]| concluded(&[], open, &["n1".to_owned()], &fold).0;
        assert_eq!(of(&[]), Answer::NothingFound);
        assert_eq!(of(&[still_open(Open::Vanished)]), Answer::Undecided);
    }

    /// A document with a control character in everything that a person may have changed.
    fn hostile() -> Offline {
        let text = |of: &str| format!("{of}\u{1b}[2J");
        let accused = Accused {
            kind: AccusedKind::Way,
            nodes: vec![text("n1")],
            with: vec![text("n2")],
            element: Some(text("leaf l3")),
            step: text(PAIRS).into(),
            sentence: text("said"),
        };
        Offline {
            schema: OFFLINE_SCHEMA.into(),
            version: 1,
            verdict: Answer::Named,
            sentence: text("said"),
            action: text("do"),
            nodes: vec![text("n1")],
            culprits: vec![accused],
            open: vec![text("open")],
            steps: vec![Done { step: PAIRS, result: text("result"), why: text("why") }],
            trials: Vec::new(),
            runs: Vec::new(),
        }
    }

    #[test]
    fn whatever_is_shown_of_a_document_is_harmless_to_a_terminal() {
        let text = serde_json::to_string(&hostile()).unwrap();
        assert_eq!(text.matches("\\u001b").count(), 11);
        let read = Offline::parse(text.as_bytes()).unwrap();
        assert!(!serde_json::to_string(&read).unwrap().contains("\\u001b"), "{read:?}");
        assert!(read.sentence.starts_with("said") && read.culprits[0].with[0].starts_with("n2"), "{read:?}");
    }

    #[test]
    fn a_document_is_read_up_to_its_largest_size() {
        let text = serde_json::to_string(&hostile()).unwrap();
        let full = format!("{text}{}", " ".repeat(OFFLINE_BYTES - text.len()));
        assert!(Offline::parse(full.as_bytes()).is_ok());
        assert_eq!(Offline::parse(format!("{full} ").as_bytes()).unwrap_err(), "more than 4194304 bytes");
        let other = text.replacen(OFFLINE_SCHEMA, "muster.triage", 1);
        let why = "muster.triage version 1, and muster.triage-offline version 1 is needed";
        assert_eq!(Offline::parse(other.as_bytes()).unwrap_err(), why);
    }

    #[test]
    fn who_is_accused_is_listed_with_both_ends_of_a_way_and_named_by_the_leaf_where_several_are_all_of_one() {
        let names: Vec<String> = (1..=8).map(|at| format!("n{at}")).collect();
        let leaves: Vec<Option<String>> = (0..8).map(|at| (at < 6).then(|| format!("l{}", at / 4))).collect();
        let of = |culprit: Culprit| {
            let found = Found { culprits: vec![culprit], open: None };
            accused(&found, (&names, &leaves), &|names| names.join(",")).remove(0)
        };
        let way = of(Culprit::Between([0, 1].into(), [4].into()));
        assert_eq!(
            (way.kind, way.nodes, way.with),
            (AccusedKind::Way, vec!["n1".into(), "n2".into()], vec!["n5".into()])
        );
        assert_eq!(
            way.sentence,
            "n1,n2 (leaf l0) and n5 fail with each other, and each runs by itself: the way between is at fault."
        );
        let either = of(Culprit::Either([0].into(), [1].into()));
        assert_eq!(
            (either.kind, either.nodes, either.with),
            (AccusedKind::NodeOrWay, vec!["n1".into()], vec!["n2".into()])
        );
        let one = of(Culprit::One([0].into()));
        assert_eq!(
            (one.kind, one.nodes, one.with, &*one.step),
            (AccusedKind::Node, vec!["n1".into()], vec![], HALVING)
        );
        let said = |nodes: &[usize]| of(Culprit::One(nodes.iter().copied().collect())).sentence;
        assert!(said(&[3, 4]).starts_with("n4,n5 run the reference job"), "of two leaves");
        assert!(said(&[6, 7]).starts_with("n7,n8 run the reference job"), "of leaves that nobody knows");
    }

    #[test]
    fn what_to_do_now_follows_from_the_first_that_was_found() {
        let fold = |names: &[&str]| names.join(",");
        let nodes = ["n1".to_owned(), "n2".to_owned()];
        let of = |kind| Accused {
            kind,
            nodes: vec!["n1".into()],
            with: if kind == AccusedKind::Node { Vec::new() } else { vec!["n2".into()] },
            element: None,
            step: HALVING.into(),
            sentence: "said".into(),
        };
        let todo = |kind| concluded(&[of(kind), of(AccusedKind::Node)], &["open".to_owned()], &nodes, &fold);
        let (answer, sentence, action) = todo(AccusedKind::Node);
        assert_eq!((answer, sentence.as_str()), (Answer::Named, "said"));
        assert_eq!(
            action,
            "Restart the job without n1; drain it and look at it: muster drain -w 'n1' --reason 'offline diagnosis'"
        );
        assert!(todo(AccusedKind::Way).2.starts_with("Look at the cables, switches and uplinks on that way;"));
        assert!(todo(AccusedKind::NodeOrWay).2.ends_with("muster triage offline -w 'n1,n2,NODE'"));
        let (answer, sentence, action) = concluded(&[], &["open".to_owned()], &nodes, &fold);
        assert_eq!((answer, sentence.as_str()), (Answer::Undecided, "open"));
        assert!(action.starts_with("Repeat it with longer steps"), "{action}");
        let (answer, sentence, action) = concluded(&[], &[], &nodes, &fold);
        assert_eq!(
            (answer, sentence.as_str()),
            (Answer::NothingFound, "Nothing on n1,n2 fails, and nothing is unlike its peers.")
        );
        assert!(action.starts_with("Restart the job; if it fails again"), "{action}");
        assert_ne!(still_open(Open::Vanished), still_open(Open::TooMany));
    }
}
