//! What triage says: the published document `muster.triage`.

use serde::{Deserialize, Serialize};

use muster_logs::Category;
use muster_logs::fault::Cause;

/// What something was seen in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Source {
    /// The kernel's log.
    Kernel,
    /// What the job wrote.
    Log,
    /// NCCL's RAS.
    Ras,
    /// PyTorch's flight recorder.
    FlightRecorder,
    /// NCCL Inspector.
    Inspector,
    /// A counter of an adapter or GPU.
    Counter,
    /// A health check.
    Check,
    /// Telemetry.
    Telemetry,
    /// A stack.
    Stack,
}

impl Source {
    /// How people call it.
    #[must_use]
    pub const fn title(self) -> &'static str {
        match self {
            Self::Kernel => "kernel log",
            Self::Log => "job log",
            Self::Ras => "NCCL RAS",
            Self::FlightRecorder => "flight recorder",
            Self::Inspector => "NCCL Inspector",
            Self::Counter => "counter",
            Self::Check => "check",
            Self::Telemetry => "telemetry",
            Self::Stack => "stack",
        }
    }
}

/// What is suspected.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// A machine.
    Node,
    /// A process of the job.
    Rank,
    /// A GPU.
    Gpu,
    /// A link or cable.
    Link,
    /// A network adapter.
    Nic,
    /// A switch.
    Switch,
    /// Storage.
    Storage,
    /// The program.
    UserCode,
    /// Nobody.
    None,
}

/// One thing that was seen.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Evidence {
    /// In what.
    pub source: Source,
    /// Node that tells, where known.
    pub node: Option<String>,
    /// Rank that tells, where known.
    pub rank: Option<u32>,
    /// When, epoch seconds on the common clock, where known.
    pub at: Option<f64>,
    /// What.
    pub text: String,
}

/// Something or somebody that may be the root.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Suspect {
    /// What.
    pub kind: Kind,
    /// Its node.
    pub node: Option<String>,
    /// Its rank.
    pub rank: Option<u32>,
    /// Its GPU by index on the node.
    pub gpu: Option<u32>,
    /// The part itself, such as an adapter, a PCI address or a server.
    pub element: Option<String>,
    /// What exactly is wrong, where more is known than the category.
    #[serde(flatten)]
    pub cause: Cause,
    /// How likely this is right, from 0 to 1 (docs/TRIAGE.md says how it is made).
    pub confidence: f64,
    /// What is said.
    pub sentence: String,
    /// What it rests on.
    pub evidence: Vec<Evidence>,
}

/// What a suspicion is about, without what speaks for it: by this it is known again when the case is looked at anew.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Subject {
    /// What.
    pub kind: Kind,
    /// Its node.
    pub node: Option<String>,
    /// Its rank.
    pub rank: Option<u32>,
    /// Its GPU by index on the node.
    pub gpu: Option<u32>,
    /// The part itself.
    pub element: Option<String>,
}

impl Suspect {
    /// What the suspicion is about.
    #[must_use]
    pub fn subject(&self) -> Subject {
        let Self { kind, node, rank, gpu, element, .. } = self.clone();
        Subject { kind, node, rank, gpu, element }
    }
}

/// One event on the common time line.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Told {
    /// When, epoch seconds on the common clock, where known.
    pub at: Option<f64>,
    /// Node.
    pub node: Option<String>,
    /// Rank.
    pub rank: Option<u32>,
    /// In what.
    pub source: Source,
    /// Name of the rule.
    pub event: String,
    /// The line.
    pub text: String,
}

/// Ranks of the job and of what they told.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Ranks {
    /// Ranks of the job.
    pub n: usize,
    /// Ranks of which anything was seen.
    pub seen: usize,
    /// Ranks of which nothing was seen.
    pub missing: Vec<u32>,
}

/// How a node's clock stands against the others.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Offset {
    /// Node.
    pub node: String,
    /// Seconds that its clock is ahead of the median node's.
    pub offset_s: f64,
    /// By how much that may be wrong either way, seconds.
    pub error_s: f64,
}

/// One step of the procedure.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Done {
    /// Which.
    pub step: &'static str,
    /// What it found.
    pub result: String,
    /// Why it ended here, or went on.
    pub why: String,
}

impl<'de> Deserialize<'de> for Done {
    /// Reads back a step of the offline diagnosis: only these are kept beside a case.
    fn deserialize<D: serde::Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        struct Read {
            step: String,
            result: String,
            why: String,
        }
        let Read { step, result, why } = Read::deserialize(from)?;
        let known = super::offline::TESTS.into_iter().find(|known| *known == step);
        let step = known.ok_or_else(|| serde::de::Error::custom(format!("no step is called '{step}'")))?;
        Ok(Self { step, result, why })
    }
}

/// The whole answer.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Report {
    /// `muster.triage`.
    pub schema: &'static str,
    /// Version of the schema.
    pub version: u32,
    /// What went wrong.
    pub category: Category,
    /// What to do now.
    pub action: String,
    /// The command that drains the likeliest suspect's node, where that is to be done.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub drain: Option<String>,
    /// The command that tests the job's nodes without the job, where it has several.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub offline: Option<String>,
    /// Likeliest first.
    pub suspects: Vec<Suspect>,
    /// What was found and a person has marked as wrong.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub marked_wrong: Vec<Suspect>,
    /// Events in the order of the common clock.
    pub timeline: Vec<Told>,
    /// Ranks.
    pub ranks: Ranks,
    /// Clocks.
    pub clocks: Vec<Offset>,
    /// The procedure.
    pub steps: Vec<Done>,
    /// What was not looked at, and why that matters.
    pub not_looked_at: Vec<String>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_something_was_seen_in_is_called_as_people_call_it() {
        use Source::{Check, Counter, FlightRecorder, Inspector, Kernel, Log, Ras, Stack, Telemetry};
        let all = [Kernel, Log, Ras, FlightRecorder, Inspector, Counter, Check, Telemetry, Stack];
        let said = [
            "kernel log",
            "job log",
            "NCCL RAS",
            "flight recorder",
            "NCCL Inspector",
            "counter",
            "check",
            "telemetry",
            "stack",
        ];
        assert_eq!(all.map(Source::title), said);
    }

    #[test]
    fn a_suspicion_is_known_again_by_what_it_is_about_and_not_by_what_speaks_for_it() {
        let of = |element: &str, confidence: f64| Suspect {
            kind: Kind::Link,
            node: Some("n1".to_owned()),
            rank: Some(3),
            gpu: Some(1),
            element: Some(element.to_owned()),
            cause: Cause { pid: Some(7), ..Cause::default() },
            confidence,
            sentence: format!("{confidence}"),
            evidence: Vec::new(),
        };
        assert_eq!(of("mlx5_0", 0.4).subject(), of("mlx5_0", 0.9).subject());
        assert_ne!(of("mlx5_0", 0.4).subject(), of("mlx5_1", 0.4).subject());
        let told = Subject {
            kind: Kind::Link,
            node: Some("n1".into()),
            rank: Some(3),
            gpu: Some(1),
            element: Some("mlx5_0".into()),
        };
        assert_eq!(of("mlx5_0", 0.4).subject(), told);
    }
}
