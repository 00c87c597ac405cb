//! The GPUs of this node as one rank of a training over many nodes: a worker that gets orders, and memory through which gradients
//! go to and fro.

use std::fs::File;
use std::io::Write;
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt;
use std::process::{Child, ChildStdin, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use muster_wire::{Datum, Fact, Frame, Outcome, Reading};
use rustix::fs::{MemfdFlags, memfd_create};

use super::program::Program;
use super::worker::{self, News};
use super::{halt, node};
use crate::steps::Halt;

/// Most numbers that a worker may ask to be exchanged: those of 16 GB.
const MOST: usize = 4 << 30;

/// A worker that trains; ended when dropped.
pub(crate) struct Training {
    child: Child,
    orders: Option<ChildStdin>,
    news: Receiver<(usize, News)>,
    memory: File,
    limit: Duration,
    /// What it was told last.
    at: String,
    bytes: Vec<u8>,
    /// How many GPUs train.
    pub(crate) gpus: usize,
    /// How they compute and add up, as in the identity of metrics.
    pub(crate) engine: String,
    /// What must be the same on all nodes.
    pub(crate) code: String,
    /// Numbers that are exchanged.
    pub(crate) words: usize,
    _program: Program,
}

impl Training {
    /// Starts it on all GPUs of this node; an answer has to come within `limit`.
    ///
    /// # Errors
    /// Why there are no GPUs to train `model` on.
    pub(crate) fn start(model: &str, limit: Duration) -> Result<Self, Halt> {
        if !node::has_gpu() {
            return Err(Halt::NotApplicable("no NVIDIA GPU on this node".to_owned()));
        }
        let failed = |why: std::io::Error| Halt::Failed(format!("the GPU worker does not start: {why}"));
        let program = Program::new().map_err(Halt::NotRun)?;
        let memory = memory().map_err(failed)?;
        let path = format!("/proc/{}/fd/{}", std::process::id(), memory.as_raw_fd());
        let arguments = ["train".to_owned(), model.to_owned(), path];
        let mut child = program.start_with(&arguments, Stdio::piped()).map_err(failed)?;
        let (post, news) = channel();
        worker::hear(0, &mut child, post);
        let (orders, at) = (child.stdin.take(), "starting".to_owned());
        let mut training = Self {
            child,
            orders,
            news,
            memory,
            limit,
            at,
            bytes: Vec::new(),
            gpus: 0,
            engine: String::new(),
            code: String::new(),
            words: 0,
            _program: program,
        };
        let said = training.answer()?;
        (training.gpus, training.words) = (number(&said, "gpus")? as usize, number(&said, "words")? as usize);
        (training.engine, training.code) = (text(&said, "engine")?, text(&said, "code")?);
        if training.gpus == 0 || training.words > MOST {
            return Err(Halt::Failed(format!("the GPU worker has {} GPUs, {} words", training.gpus, training.words)));
        }
        training.bytes = vec![0; training.words * size_of::<f32>()];
        training.memory.set_len(training.bytes.len() as u64).map_err(failed)?;
        Ok(training)
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
        order.clone_into(&mut self.at);
        // One that has ended says why in what is read next.
        let _ = self.orders.as_mut().map(|orders| writeln!(orders, "{order}"));
        self.answer()
    }

    fn answer(&mut self) -> Result<Vec<Fact>, Halt> {
        let until = Instant::now() + self.limit;
        loop {
            let left = until.saturating_duration_since(Instant::now());
            match self.news.recv_timeout(left) {
                Ok((_, News::Said(Frame::Facts(told)))) => return Ok(told.facts),
                Ok((_, News::Said(Frame::Finished(end)))) => return Err(halt(end.outcome)),
                Ok((_, News::Said(_))) => {}
                Ok((_, News::Silent(why))) => return Err(halt(worker::post_mortem(&mut self.child, why, &self.at))),
                Err(_) => {
                    let stuck = worker::end(&mut self.child).map(|why| format!("; {why}")).unwrap_or_default();
                    let (seconds, at) = (self.limit.as_secs(), &self.at);
                    return Err(halt(Outcome::Failed(format!(
                        "hang: no progress for {seconds} s after '{at}'{stuck}"
                    ))));
                }
            }
        }
    }
}

impl Drop for Training {
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
