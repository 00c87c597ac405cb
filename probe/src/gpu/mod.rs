//! GPU work: whether there is a GPU, and the worker that is started for each.
//!
//! A static program cannot load the NVIDIA driver's library, so the work is done by a second program that is carried in
//! this one. Its crash, hang or missing driver is an outcome, never the end of the probe.

mod libraries;
mod node;
mod program;
mod team;
mod telemetry;
mod training;
mod worker;

use std::sync::atomic::AtomicBool;
use std::time::Duration;

use muster_wire::{Datum, Fact, Frame, Outcome, Profile, Reading, RunsOn, benchmark};

use crate::bench::{Context, rdma_port};
use crate::steps::Halt;
use program::Program;
use team::Team;

pub(crate) use telemetry::Telemetry;
pub(crate) use training::{PATIENCE, Training};

/// The driver has to answer simple questions within this time.
const ANSWER: Duration = Duration::from_secs(8);

/// Runs the benchmark called `name` on every GPU of this node.
pub(crate) fn run(name: &str, context: &mut Context<'_>) -> Result<(), Halt> {
    if !node::has_gpu() {
        return Err(Halt::NotApplicable("no NVIDIA GPU on this node".to_owned()));
    }
    if name == "ib-allreduce" && !rdma_port() {
        return Err(Halt::NotApplicable("no InfiniBand or RoCE port of this node is up".to_owned()));
    }
    let program = Program::new().map_err(Halt::NotRun)?;
    let count = count(&program, context)?;
    let limit = limit(context.profile);
    let runs_on = benchmark(name).map_or(RunsOn::EachGpu, |entry| entry.runs_on);
    if runs_on == RunsOn::AllGpus {
        if count == 1 {
            return Err(Halt::NotApplicable("one GPU".to_owned()));
        }
        return ask(&program, &["run", name, context.profile.name(), "all"], limit, context);
    }
    let waves: Vec<Vec<usize>> = match runs_on {
        RunsOn::GpuByGpu => (0..count).map(|gpu| vec![gpu]).collect(),
        _ => vec![(0..count).collect()],
    };
    let mut troubles = Vec::new();
    for wave in waves {
        let arguments =
            |gpu: usize| ["run", name, context.profile.name(), &gpu.to_string()].map(str::to_owned).to_vec();
        let work = wave.into_iter().map(|gpu| (gpu, arguments(gpu))).collect();
        troubles.extend(Team::start(&program, work).listen(limit, context)?);
    }
    judge(&|gpu| format!("GPU {gpu}"), (count, "GPUs"), troubles)
}

/// A worker has to get on with its work within this time.
const fn limit(profile: Profile) -> Duration {
    Duration::from_secs(if matches!(profile, Profile::Smoke) { 12 } else { 60 })
}

/// The workers of a benchmark that needs a library of the node but no GPU.
pub(crate) struct Workers(Program);

impl Workers {
    /// Puts the program where it can be executed.
    pub(crate) fn new() -> Result<Self, Halt> {
        Program::new().map(Self).map_err(Halt::NotRun)
    }

    /// Runs one worker with these arguments, known by a number; how it ended if not well.
    pub(crate) fn run(&self, work: (usize, Vec<String>), context: &mut Context<'_>) -> Result<Option<Outcome>, Halt> {
        let ended = Team::start(&self.0, vec![work]).listen(limit(context.profile), context)?;
        Ok(ended.into_iter().next().map(|(_, outcome)| outcome))
    }
}

fn count(program: &Program, context: &mut Context<'_>) -> Result<usize, Halt> {
    let mut count = 0;
    let mut emit = |frame: Frame| {
        if let Frame::Facts(found) = frame
            && let Some(Reading::Value(Datum::Number(number))) = found.facts.first().map(|fact| &fact.reading)
        {
            count = *number as usize;
        }
    };
    let mut quiet = Context { emit: &mut emit, ..*context };
    ask(program, &["count"], ANSWER, &mut quiet)?;
    Ok(count)
}

/// Starts one worker for the whole node.
fn ask(program: &Program, what: &[&str], limit: Duration, context: &mut Context<'_>) -> Result<(), Halt> {
    let arguments = what.iter().map(|word| (*word).to_owned()).collect();
    let asked = Team::start(program, vec![(0, arguments)]).listen(limit, context)?;
    asked.into_iter().next().map_or(Ok(()), |(_, outcome)| Err(halt(outcome)))
}

