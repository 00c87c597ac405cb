//! The worker's side of the conversation with the probe: frames on what was stdout, nothing else there.

use std::fs::File;
use std::io::{self, Write};
use std::os::fd::AsFd;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::ExitCode;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use muster_wire::{
    Beat, Datum, Fact, Facts, Finished, Frame, Outcome, PREAMBLE, Profile, Progress, Reading, clean, encode, limits,
};

use crate::driver::{self, Gpu, Trouble};
use crate::nvml::Nvml;
use crate::telemetry::{self, Periods};
use crate::{bench, health, member, verbs};

/// Signs of life are this far apart.
const PULSE: Duration = Duration::from_millis(500);
/// Exit code of a command line that is not understood.
const USAGE: u8 = 64;

const HELP: &str = "muster-gpu is the part of muster-probe that loads libraries of the node: the NVIDIA driver, libibverbs.
It is started by the probe:
  muster-gpu count                      how many GPUs the driver shows
  muster-gpu run BENCHMARK PROFILE GPU  one benchmark on one GPU, or over all together: all
  muster-gpu loopback PROFILE ADAPTER PORT GID CPUS GPU
                                        one port of an RDMA adapter writes to itself, in memory of the host and of
                                        a GPU; GID, GPU: an index, or -
  muster-gpu watch PERIOD FINE          what all GPUs do, every PERIOD ms and in part every FINE ms, until nobody listens
  muster-gpu train MODEL FILE [nccl]    one rank of a training over many nodes: commands come on stdin, sums in FILE;
                                        nccl: say whether NCCL could sum over all nodes
  muster-gpu health                     what NVIDIA's management library tells of every GPU
Frames of muster's wire contract go to stdout.";

#[derive(Clone)]
struct Out(Arc<Mutex<File>>);

impl Out {
    /// Takes stdout for the frames alone: libraries that print go to stderr from here on.
    fn take() -> io::Result<Self> {
        let mut file = File::from(io::stdout().as_fd().try_clone_to_owned()?);
        rustix::stdio::dup2_stdout(io::stderr())?;
        file.write_all(PREAMBLE)?;
        Ok(Self(Arc::new(Mutex::new(file))))
    }

    fn say(&self, frame: &Frame) {
        let Ok(bytes) = encode(frame) else { return };
        let mut file = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if file.write_all(&bytes).is_err() {
            // Nobody listens any more: the probe is gone.
            std::process::exit(1);
        }
    }
}

/// What to do.
enum Task {
    Count,
    Run(String, Profile, usize),
    RunAll(String, Profile),
    Health,
    Loopback(verbs::Order),
    Watch(Periods),
    Train(String, member::Place),
}

/// Runs the worker with the arguments of its command line.
pub fn main(args: &[String]) -> ExitCode {
    let Some(task) = understood(args) else {
        eprintln!("{HELP}");
        return ExitCode::from(USAGE);
    };
    if let Task::RunAll(name, _) = &task {
        for (variable, value) in bench::environment(name) {
            // SAFETY: this process has no other thread yet.
            #[expect(unsafe_code, reason = "libraries read their settings from the environment")]
            unsafe {
                std::env::set_var(variable, value);
            }
        }
    }
    let out = match Out::take() {
        Ok(out) => out,
        Err(error) => {
            eprintln!("muster-gpu: cannot take stdout: {error}");
            return ExitCode::FAILURE;
        }
    };
    let begin = Instant::now();
    let pulse = out.clone();
    thread::spawn(move || {
        loop {
            pulse.say(&Frame::Beat(Beat { wall_ns: 0, monotonic_ns: begin.elapsed().as_nanos() as u64, nonce: 0 }));
            thread::sleep(PULSE);
        }
    });
    // The bindings panic on a symbol that this driver does not have.
    std::panic::set_hook(Box::new(|_| {}));
    let done = catch_unwind(AssertUnwindSafe(|| work(&task, &mut |frame| out.say(&frame))));
    let outcome = match done {
        Ok(Ok(())) => Outcome::Done,
        Ok(Err(trouble)) => trouble.into(),
        Err(panic) => Outcome::Failed(clean(&words(panic.as_ref()), limits::TEXT_BYTES)),
    };
    let name = match &task {
        Task::Run(name, ..) | Task::RunAll(name, _) => name.clone(),
        Task::Count => "count".to_owned(),
        Task::Loopback(_) => "loopback".to_owned(),
        Task::Health => "health".to_owned(),
        Task::Watch(_) => "watch".to_owned(),
        Task::Train(..) => "train".to_owned(),
    };
    out.say(&Frame::Finished(Finished { name, outcome, elapsed_ns: begin.elapsed().as_nanos() as u64 }));
    // Destructors of a driver in trouble may hang; all that is to be said was said.
    std::process::exit(0)
}

