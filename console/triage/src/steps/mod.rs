//! Aegis' procedure, one file a step: each says what it found, and why it ends there or goes on.

mod critical;
mod distributed;
mod grown;
mod hang;
mod health;
mod local;
pub(super) mod others;
mod processes;
mod program;
mod scheduler;
mod slow;

use super::alerts;
use super::confidence::{Weight, confidence};
use super::facts::Facts;
use super::grown::Grown;
use super::health::Ailing;
use super::procedure::GUESS;
use super::report::{Done, Evidence, Kind, Source, Suspect};
use muster_logs::Category;
use muster_logs::fault::Cause;

/// Most lines of evidence of one suspect.
const EVIDENCE: usize = 12;
/// Most suspects.
pub(super) const SUSPECTS: usize = 16;

/// What a step concludes.
#[derive(Clone, Debug)]
pub(super) struct Verdict {
    /// What went wrong.
    pub category: Category,
    /// Who.
    pub suspects: Vec<Suspect>,
}

type Step = fn(&Facts<'_>) -> (Done, Option<Verdict>);

/// The steps in their order: what breaks machines first, then what looks like the network and is not, then the network.
pub(super) const STEPS: [Step; 11] = [
    critical::step,
    scheduler::step,
    program::step,
    local::step,
    processes::step,
    distributed::step,
    hang::step,
    slow::step,
    grown::step,
    health::step,
    others::step,
];

/// A suspect that is put together.
pub(super) struct Draft {
    suspect: Suspect,
    weights: Vec<Weight>,
}

impl Draft {
    /// Of a kind, on a node, of a rank.
    pub(super) fn new(kind: Kind, node: Option<String>, rank: Option<u32>) -> Self {
        let suspect = Suspect {
            kind,
            node,
            rank,
            gpu: None,
            element: None,
            cause: Cause::default(),
            confidence: 0.0,
            sentence: String::new(),
            evidence: Vec::new(),
        };
        Self { suspect, weights: Vec::new() }
    }

    /// With the rank's GPU.
    pub(super) fn gpu(mut self, gpu: Option<u32>) -> Self {
        self.suspect.gpu = gpu;
        self
    }

    /// With the part itself.
    pub(super) fn element(mut self, element: Option<String>) -> Self {
        self.suspect.element = element;
        self
    }

    /// With what exactly is wrong.
    pub(super) fn cause(mut self, cause: impl Into<Cause>) -> Self {
        self.suspect.cause = cause.into();
        self
    }

    /// More evidence of a kind.
    pub(super) fn add(&mut self, weight: Weight, evidence: impl IntoIterator<Item = Evidence>) {
        self.weights.push(weight);
        self.tell(evidence);
    }

    /// More evidence that weighs nothing.
    fn tell(&mut self, evidence: impl IntoIterator<Item = Evidence>) {
        let room = EVIDENCE.saturating_sub(self.suspect.evidence.len());
        self.suspect.evidence.extend(evidence.into_iter().take(room));
    }

    /// Whatever else is told of its rank and node, beside what it was made from.
    pub(super) fn corroborate(&mut self, facts: &Facts<'_>) {
        let (rank, node) = (self.suspect.rank, self.suspect.node.clone());
        let of_node = |other: u32| node.is_some() && facts.layout.node_of(other) == node.as_deref();
        let it = |other: u32| rank.map_or_else(|| of_node(other), |rank| rank == other);
        for (source, _, walk) in &facts.walks {
            if let Some(root) = walk.roots.iter().find(|root| it(root.rank)) {
                let text = format!(
                    "rank {} is behind and waits for nobody; {} for it",
                    root.rank,
                    ranks(root.waiting, ["waits", "wait"])
                );
                self.add(super::steps::hang::weight(*source, facts), [seen(*source, &node, Some(root.rank), text)]);
            }
        }
        if let Some(gone) = facts.gone.iter().find(|gone| it(**gone)) {
            self.add(
                Weight::RasGone,
                [seen(Source::Ras, &node, Some(*gone), format!("RAS gets no answer from rank {gone}"))],
            );
        }
        if let Some(silent) = facts.silent().into_iter().find(|silent| it(*silent)) {
            let text = format!("{} ranks told a time-out, rank {silent} did not", facts.timed_out.len());
            self.add(Weight::Silent, [seen(Source::Log, &node, Some(silent), text)]);
        }
        if let Some(rank) = rank {
            self.standing(facts, rank);
        }
        self.watched(facts);
        self.checked(facts);
        self.counted(facts);
        if let super::rootdiag::Blame::One(host, share) = &facts.lost.blame
            && Some(host) == node.as_ref()
        {
            let text = format!("{:.0} % of the host pairs that lost each other touch it", share * 100.0);
            self.add(Weight::Complaints, [seen(Source::Log, &node, None, text)]);
        }
    }

    /// What a watch of the job alerted of on its node.
    pub(super) fn watched(&mut self, facts: &Facts<'_>) {
        let node = self.suspect.node.clone();
        let own = alerts::standing(facts).into_iter().filter(|(of, _)| Some(of) == node.as_ref());
        let told: Vec<Evidence> = own
            .map(|(_, alert)| Evidence {
                at: Some(alert.since_s),
                ..seen(Source::Telemetry, &node, None, alert.sentence.clone())
            })
            .collect();
        if !told.is_empty() {
            self.add(Weight::Watched, told);
        }
    }

    /// The health checks that its node fails. Those that may be some other trouble are told and weigh nothing.
    pub(super) fn checked(&mut self, facts: &Facts<'_>) {
        let (node, kind) = (self.suspect.node.clone(), self.suspect.kind);
        let told = |ailing: &Ailing| seen(Source::Check, &node, None, ailing.sentence.clone());
        let (fitting, others): (Vec<&Ailing>, Vec<&Ailing>) =
            facts.health.of_node(node.as_deref()).partition(|ailing| ailing.fits(kind));
        if !fitting.is_empty() {
            self.add(Weight::Check, fitting.into_iter().map(told));
        }
        self.tell(others.into_iter().map(told));
    }

    /// The errors that its node counts meanwhile. Those that may be some other trouble are told and weigh nothing.
    pub(super) fn counted(&mut self, facts: &Facts<'_>) {
        let (node, kind, gpu) = (self.suspect.node.clone(), self.suspect.kind, self.suspect.gpu);
        let told = |grown: &Grown| seen(Source::Counter, &node, None, grown.sentence.clone());
        let (fitting, others): (Vec<&Grown>, Vec<&Grown>) =
            facts.growth.of_node(node.as_deref()).partition(|grown| grown.fits(kind, gpu));
        if !fitting.is_empty() {
            self.add(Weight::Counted, fitting.into_iter().map(told));
        }
        self.tell(others.into_iter().map(told));
    }

    /// What the rank's process did.
    fn standing(&mut self, facts: &Facts<'_>, rank: u32) {
        let node = self.suspect.node.clone();
        let text = processes::told(facts, rank);
        for (weight, text) in text {
            let source = if weight == Weight::Complaints { Source::Log } else { Source::Stack };
            self.add(weight, [seen(source, &node, Some(rank), text)]);
        }
    }

    /// Done, with its sentence.
    pub(super) fn say(mut self, sentence: impl Into<String>) -> Suspect {
        self.suspect.sentence = sentence.into();
        self.suspect.confidence = confidence(&self.weights);
        self.suspect
    }

    /// Done, and worth less than its evidence: one of several that it may be.
    pub(super) fn one_of(self, several: usize, sentence: impl Into<String>) -> Suspect {
        let mut suspect = self.say(sentence);
        if several > 1 {
            suspect.confidence = (suspect.confidence / several as f64 * 100.0).round() / 100.0;
        }
        suspect
    }
}

/// Evidence without a line.
pub(super) fn seen(source: Source, node: &Option<String>, rank: Option<u32>, text: String) -> Evidence {
    Evidence { source, node: node.clone(), rank, at: None, text }
}

/// A step that found something.
pub(super) fn found(step: &'static str, result: impl Into<String>, verdict: Verdict) -> (Done, Option<Verdict>) {
    let likely = verdict.suspects.first().is_some_and(|first| first.confidence >= GUESS);
    let why = if likely {
        format!("This explains what followed: {}.", verdict.category.name())
    } else {
        format!("By itself this is no more than a guess ({}): go on.", verdict.category.name())
    };
    (Done { step, result: result.into(), why }, Some(verdict))
}

/// A step that found nothing.
pub(super) fn nothing(
    step: &'static str,
    result: impl Into<String>,
    why: impl Into<String>,
) -> (Done, Option<Verdict>) {
    (Done { step, result: result.into(), why: why.into() }, None)
}

/// `1 rank says`, `3 ranks say`.
pub(super) fn ranks(count: usize, [says, say]: [&str; 2]) -> String {
    if count == 1 { format!("1 rank {says}") } else { format!("{count} ranks {say}") }
}

/// "rank 5 on n3", "rank 5", "n3".
pub(super) fn who(rank: Option<u32>, node: Option<&str>) -> String {
    match (rank, node) {
        (Some(rank), Some(node)) => format!("rank {rank} on {node}"),
        (Some(rank), None) => format!("rank {rank}"),
        (None, Some(node)) => node.to_owned(),
        (None, None) => "an unknown node".to_owned(),
    }
}

/// The same as the beginning of a sentence.
pub(super) fn upper(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().collect::<String>() + letters.as_str())
}
