//! The frames: what the probe says (`Frame`) and what it is asked (`Request`).

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::bounded;
use crate::{
    Collected, CollectiveOrder, Columns, Datum, Direction, FileChunk, JobOrder, ListenOrder, Listening, MetricId,
    PairOrder, Paired, Peers, Profile, Reading, Tick, TrainOrder, Unit, WatchOrder,
};

/// Version of this contract. A console reads every version up to its own.
pub const PROTOCOL: u16 = 1;

/// Said by the probe.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Frame {
    /// First frame of every stream.
    Hello(Hello),
    /// Read-only facts of one collector.
    Facts(Facts),
    /// How far a benchmark is.
    Progress(Progress),
    /// Raw values of one metric.
    Series(Series),
    /// A benchmark or collector ended, well or not. Everything it sent before belongs to it.
    Finished(Finished),
    /// A line for the log.
    Log(LogLine),
    /// Sign of life, at least every second while the probe works.
    Beat(Beat),
    /// The listening end of a pair is ready.
    Listening(Listening),
    /// One end of a pair is done.
    Paired(Paired),
    /// Which metrics the next ticks hold.
    Columns(Columns),
    /// One look at a node while a job runs.
    Tick(Tick),
    /// How far away other nodes are while a job runs.
    Peers(Peers),
    /// A piece of a file of a job.
    Chunk(FileChunk),
    /// Everything that was asked of a job was sent.
    Collected(Collected),
    /// Last frame; a stream without it was cut.
    Bye(Bye),
}

/// Who speaks, and since when.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Hello {
    /// [`PROTOCOL`] of the probe.
    pub protocol: u16,
    /// Version of the probe's build.
    pub build: String,
    /// Kernel boot id; changes when the node restarts.
    pub boot_id: Reading<String>,
    /// Host name the node gives itself.
    pub hostname: Reading<String>,
    /// Wall clock of the node at the anchor, nanoseconds since 1970 UTC.
    pub wall_ns: u64,
    /// Monotonic clock at the same anchor, nanoseconds.
    pub monotonic_ns: u64,
    /// Process id of the probe; its process group has the same number.
    pub pid: u32,
    /// Names of optional abilities.
    #[serde(default, deserialize_with = "bounded::words")]
    pub capabilities: Vec<String>,
}

/// One fact. `key` is dotted and unique within its collector, such as `nic.eth0.speed`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Fact {
    /// Dotted name.
    pub key: String,
    /// What was read.
    pub reading: Reading<Datum>,
    /// Unit of a number.
    #[serde(default)]
    pub unit: Option<Unit>,
}

/// What one collector saw.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Facts {
    /// Collector name, such as `cpu`.
    pub collector: String,
    /// In the order of the source.
    #[serde(deserialize_with = "bounded::facts")]
    pub facts: Vec<Fact>,
}

/// How far a benchmark is.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Progress {
    /// Benchmark name.
    pub benchmark: String,
    /// Share done, 0 to 1.
    pub done: f64,
    /// What it is doing, such as `triad, step 12 of 40`.
    pub note: String,
}

/// Raw values of one metric, in the order they were measured.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Series {
    /// Identity.
    pub metric: MetricId,
    /// Unit of every value.
    pub unit: Unit,
    /// Which way is better.
    pub direction: Direction,
    /// At least 32 where time allows; warm-up steps are not among them.
    #[serde(deserialize_with = "bounded::values")]
    pub values: Vec<f64>,
    /// Steps discarded as warm-up before the first value.
    #[serde(default)]
    pub warmup: u32,
    /// Monotonic time of the first value, nanoseconds.
    #[serde(default)]
    pub started_ns: u64,
}

/// How a piece of work ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// Ran to its end.
    Done,
    /// Cannot apply to this node (no such hardware).
    NotApplicable(String),
    /// Not permitted to this user.
    Denied(String),
    /// Not run by choice, such as a busy node.
    NotRun(String),
    /// Tried and failed.
    Failed(String),
}

/// Why a work did not run that the probe broke off.
const STOPPED: &str = "stopped";