fn understood(args: &[String]) -> Option<Task> {
    match args {
        [word] if word == "count" => Some(Task::Count),
        [word] if word == "health" => Some(Task::Health),
        [word, all, fine] if word == "watch" => {
            Some(Task::Watch(Periods::of_ms(all.parse().ok()?, fine.parse().ok()?)))
        }
        [word, model, file, nccl @ ..] if word == "train" => {
            let nccl = match nccl {
                [] => false,
                [word] if word == "nccl" => true,
                _ => return None,
            };
            Some(Task::Train(model.clone(), member::Place { file: file.clone(), nccl }))
        }
        [word, order @ ..] if word == "loopback" => verbs::Order::parse(order).map(Task::Loopback),
        [word, name, profile, all] if word == "run" && all == "all" => {
            Some(Task::RunAll(name.clone(), profile.parse().ok()?))
        }
        [word, name, profile, index] if word == "run" => {
            Some(Task::Run(name.clone(), profile.parse().ok()?, index.parse().ok()?))
        }
        _ => None,
    }
}

/// Every GPU of the node.
fn all() -> Result<Vec<Gpu>, Trouble> {
    let open = |index| Gpu::open(index).map_err(|trouble| trouble.about(&format!("GPU {index}")));
    (0..driver::count()?).map(open).collect()
}

fn work(task: &Task, say: &mut dyn FnMut(Frame)) -> Result<(), Trouble> {
    let told = |facts: Vec<Fact>| Frame::Facts(Facts { collector: "gpu".to_owned(), facts });
    match task {
        Task::Count => {
            let reading = Reading::Value(Datum::Number(driver::count()? as f64));
            say(told(vec![Fact { key: "gpu.count".to_owned(), reading, unit: None }]));
        }
        Task::Run(name, profile, index) => {
            driver::count()?;
            bench::run(name, &Gpu::open(*index)?, *profile, say)?;
        }
        Task::RunAll(name, profile) => {
            bench::run_all(name, &all()?, *profile, say)?;
        }
        Task::Train(model, place) => member::run((&all()?, model), place, &mut io::stdin().lock(), say)?,
        Task::Loopback(order) => verbs::run(order, say)?,
        Task::Watch(periods) => telemetry::run(&Nvml::load()?, *periods, say)?,
        Task::Health => {
            let nvml = Nvml::load()?;
            let count = match nvml.count() {
                Reading::Failed(why) => return Err(Trouble::Failed(why)),
                count => count.value().copied().unwrap_or(0),
            };
            for index in 0..count {
                // Said before, so that a GPU that hangs is known.
                let (done, note) = (f64::from(index) / f64::from(count), format!("GPU {index}: health"));
                say(Frame::Progress(Progress { benchmark: "health".to_owned(), done, note }));
                say(told(health::facts(&nvml, index)));
            }
        }
    }
    Ok(())
}

fn words(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().map(String::as_str).or_else(|| panic.downcast_ref::<&str>().copied());
    format!("internal error: {}", text.unwrap_or("without words"))
}
