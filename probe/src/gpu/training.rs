//! The GPUs of this node as one rank of a training over many nodes: a worker that gets orders, and memory through which gradients
//! go to and fro.

use std::fs::File;
use std::io::Write;
use std::net::IpAddr;
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt;
use std::process::{Child, ChildStdin, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use muster_wire::{Datum, Fact, Frame, Outcome, Reading};
use rustix::fs::{MemfdFlags, memfd_create};

use super::program::Program;
use super::worker::{self, News};
use super::{halt, node};
use crate::pair::counters::interface;
use crate::steps::Halt;

/// Most numbers that a worker may ask to be exchanged: those of 16 GB.
const MOST: usize = 4 << 30;

/// Beyond its own time, a worker that waits for those of other nodes has so much: whoever is to blame says so first.
pub(crate) const PATIENCE: Duration = Duration::from_secs(5);
/// How often a wait looks whether it was ended.
const TICK: Duration = Duration::from_millis(50);
/// NCCL's setting for the interface that it uses between nodes.
const INTERFACE: &str = "NCCL_SOCKET_IFNAME";
/// Words of what NCCL's ranks find each other by.
const ID: usize = 16;

/// A worker that trains; ended when dropped.
pub(crate) struct Training<'a> {
    child: Child,
    orders: Option<ChildStdin>,
    news: Receiver<(usize, News)>,
    memory: File,
    limit: Duration,
    /// Asks to end.
    stop: &'a AtomicBool,
    /// What it was told last, or does of that.
    at: String,
    /// Whether it waits for workers of other nodes.
    waits: bool,
    bytes: Vec<u8>,
    /// How many GPUs train.
    pub(crate) gpus: usize,
    /// How they compute and add up, as in the identity of metrics.
    pub(crate) engine: String,
    /// What must be the same on all nodes.
    pub(crate) code: String,
    /// Numbers that are exchanged.
    pub(crate) words: usize,
    /// Version of NCCL, or why it cannot sum over nodes.
    pub(crate) nccl: Result<u64, String>,
    _program: Program,
}