impl Outcome {
    /// Of a work that the probe broke off, or did not begin, since it was told to end.
    #[must_use]
    pub fn stopped() -> Self {
        Self::NotRun(STOPPED.to_owned())
    }

    /// Whether it is that: the work has no result.
    #[must_use]
    pub fn is_stopped(&self) -> bool {
        matches!(self, Self::NotRun(why) if why == STOPPED)
    }

    /// Why it did not run to its end; nothing where it did.
    #[must_use]
    pub fn why(&self) -> Option<&str> {
        match self {
            Self::Done => None,
            Self::NotApplicable(why) | Self::Denied(why) | Self::NotRun(why) | Self::Failed(why) => Some(why),
        }
    }
}

/// A benchmark or collector ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Finished {
    /// Benchmark name, or `collect/` and the collector's: `disk` is both.
    pub name: String,
    /// How.
    pub outcome: Outcome,
    /// Time it took, nanoseconds.
    pub elapsed_ns: u64,
}

/// Importance of a log line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Level {
    /// Only for finding faults in muster.
    Debug,
    /// Course of events.
    Info,
    /// Worth a look.
    Warn,
    /// Something failed.
    Error,
}

/// A line for the log.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LogLine {
    /// Importance.
    pub level: Level,
    /// One line.
    pub text: String,
}

/// Sign of life.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Beat {
    /// Node's wall clock, nanoseconds since 1970 UTC.
    pub wall_ns: u64,
    /// Node's monotonic clock, nanoseconds.
    pub monotonic_ns: u64,
    /// Number of the ping this answers; zero when unasked.
    #[serde(default)]
    pub nonce: u64,
}

/// Last frame.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Bye {
    /// Frames sent before this one.
    pub frames: u64,
    /// Series sent.
    pub series: u64,
    /// Frames the probe had to drop.
    pub dropped: u64,
    /// `finished`, `stopped`, or why it left early.
    pub reason: String,
}

/// How many steps a benchmark takes, each as long as its profile makes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Steps {
    /// To leave out once the benchmark has become steady.
    pub warmup: u32,
    /// To measure after them.
    pub measured: u32,
}

/// Asked by the console, over the probe's standard input. End of input means the console is gone: the
/// probe stops its work, removes its files and ends.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Request {
    /// Run these, in this order, then say `Bye`.
    Run {
        /// Collector names.
        collectors: Vec<String>,
        /// Benchmark names.
        benchmarks: Vec<String>,
        /// How much work.
        profile: Profile,
        /// Directory for the disk benchmark's file; the probe chooses when absent.
        scratch: Option<String>,
        /// Steps of benchmarks that are not to take those of the profile.
        #[serde(default)]
        steps: BTreeMap<String, Steps>,
    },
    /// Measure with another node, after the pairs asked for before; ends with [`Paired`]. The probe stays for more until
    /// it is told to stop.
    Pair(PairOrder),
    /// Open a port for a collective.
    Listen(ListenOrder),
    /// Take part in a collective; ends with [`Paired`].
    Collective(CollectiveOrder),
    /// Take part in a training; ends with [`Paired`].
    Train(TrainOrder),
    /// Say [`Columns`], and a [`Tick`] for every look, until told to stop.
    Watch(WatchOrder),
    /// Look at the processes of a job and send what they left; ends with [`Collected`].
    Job(JobOrder),
    /// Answer with a [`Beat`]. Sent every few seconds; silence for 30 s means the console is gone.
    Ping {
        /// Returned in the answer.
        nonce: u64,
    },
    /// Stop now, clean up, say `Bye`.
    Stop,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_was_stopped_is_stopped() {
        assert!(Outcome::stopped().is_stopped());
        assert!(
            ![Outcome::Done, Outcome::NotRun("no time".to_owned()), Outcome::Failed(STOPPED.to_owned())]
                .iter()
                .any(Outcome::is_stopped)
        );
    }

    #[test]
    fn whatever_did_not_run_to_its_end_says_why() {
        assert_eq!(Outcome::Done.why(), None);
        for of in [Outcome::NotApplicable, Outcome::Denied, Outcome::NotRun, Outcome::Failed] {
            assert_eq!(of("no disk".to_owned()).why(), Some("no disk"));
        }
    }
}
