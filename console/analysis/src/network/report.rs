//! What pairs of nodes point at, as the `muster.pairs` document (assets/schemas/muster.pairs.json), and in words.

use serde::{Deserialize, Serialize};

use super::Localisation;
use super::localise::{Contested, Group, Misfit, SURE, Suspect, Undecided, Warning};
use super::said::{accusation, alternatives, misfit, open, source_word, warning};
use super::topology::Source;

/// Name of the document.
pub const PAIRS_SCHEMA: &str = "muster.pairs";

/// The `muster.pairs` document: suspects of all metrics together.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PairsReport {
    /// [`PAIRS_SCHEMA`].
    pub schema: String,
    /// Version of the document; 1.
    pub version: u32,
    /// Where the distances come from.
    pub topology: String,
    /// The scan behind it; absent for pairs read from a file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<PairsRun>,
    /// Nodes that do not hang where the topology says.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub misfits: Vec<Misfit>,
    /// Accused, metric by metric, most certain first.
    pub suspects: Vec<Of<Suspect>>,
    /// Certainly slow, but by little.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<Of<Warning>>,
    /// Nodes that are slow together without a leaf to name; each is also among `undecided`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub groups: Vec<Of<Group>>,
    /// Parts of the fabric of which either may be the sound one; each is also among `undecided`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub contested: Vec<Of<Contested>>,
    /// Parts of an accused element between which no matrix can decide.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub alternatives: Vec<Alternatives>,
    /// Slow pairs that several explanations fit.
    pub undecided: Vec<Of<Undecided>>,
    /// Pairs whose measurement would decide, most useful first. Where nothing is in doubt they are those that chance explains,
    /// and the exit code does not follow from them.
    pub next_pairs: Vec<[String; 2]>,
    /// Nodes between which something was measured; 0 where that is not known.
    #[serde(skip)]
    pub nodes: usize,
}

/// What an accusation of a node may mean.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Alternatives {
    /// The suspect.
    pub element: String,
    /// Parts that explain the pairs equally well.
    pub parts: Vec<String>,
    /// How to find out.
    pub advice: String,
}

/// The scan behind a report.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PairsRun {
    /// Run id.
    pub id: String,
    /// Rounds in which something was measured.
    pub rounds: usize,
    /// Visits of pairs, both directions counted as one.
    pub visits: usize,
    /// Of those, the ones that failed.
    pub failed: usize,
    /// Visits after the last round, to pairs that it left in doubt.
    #[serde(default)]
    pub again: usize,
    /// Nodes that could not be asked, or were not asked again.
    pub left_out: Vec<LeftOut>,
}

/// A node outside the matrix, or with a part of its pairs only.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LeftOut {
    /// Node name.
    pub node: String,
    /// Why.
    pub reason: String,
}

/// A finding and the metric that shows it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Of<T> {
    /// Name of the metric.
    pub metric: String,
    /// The finding.
    #[serde(flatten)]
    pub found: T,
}

impl PairsReport {
    /// A report without findings.
    #[must_use]
    pub fn new(source: Source) -> Self {
        Self {
            schema: PAIRS_SCHEMA.to_owned(),
            version: 1,
            topology: source_word(source).to_owned(),
            run: None,
            misfits: Vec::new(),
            suspects: Vec::new(),
            warnings: Vec::new(),
            groups: Vec::new(),
            contested: Vec::new(),
            alternatives: Vec::new(),
            undecided: Vec::new(),
            next_pairs: Vec::new(),
            nodes: 0,
        }
    }

    /// Adds what one metric shows.
    pub fn add(&mut self, metric: &str, found: Localisation) {
        let metric = || metric.to_owned();
        self.nodes = self.nodes.max(found.nodes);
        for suspect in found.suspects.iter().filter(|suspect| suspect.confidence >= SURE) {
            if let Some(parts) = alternatives(suspect).filter(|parts| !self.alternatives.contains(parts)) {
                self.alternatives.push(parts);
            }
        }
        self.misfits.extend(
            found.misfits.into_iter().filter(|m| !self.misfits.iter().any(|o| o.node == m.node)).collect::<Vec<_>>(),
        );
        self.suspects.extend(found.suspects.into_iter().map(|found| Of { metric: metric(), found }));
        self.warnings.extend(found.warnings.into_iter().map(|found| Of { metric: metric(), found }));
        self.groups.extend(found.groups.into_iter().map(|found| Of { metric: metric(), found }));
        self.contested.extend(found.contested.into_iter().map(|found| Of { metric: metric(), found }));
        self.undecided.extend(found.undecided.into_iter().map(|found| Of { metric: metric(), found }));
        let new: Vec<_> = found.next_pairs.into_iter().filter(|p| !self.next_pairs.contains(p)).collect();
        self.next_pairs.extend(new);
    }

