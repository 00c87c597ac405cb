//! What a rank is told on the command line, and whether it makes sense.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use muster_tape::Model;
use muster_wire::Between;

use super::checkpoint::Checkpoint;

/// Most ranks: their numbers share 16 bits with a mark.
const MOST: usize = 4096;
/// Where the secret of a job comes from, if it is not to be one that everybody can know.
pub(super) const SECRET: &str = "MUSTER_DDP_SECRET";

const AFTER: &str = "Examples, two nodes with two ranks each (start all four; rank 0 and 1 on the first node):
  muster-probe train-ddp --rank 0 --world 4 --ranks-per-node 2 --peers 10.0.0.1:7000,10.0.0.1:7001,10.0.0.2:7000,10.0.0.2:7001
  muster-probe train-ddp --rank 3 … --seconds 600 --timeout 60 --dir /tmp/job     a flight recorder's dump there on trouble

Every rank prints a line for each step. On SIGUSR1 it writes its flight recorder's dump. It answers NCCL RAS's protocol
(STATUS, VERBOSE STATUS, SET FORMAT json, TIMEOUT) on localhost, port 28028. Ranks trust whoever knows the word in the
environment variable MUSTER_DDP_SECRET; without it, everybody who reaches the ports.

Exit codes: 0 done, 1 an error of its own (broken on purpose, a checkpoint that cannot be saved), 2 wrong: weights, sizes or the order of operations differ between ranks,
4 time-out, 5 a rank is gone, 6 another rank ended the job, 64 not understood, 128 + n ended by signal n.";

/// Options of `train-ddp`.
#[derive(Args, Clone, Debug)]
#[command(after_help = AFTER)]
pub(crate) struct Options {
    /// Number of this rank, from 0
    #[arg(long)]
    rank: usize,
    /// Number of ranks
    #[arg(long)]
    world: usize,
    /// Address and port of every rank, in order; ranks of one node follow each other
    #[arg(long, value_delimiter = ',', value_name = "IP:PORT,…")]
    peers: Vec<SocketAddr>,
    /// Ranks of one node
    #[arg(long, default_value_t = 1)]
    ranks_per_node: usize,
    /// Steps [default: until --seconds are over, or 100]
    #[arg(long)]
    steps: Option<u64>,
    /// Seconds after which the first rank ends the job
    #[arg(long)]
    seconds: Option<f64>,
    /// Model: nano (gpt2-nano), gpt2-small, bert-nano, bert-base, lstm-nano, lstm, resnet-nano, resnet50
    #[arg(long, default_value = "nano")]
    model: String,
    /// Batches of each rank in a step
    #[arg(long, default_value_t = 1)]
    batches: u32,
    /// Pause before each step, milliseconds, as if data had to be waited for
    #[arg(long, default_value_t = 0)]
    pause: u64,
    /// Gradients that are summed in one operation, KiB
    #[arg(long, default_value_t = 1024)]
    bucket: usize,
    /// Seconds after which an operation is given up
    #[arg(long, default_value_t = 60.0)]
    timeout: f64,
    /// Seconds within which all ranks must have met
    #[arg(long, default_value_t = 60.0)]
    meet: f64,
    /// Folder for the flight recorder's dump; without it none is written
    #[arg(long)]
    dir: Option<PathBuf>,
    /// Folder to which every rank saves its weights, each checkpoint synced to the disk; without it none is saved
    #[arg(long, value_name = "DIR")]
    checkpoint: Option<PathBuf>,
    /// Steps from one checkpoint to the next
    #[arg(long, default_value_t = 20, value_name = "STEPS")]
    checkpoint_every: u64,
    /// Port on localhost for NCCL RAS's protocol; 0 for none. The first rank of a node that gets it has it
    #[arg(long, default_value_t = 28028)]
    ras_port: u16,
    /// Seconds that RAS waits for the answer of a rank
    #[arg(long, default_value_t = 5.0)]
    ras_patience: f64,
    /// Seconds after which a rank that is gone is considered dead; one that is silent 20 seconds later
    #[arg(long, default_value_t = 60.0)]
    ras_dead: f64,
    /// Break this rank: wrong-size@STEP, deadlock@STEP, exception@STEP, leak@STEP, slow=FACTOR
    #[arg(long = "break", value_name = "HOW")]
    broken: Option<Break>,
    /// Compute on the CPU although the node has GPUs. Without it, a node's only rank computes on all of them where all ranks have such
    #[arg(long)]
    cpu: bool,
    /// How gradients get from node to node where GPUs compute: auto (NCCL where every node has it in one version, else tcp), nccl, tcp
    #[arg(long, default_value = "auto", value_name = "WAY")]
    between: Between,
    /// Print steps as JSON lines
    #[arg(long)]
    pub(super) json: bool,
    /// The port is open already, as standard input; end with the process that started this one
    #[arg(long, hide = true)]
    pub(super) inherited: bool,
}

/// How a rank is broken, as a program may be.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Break {
    /// Sums one element less than the others, from this step on.
    WrongSize(u64),
    /// Launches in another order than the others, or nothing any more where there is only one communicator.
    Deadlock(u64),
    /// Ends with an error of its own.
    Exception(u64),
    /// Takes ever more memory and gives none back, from this step on.
    Leak(u64),
    /// Computes so many times as long.
    Slow(f64),
}