/// What NVIDIA's management library tells of every GPU, and whether it could be asked: `nvml` is absent without a GPU or
/// without the library.
pub(crate) fn health() -> Vec<Fact> {
    let mut facts = Vec::new();
    let mut emit = |frame: Frame| {
        if let Frame::Facts(told) = frame {
            facts.extend(told.facts);
        }
    };
    let stop = AtomicBool::new(false);
    let mut context = Context { profile: Profile::Smoke, scratch: None, stop: &stop, steps: None, emit: &mut emit };
    let asked = if node::has_gpu() {
        Program::new().map_err(Halt::NotRun).and_then(|program| ask(&program, &["health"], ANSWER, &mut context))
    } else {
        Err(Halt::NotApplicable(String::new()))
    };
    let reading = match asked {
        Ok(()) => Reading::Value(Datum::Flag(true)),
        Err(Halt::Failed(why)) => Reading::Failed(why),
        Err(Halt::Denied(_)) => Reading::Denied,
        Err(_) => Reading::Absent,
    };
    facts.push(Fact { key: "nvml".to_owned(), reading, unit: None });
    facts
}

/// What is said of the benchmark when each GPU (or other part, called as `name` says) has ended: the worst of them, and which.
pub(crate) fn judge(
    name: &dyn Fn(usize) -> String,
    (count, kind): (usize, &str),
    mut troubles: Vec<(usize, Outcome)>,
) -> Result<(), Halt> {
    let rank = |outcome: &Outcome| match outcome {
        Outcome::Failed(_) => 0,
        Outcome::NotApplicable(_) => 2,
        _ => 1,
    };
    troubles.sort_by_key(|(part, outcome)| (rank(outcome), *part));
    let Some((_, worst)) = troubles.first() else { return Ok(()) };
    // What no part can do is said once.
    if let (Outcome::NotApplicable(why), true) = (worst, troubles.len() == count) {
        return Err(Halt::NotApplicable(why.clone()));
    }
    let said: Vec<String> = troubles
        .iter()
        .map(|(part, outcome)| (name(*part), outcome.why().unwrap_or_default()))
        .map(|(part, why)| if says_itself(why, &part) { why.to_owned() } else { format!("{part}: {why}") })
        .collect();
    let text = format!("{} ({} of {count} {kind})", said.join("; "), troubles.len());
    Err(if matches!(worst, Outcome::Failed(_)) { Halt::Failed(text) } else { Halt::NotRun(text) })
}

/// Whether a sentence begins with the part that it is about.
fn says_itself(why: &str, part: &str) -> bool {
    why.strip_prefix(part).is_some_and(|rest| !rest.starts_with(|c: char| c.is_ascii_digit()))
}

fn halt(outcome: Outcome) -> Halt {
    match outcome {
        Outcome::NotApplicable(why) => Halt::NotApplicable(why),
        Outcome::NotRun(why) => Halt::NotRun(why),
        Outcome::Denied(why) => Halt::Denied(why),
        Outcome::Failed(why) => Halt::Failed(why),
        Outcome::Done => Halt::Failed("the GPU worker said nothing".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn judged(count: usize, troubles: Vec<(usize, Outcome)>) -> Result<(), Halt> {
        judge(&|gpu| format!("GPU {gpu}"), (count, "GPUs"), troubles)
    }

    #[test]
    fn the_worst_gpu_speaks_first_and_every_one_is_named() {
        let troubles = vec![
            (1, Outcome::NotRun("too old".into())),
            (6, Outcome::Failed("GPU 6: word 3 is wrong".into())),
            (7, Outcome::Failed("ended by signal 11".into())),
        ];
        let Err(Halt::Failed(why)) = judged(8, troubles) else { panic!() };
        assert_eq!(why, "GPU 6: word 3 is wrong; GPU 7: ended by signal 11; GPU 1: too old (3 of 8 GPUs)");
        assert_eq!(judged(8, Vec::new()), Ok(()));
        let of_another = vec![(1, Outcome::Failed("GPU 12 to GPU 1: wrong".into()))];
        let Err(Halt::Failed(why)) = judged(16, of_another) else { panic!() };
        assert_eq!(why, "GPU 1: GPU 12 to GPU 1: wrong (1 of 16 GPUs)");
        let absent = |gpu| (gpu, Outcome::NotApplicable("no libcublasLt.so.12 on this node".into()));
        let Err(Halt::NotApplicable(why)) = judged(2, vec![absent(0), absent(1)]) else { panic!() };
        assert_eq!(why, "no libcublasLt.so.12 on this node");
        let Err(Halt::NotRun(why)) = judged(2, vec![absent(1)]) else { panic!() };
        assert!(why.starts_with("GPU 1: no "), "{why}");
    }
}