    /// Exit code that the findings come to: 2 with a suspect that is [`SURE`], 3 with others, where slow pairs are left
    /// unexplained, a node was left out or nothing was measured, 1 with warnings or a topology that does not fit, else 0.
    #[must_use]
    pub fn exit_code(&self) -> u8 {
        let left_out = self.run.as_ref().is_some_and(|run| !run.left_out.is_empty());
        if self.suspects.iter().any(|suspect| suspect.found.confidence >= SURE) {
            2
        } else if !self.suspects.is_empty() || !self.undecided.is_empty() || left_out || self.is_unmeasured() {
            3
        } else {
            u8::from(!self.warnings.is_empty() || !self.misfits.is_empty())
        }
    }

    /// Whether the scan came to no visit that succeeded or failed.
    fn is_unmeasured(&self) -> bool {
        self.run.as_ref().is_some_and(|run| run.visits == 0)
    }

    /// What is said where there is no finding.
    fn nothing(&self) -> String {
        let left_out = self.run.as_ref().is_some_and(|run| !run.left_out.is_empty());
        match self.nodes {
            _ if self.is_unmeasured() => {
                "nothing was measured: pairs need at least two nodes that can be asked".to_owned()
            }
            0 if left_out => "nothing stands out among the nodes measured".to_owned(),
            nodes if left_out => format!("nothing stands out among the {nodes} nodes measured"),
            _ => "nothing stands out".to_owned(),
        }
    }

    /// One line for each finding.
    #[must_use]
    pub fn lines(&self) -> Vec<String> {
        let mut lines: Vec<String> = self.misfits.iter().map(misfit).collect();
        for suspect in &self.suspects {
            lines.push(accusation(suspect));
            let own = |a: &&Alternatives| a.element == suspect.found.element && suspect.found.confidence >= SURE;
            lines.extend(
                self.alternatives
                    .iter()
                    .find(own)
                    .map(|a| format!("  {}: the pairs cannot tell which; {}", a.parts.join(" or "), a.advice)),
            );
        }
        lines.extend(self.undecided.iter().map(open));
        lines.extend(self.warnings.iter().map(warning));
        let doubtful = self.suspects.iter().any(|suspect| suspect.found.confidence < SURE);
        if !self.next_pairs.is_empty() && (doubtful || !self.undecided.is_empty()) {
            let pairs: Vec<String> = self.next_pairs.iter().take(8).map(|[a, b]| format!("{a}-{b}")).collect();
            lines.push(format!("to decide, measure {}", pairs.join(", ")));
        }
        if lines.is_empty() {
            lines.push(self.nothing());
        }
        if let Some(run) = &self.run {
            lines.extend(run.left_out.iter().map(left_out));
            let again = if run.again > 0 { format!(", {} looked at again", run.again) } else { String::new() };
            lines.push(format!(
                "{} pairs in {} rounds, {} failed{again}; run {}",
                run.visits, run.rounds, run.failed, run.id
            ));
        }
        if matches!(self.topology.as_str(), "unknown" | "guessed from latency") {
            lines.push(format!("topology: {}; give one with --topology", self.topology));
        }
        lines
    }
}