impl std::str::FromStr for Break {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong =
            || format!("'{text}' is none of wrong-size@STEP, deadlock@STEP, exception@STEP, leak@STEP, slow=FACTOR");
        let step = |number: &str| number.parse().ok().filter(|step| *step > 0).ok_or_else(wrong);
        if let Some(factor) = text.strip_prefix("slow=") {
            let factor = factor.parse().ok().filter(|factor| (1.0..=1000.0).contains(factor));
            return factor.map(Self::Slow).ok_or_else(wrong);
        }
        match text.split_once('@') {
            Some(("wrong-size", number)) => step(number).map(Self::WrongSize),
            Some(("deadlock", number)) => step(number).map(Self::Deadlock),
            Some(("exception", number)) => step(number).map(Self::Exception),
            Some(("leak", number)) => step(number).map(Self::Leak),
            _ => Err(wrong()),
        }
    }
}

/// A rank's part, checked.
#[derive(Clone, Debug)]
pub(super) struct Part {
    pub(super) rank: usize,
    pub(super) world: usize,
    pub(super) peers: Vec<SocketAddr>,
    pub(super) per_node: usize,
    pub(super) until: Until,
    pub(super) model: Model,
    pub(super) batches: u32,
    pub(super) pause: Duration,
    /// Elements of a bucket.
    pub(super) bucket: usize,
    pub(super) timeout: Duration,
    pub(super) meet: Duration,
    pub(super) dir: Option<PathBuf>,
    pub(super) checkpoint: Option<Checkpoint>,
    pub(super) ras: Ras,
    pub(super) broken: Option<Break>,
    /// Not on GPUs.
    pub(super) cpu: bool,
    pub(super) between: Between,
    pub(super) secret: [u8; 32],
}

/// Where the training ends: after so many steps, or the first step that ends after so long.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Until {
    pub(super) steps: u64,
    pub(super) time: Option<Duration>,
}

/// How RAS is answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Ras {
    pub(super) port: u16,
    pub(super) patience: Duration,
    pub(super) dead: Duration,
}

impl Options {
    /// Whether they make sense, in a sentence if not.
    pub(super) fn part(&self) -> Result<Part, String> {
        if !(2..=MOST).contains(&self.world) {
            return Err(format!("--world is {}: 2 to {MOST} ranks can train together", self.world));
        }
        if self.rank >= self.world {
            return Err(format!("--rank {} of --world {}: ranks count from 0", self.rank, self.world));
        }
        if self.peers.len() != self.world {
            return Err(format!("--peers names {} ranks, --world says {}", self.peers.len(), self.world));
        }
        let per_node = self.ranks_per_node;
        if !(1..=self.world).contains(&per_node) || self.batches == 0 || self.bucket == 0 {
            return Err(
                "--ranks-per-node, --batches and --bucket are at least 1, and a node has no more ranks than the job"
                    .into(),
            );
        }
        if self.peers.chunks(per_node).any(|node| node.iter().any(|peer| peer.ip() != node[0].ip())) {
            return Err(format!("the {per_node} ranks of a node must have the same address in --peers"));
        }
        if self.checkpoint_every == 0 {
            return Err("--checkpoint-every is at least 1".into());
        }
        let name = if self.model == "nano" { "gpt2-nano" } else { &self.model };
        let model = Model::ALL.into_iter().find(|model| model.name() == name);
        let model = model.ok_or_else(|| {
            format!("no model '{}': there are nano, {}", self.model, Model::ALL.map(Model::name).join(", "))
        })?;
        let time = self.seconds.map(|time| seconds("--seconds", time)).transpose()?;
        let steps = self.steps.unwrap_or(if time.is_some() { u64::MAX } else { 100 });
        Ok(Part {
            rank: self.rank,
            world: self.world,
            peers: self.peers.clone(),
            per_node,
            until: Until { steps, time },
            model,
            batches: self.batches,
            pause: Duration::from_millis(self.pause),
            bucket: self.bucket * 1024 / size_of::<f32>(),
            timeout: seconds("--timeout", self.timeout)?,
            meet: seconds("--meet", self.meet)?,
            dir: self.dir.clone(),
            checkpoint: self.checkpoint.clone().map(|folder| Checkpoint { folder, every: self.checkpoint_every }),
            ras: Ras {
                port: self.ras_port,
                patience: seconds("--ras-patience", self.ras_patience)?,
                dead: seconds("--ras-dead", self.ras_dead)?,
            },
            broken: self.broken,
            cpu: self.cpu,
            between: self.between,
            secret: secret(&std::env::var(SECRET).unwrap_or_default(), &self.peers),
        })
    }
}

/// The value of an option that is a time.
fn seconds(option: &str, seconds: f64) -> Result<Duration, String> {
    let sound = (0.05..=30.0 * 86_400.0).contains(&seconds);
    if sound { Ok(Duration::from_secs_f64(seconds)) } else { Err(format!("{option} {seconds} is no time in seconds")) }
}

/// The word of the environment, or one that follows from the ranks: jobs do not mix, but everybody can know it.
pub(super) fn secret(word: &str, peers: &[SocketAddr]) -> [u8; 32] {
    let peers: Vec<u8> = peers.iter().flat_map(|peer| peer.to_string().into_bytes()).collect();
    let mut secret = [0; 32];
    for (at, piece) in secret.chunks_exact_mut(8).enumerate() {
        piece.copy_from_slice(&super::group::hash(&[&[at as u8], word.as_bytes(), &peers]).to_be_bytes());
    }
    secret
}