impl<'a> Training<'a> {
    /// Starts it on all GPUs of this node; an answer has to come within `limit`. Where NCCL may sum over nodes it does so from the
    /// interface of `address`.
    ///
    /// # Errors
    /// Why there are no GPUs to train `model` on.
    pub(crate) fn start(
        model: &str,
        limit: Duration,
        (stop, address): (&'a AtomicBool, Option<IpAddr>),
    ) -> Result<Self, Halt> {
        if !node::has_gpu() {
            return Err(Halt::NotApplicable("no NVIDIA GPU on this node".to_owned()));
        }
        let failed = |why: std::io::Error| Halt::Failed(format!("the GPU worker does not start: {why}"));
        let program = Program::new().map_err(Halt::NotRun)?;
        let memory = memory().map_err(failed)?;
        let path = format!("/proc/{}/fd/{}", std::process::id(), memory.as_raw_fd());
        let mut arguments = vec!["train".to_owned(), model.to_owned(), path];
        arguments.extend(address.map(|_| "nccl".to_owned()));
        let own = address.filter(|_| std::env::var_os(INTERFACE).is_none()).and_then(interface);
        let variable = own.map(|name| (INTERFACE, format!("={name}")));
        let mut child = program.start_with(&arguments, Stdio::piped(), variable).map_err(failed)?;
        let (post, news) = channel();
        worker::hear(0, &mut child, post);
        let (orders, at) = (child.stdin.take(), "starting".to_owned());
        let mut training = Self {
            child,
            orders,
            news,
            memory,
            limit,
            stop,
            at,
            waits: false,
            bytes: Vec::new(),
            gpus: 0,
            engine: String::new(),
            code: String::new(),
            words: 0,
            nccl: Err(String::new()),
            _program: program,
        };
        let said = training.answer()?;
        (training.gpus, training.words) = (number(&said, "gpus")? as usize, number(&said, "words")? as usize);
        (training.engine, training.code) = (text(&said, "engine")?, text(&said, "code")?);
        if training.gpus == 0 || training.words > MOST {
            return Err(Halt::Failed(format!("the GPU worker has {} GPUs, {} words", training.gpus, training.words)));
        }
        training.nccl = number(&said, "nccl")
            .map(|version| version as u64)
            .map_err(|_| text(&said, "nccl.lacks").unwrap_or_default());
        training.bytes = vec![0; training.words * size_of::<f32>()];
        training.memory.set_len(training.bytes.len() as u64).map_err(failed)?;
        Ok(training)
    }

    /// Lets NCCL bring the GPUs of this node together.
    ///
    /// # Errors
    /// The worker's.
    pub(crate) fn alone(&mut self) -> Result<(), Halt> {
        self.ask_as("alone", "the start of NCCL on this node alone").map(drop)
    }

    /// By what the workers of all nodes find each other.
    ///
    /// # Errors
    /// The worker's.
    pub(crate) fn id(&mut self) -> Result<[u64; ID], Halt> {
        let text = text(&self.ask_as("id", "NCCL's id")?, "id")?;
        let digits = text.as_bytes().as_chunks::<ID>().0;
        let word = |digits: &[u8; ID]| u64::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok();
        let words: Option<Vec<u64>> = digits.iter().map(word).collect();
        words.and_then(|words| words.try_into().ok()).ok_or_else(|| strange("id"))
    }

    /// Lets NCCL bring the GPUs of all nodes together: from here on it sums over all of them, and no gradients come here.
    ///
    /// # Errors
    /// The worker's.
    pub(crate) fn join(&mut self, id: [u64; ID], (first, world): (u64, u64)) -> Result<(), Halt> {
        let id: String = id.iter().map(|word| format!("{word:016x}")).collect();
        self.engine = text(&self.ask_as(&format!("join {id} {first} {world}"), "joining NCCL")?, "engine")?;
        (self.words, self.bytes) = (0, Vec::new());
        Ok(())
    }

    /// What is wrong on this node with a sum of known numbers of `count` GPUs from `first` on, over all nodes.
    ///
    /// # Errors
    /// The worker's.
    pub(crate) fn known(&mut self, (first, count): (usize, usize)) -> Result<Option<String>, Halt> {
        Ok(text(&self.ask(&format!("known {first} {count}"))?, "wrong").ok())
    }

    /// What it waits for that other nodes may hold up, if it does.
    pub(crate) fn waiting(&self) -> Option<&str> {
        self.waits.then_some(&*self.at)
    }

    /// Whether somebody asks to end before long.
    pub(crate) fn is_ended_meanwhile(&self) -> bool {
        let until = Instant::now() + PATIENCE;
        while Instant::now() < until && !self.stop.load(Ordering::Acquire) {
            std::thread::sleep(TICK);
        }
        self.stop.load(Ordering::Acquire)
    }

    /// Goes to before the first step, GPU `i` with batch `first + i`. Returns a word about what batch 0 gives on every GPU of this
    /// node: the same on every other.
    ///
    /// # Errors
    /// When a GPU is wrong, and which.
    pub(crate) fn begin(&mut self, first: u64) -> Result<String, Halt> {
        text(&self.ask(&format!("begin {first}"))?, "same")
    }

    /// Adds the gradients of all GPUs to `sums`. Returns the sum of their losses, and how long each GPU computed, seconds.
    ///
    /// # Errors
    /// The worker's.
    pub(crate) fn backward(&mut self, sums: &mut [f32]) -> Result<(f32, Vec<f64>), Halt> {
        let said = self.ask("backward")?;
        self.memory.read_exact_at(&mut self.bytes, 0).map_err(|why| Halt::Failed(why.to_string()))?;
        let (words, _) = self.bytes.as_chunks();
        sums.iter_mut().zip(words).for_each(|(sum, word)| *sum += f32::from_le_bytes(*word));
        let seconds = |gpu| Ok(number(&said, &format!("ms.{gpu}"))? / 1e3);
        Ok((number(&said, "loss")? as f32, (0..self.gpus).map(seconds).collect::<Result<_, Halt>>()?))
    }

    /// Updates the weights of all GPUs by `gradients`. Returns a word about all weights, and now and then, in the same steps on every
    /// node, one as of [`Training::begin`].
    ///
    /// # Errors
    /// The worker's, and when a GPU is wrong, and which.
    pub(crate) fn update(&mut self, gradients: &[f32]) -> Result<(u64, Option<String>), Halt> {
        let (words, _) = self.bytes.as_chunks_mut();
        words.iter_mut().zip(gradients).for_each(|(word, gradient)| *word = gradient.to_le_bytes());
        self.memory.write_all_at(&self.bytes, 0).map_err(|why| Halt::Failed(why.to_string()))?;
        let said = self.ask("update")?;
        let weights = u64::from_str_radix(&text(&said, "weights")?, 16).map_err(|_| strange("weights"))?;
        Ok((weights, text(&said, "same").ok()))
    }

    fn ask(&mut self, order: &str) -> Result<Vec<Fact>, Halt> {
        self.ask_as(order, order)
    }

    /// `at` says to a person what it does then.
    fn ask_as(&mut self, order: &str, at: &str) -> Result<Vec<Fact>, Halt> {
        at.clone_into(&mut self.at);
        // One that has ended says why in what is read next.
        let _ = self.orders.as_mut().map(|orders| writeln!(orders, "{order}"));
        self.answer()
    }

    fn answer(&mut self) -> Result<Vec<Fact>, Halt> {
        self.waits = false;
        let mut limit = self.limit;
        let begun = Instant::now();
        loop {
            if self.stop.load(Ordering::Acquire) {
                return Err(Halt::Stopped);
            }
            match self.news.recv_timeout(TICK.min(limit.saturating_sub(begun.elapsed()))) {
                Ok((_, News::Said(Frame::Facts(told)))) => return Ok(told.facts),
                Ok((_, News::Said(Frame::Finished(end)))) => {
                    // A failure of its own is not what it waits for.
                    self.waits &= matches!(end.outcome, Outcome::NotRun(_));
                    return Err(halt(end.outcome));
                }
                Ok((_, News::Said(Frame::Progress(progress)))) => {
                    (self.at, self.waits, limit) = (progress.note, true, self.limit + PATIENCE);
                }
                Ok((_, News::Said(_))) => {}
                Ok((_, News::Silent(why))) => {
                    self.waits = false;
                    return Err(halt(worker::post_mortem(&mut self.child, why, &self.at)));
                }
                Err(_) if begun.elapsed() < limit => {}
                Err(_) => {
                    let stuck = worker::end(&mut self.child).map(|why| format!("; {why}")).unwrap_or_default();
                    let (seconds, at) = (limit.as_secs(), &self.at);
                    return Err(halt(Outcome::Failed(format!(
                        "hang: no progress for {seconds} s after '{at}'{stuck}"
                    ))));
                }
            }
        }
    }
}

impl Drop for Training<'_> {
    fn drop(&mut self) {
        worker::end(&mut self.child);
    }
}

/// Memory that another process opens by its name in `/proc`.
fn memory() -> std::io::Result<File> {
    // Kernels from 6.3 on may demand the flag, older ones do not know it.
    let fd = memfd_create("muster-sums", MemfdFlags::CLOEXEC | MemfdFlags::NOEXEC_SEAL)
        .or_else(|_| memfd_create("muster-sums", MemfdFlags::CLOEXEC))?;
    Ok(File::from(fd))
}

fn number(said: &[Fact], key: &str) -> Result<f64, Halt> {
    let found = said.iter().find(|fact| fact.key == key).map(|fact| &fact.reading);
    match found {
        Some(Reading::Value(Datum::Number(number))) if *number >= 0.0 || key == "loss" => Ok(*number),
        _ => Err(strange(key)),
    }
}

fn text(said: &[Fact], key: &str) -> Result<String, Halt> {
    let found = said.iter().find(|fact| fact.key == key).map(|fact| &fact.reading);
    match found {
        Some(Reading::Value(Datum::Text(text))) => Ok(text.clone()),
        _ => Err(strange(key)),
    }
}

fn strange(key: &str) -> Halt {
    Halt::Failed(format!("the GPU worker does not say its {key}"))
}