/// A node that was left out, named once: a reason may begin with its name.
fn left_out(LeftOut { node, reason }: &LeftOut) -> String {
    let why = reason.strip_prefix(node.as_str()).and_then(|rest| rest.strip_prefix(": ")).unwrap_or(reason);
    format!("left out: {node}: {why}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::network::localise::Kind;

    #[test]
    fn only_a_sure_suspect_fails_and_a_doubtful_one_is_undecided() {
        let suspect = |confidence| Suspect {
            kind: Kind::Pair,
            element: "n1-n2".to_owned(),
            effect: 0.5,
            interval: [0.4, 0.6],
            pairs: 1,
            slow: 1,
            confidence,
        };
        let code = |confidences: &[f64]| {
            let mut report = PairsReport::new(Source::Latency);
            report.suspects = confidences.iter().map(|c| Of { metric: "bw".to_owned(), found: suspect(*c) }).collect();
            report.exit_code()
        };
        assert_eq!([code(&[]), code(&[0.6]), code(&[0.6, 0.95])], [0, 3, 2]);
    }

    #[test]
    fn pairs_that_chance_explains_are_only_proposed() {
        let mut report = PairsReport::new(Source::Csv);
        report.next_pairs = vec![["n1".to_owned(), "n2".to_owned()]];
        assert_eq!((report.exit_code(), report.lines()), (0, vec!["nothing stands out".to_owned()]));
        let open = Undecided { candidates: Vec::new(), reason: "too noisy".to_owned(), pairs: 4, slow: 2 };
        report.undecided = vec![Of { metric: "bw".to_owned(), found: open }];
        assert_eq!(report.exit_code(), 3);
        assert_eq!(report.lines(), ["undecided in bw: too noisy", "to decide, measure n1-n2"]);
    }

    #[test]
    fn nodes_left_out_are_named_once_and_no_verdict_is_given_on_what_was_not_measured() {
        let left = LeftOut { node: "n011".into(), reason: "n011: connect: timed out".into() };
        let mut report = PairsReport::new(Source::Csv);
        let run = |visits| PairsRun {
            id: "r".into(),
            rounds: visits,
            visits,
            failed: 0,
            again: 0,
            left_out: vec![left.clone()],
        };
        report.run = Some(run(0));
        assert!(report.lines()[0].starts_with("nothing was measured"), "{:?}", report.lines());
        report.run = Some(run(55));
        report.add("throughput", Localisation { nodes: 11, ..Localisation::default() });
        let lines = report.lines();
        assert_eq!(
            lines[..2],
            ["nothing stands out among the 11 nodes measured", "left out: n011: connect: timed out"]
        );
        assert_eq!(report.exit_code(), 3);
        report.run = Some(PairsRun { left_out: Vec::new(), ..run(0) });
        assert_eq!(report.exit_code(), 3);
    }

    #[test]
    fn warnings_and_a_wrong_topology_are_said_and_exit_with_one() {
        let warning = Warning { kind: Kind::NodeRx, element: "n7".into(), effect: 0.95, error: 0.0045, pairs: 60 };
        let misfit = Misfit {
            node: "n017".into(),
            said: "leaf3".into(),
            fits: Some("leaf5".into()),
            swapped_with: Some("n033".into()),
            by: "paths".into(),
        };
        let mut report = PairsReport::new(Source::Csv);
        report.add("bw", Localisation { warnings: vec![warning], ..Localisation::default() });
        assert_eq!(report.exit_code(), 1);
        report.add("bw", Localisation { misfits: vec![misfit], ..Localisation::default() });
        assert_eq!(report.exit_code(), 1);
        let lines = report.lines();
        assert_eq!(lines[0], "topology says n017 is on leaf3, the measured paths say leaf5: swapped with n033?");
        assert_eq!(
            lines[1],
            "warning: receiving side of node n7: bw -5.0 % against its peers (standard error 0.4 %, 60 visits)"
        );
    }

    #[test]
    fn a_sure_node_says_what_the_pairs_cannot_tell() {
        let suspect = Suspect {
            kind: Kind::Node,
            element: "n1".into(),
            effect: 0.5,
            interval: [0.4, 0.6],
            pairs: 30,
            slow: 30,
            confidence: 0.99,
        };
        let mut report = PairsReport::new(Source::Csv);
        report.add("bw", Localisation { suspects: vec![suspect], ..Localisation::default() });
        assert!(report.lines()[0].starts_with("node n1: bw -50 % against its peers (95 % interval -60 to -40 %;"));
        assert!(report.lines()[1].contains("n1's NIC or its cable or its port of the leaf"), "{:?}", report.lines());
    }
}
