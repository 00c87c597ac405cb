//! What is a job on the local fleet, and how is one of its ranks hurt for real?
//!
//! Every rank is a process of its node, started as `srun` would start it. The ranks train one model together, so that all wait for
//! the one that is hurt.

use std::fs::File;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{SyncSender, sync_channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use rustix::process::{Pid, Signal, kill_process};

use super::brake::Brake;
use super::child::{Of, place};
use super::fleet::{DemoError, LocalFleet, io};
use super::relay::Relay;

/// How often it is looked whether the job is to be hurt or to end.
const LOOK: Duration = Duration::from_millis(50);
/// Batches of a step, and the pause before it: every rank works a part of the time, so that many fit on one machine.
const BATCHES: &str = "8";
const PAUSE_MS: &str = "200";
/// An operation is given up after this, seconds: a hang is to be looked at for a while.
const TIMEOUT_S: &str = "600";
/// Longest job, seconds.
const LONGEST_S: &str = "86400";
/// What a slow link carries, bytes a second: an eighth of the megabits.
const SLOW_LINK: u64 = 250_000;

/// What is done to one rank.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hurt {
    /// Nothing.
    Nothing,
    /// It is stopped and continued in turn, so that it computes longer.
    Slow,
    /// It is stopped.
    Hang,
    /// It is killed.
    Crash,
    /// What is sent to it goes through a line of 2 Mbit/s.
    Link,
}

/// What job to start.
#[derive(Clone, Debug)]
pub struct JobOptions {
    /// What is done to one rank.
    pub hurt: Hurt,
    /// Ranks of each node, at least 1.
    pub ranks_per_node: usize,
    /// How long the job runs unhurt.
    pub after: Duration,
    /// Share of the time in which a slowed rank may run.
    pub duty: f64,
    /// Chooses the rank.
    pub seed: u64,
}

/// A job that runs. Dropping it ends all its ranks; so does the end of this process.
#[derive(Debug)]
pub struct LocalJob {
    id: String,
    hurt: Option<String>,
    how: String,
    folder: PathBuf,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

/// A rank before it is started.
struct Seat {
    node: String,
    home: PathBuf,
    word: String,
    port: TcpListener,
}

impl LocalFleet {
    /// Starts a training over all nodes; `probe` are the bytes of the program that trains.
    ///
    /// # Errors
    /// When a file, a port or a process cannot be made.
    pub fn start_job(&self, probe: &[u8], options: &JobOptions) -> Result<LocalJob, DemoError> {
        let folder = self.dir().join("job");
        std::fs::create_dir(&folder).map_err(io("make the job's folder"))?;
        let program = folder.join("train");
        write_program(&program, probe).map_err(io("write the program of the job"))?;
        let mut seats = Vec::new();
        for node in self.inventory().nodes() {
            for _ in 0..options.ranks_per_node {
                let port = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).map_err(io("listen on loopback"))?;
                let word = format!("{:016x}", rand::random::<u64>());
                seats.push(Seat { node: node.name.clone(), home: self.dir().join(&node.name), word, port });
            }
        }
        let victim = StdRng::seed_from_u64(options.seed).random_range(0..seats.len().max(1));
        let peers: Result<Vec<SocketAddr>, _> = seats.iter().map(|seat| seat.port.local_addr()).collect();
        let mut peers = peers.map_err(io("read a port"))?;
        let relay = match options.hurt {
            Hurt::Link => Some(Relay::before(peers[victim]).map_err(io("start the relay"))?),
            _ => None,
        };
        if let Some(relay) = &relay {
            peers[victim] = relay.address;
        }
        let (node, id) = (seats[victim].node.clone(), std::process::id().to_string());
        let how = how(options, victim);
        let (stop, (begun, started)) = (Arc::new(AtomicBool::new(false)), sync_channel(1));
        let team = Team {
            program,
            folder: folder.clone(),
            fleet: self.word().to_owned(),
            id: id.clone(),
            peers,
            seats,
            victim,
            relay,
            options: options.clone(),
        };
        let flag = Arc::clone(&stop);
        let body = move || team.run(&begun, &flag);
        let thread =
            std::thread::Builder::new().name("demo-job".to_owned()).spawn(body).map_err(io("start the job"))?;
        let hurt = (options.hurt != Hurt::Nothing).then_some(node);
        let job = LocalJob { id, hurt, how, folder, stop, thread: Some(thread) };
        match started.recv() {
            Ok(Ok(())) => Ok(job),
            Ok(Err(source)) => Err(DemoError::Io { step: "start a rank".to_owned(), source }),
            Err(_) => Err(DemoError::Io { step: "start a rank".to_owned(), source: std::io::ErrorKind::Other.into() }),
        }
    }
}

impl LocalJob {
    /// The id that its processes have in `SLURM_JOB_ID`.
    #[must_use]
    pub fn id(&self) -> &str {
        &self.id
    }

    /// The node of the rank that is hurt. Nothing that judges nodes may read this.
    #[must_use]
    pub fn hurt(&self) -> Option<&str> {
        self.hurt.as_deref()
    }

    /// What is done to it, in a sentence.
    #[must_use]
    pub fn how(&self) -> &str {
        &self.how
    }

    /// Logs of the ranks, `rank_N.log`, and what flight recorders wrote.
    #[must_use]
    pub fn folder(&self) -> &Path {
        &self.folder
    }
}

impl Drop for LocalJob {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Release);
        if let Some(thread) = self.thread.take() {
            // A panic in there was reported by its thread already.
            let _ = thread.join();
        }
    }
}

fn how(options: &JobOptions, rank: usize) -> String {
    let after = options.after.as_secs();
    match options.hurt {
        Hurt::Nothing => "nothing is done to it".to_owned(),
        Hurt::Slow => {
            let share = 100.0 * (1.0 - options.duty);
            format!("after {after} s rank {rank} is stopped {share:.0} % of the time (SIGSTOP, SIGCONT)")
        }
        Hurt::Hang => format!("after {after} s rank {rank} is stopped (SIGSTOP)"),
        Hurt::Crash => format!("after {after} s rank {rank} is killed (SIGKILL)"),
        Hurt::Link => {
            let rate = SLOW_LINK * 8 / 1_000_000;
            format!("after {after} s what is sent to rank {rank} goes through a relay at {rate} Mbit/s")
        }
    }
}

fn write_program(path: &Path, bytes: &[u8]) -> std::io::Result<()> {
    use std::io::Write as _;
    use std::os::unix::fs::OpenOptionsExt;
    std::fs::OpenOptions::new().write(true).create_new(true).mode(0o700).open(path)?.write_all(bytes)
}

/// The ranks of a job, and what is to be done to one of them. Belongs to one thread: ranks end with the thread that started them.
struct Team {
    program: PathBuf,
    folder: PathBuf,
    fleet: String,
    id: String,
    peers: Vec<SocketAddr>,
    seats: Vec<Seat>,
    victim: usize,
    relay: Option<Relay>,
    options: JobOptions,
}

impl Team {
    fn run(mut self, begun: &SyncSender<std::io::Result<()>>, stop: &AtomicBool) {
        let seats = std::mem::take(&mut self.seats);
        let word = seats.get(self.victim).map_or(String::new(), |seat| seat.word.clone());
        let mut ranks = Ranks(Vec::new());
        for (rank, seat) in seats.into_iter().enumerate() {
            match self.start(rank, seat) {
                Ok(child) => ranks.0.push(child),
                // Whoever waits for the job hears of it.
                Err(error) => return drop(begun.send(Err(error))),
            }
        }
        let _ = begun.send(Ok(()));
        let since = Instant::now();
        let (mut hurt, mut brake) = (false, None);
        while !stop.load(Ordering::Acquire) {
            std::thread::sleep(LOOK);
            // Who has ended is not to stay as a zombie.
            ranks.0.iter_mut().for_each(|rank| drop(rank.try_wait()));
            if !hurt && since.elapsed() >= self.options.after {
                hurt = true;
                brake = self.hurt(&ranks, &word);
            }
        }
        drop(brake);
    }

    fn start(&self, rank: usize, seat: Seat) -> std::io::Result<Child> {
        let peers: Vec<String> = self.peers.iter().map(ToString::to_string).collect();
        let (world, per_node) = (peers.len().to_string(), self.options.ranks_per_node.to_string());
        let log = File::create(self.folder.join(format!("rank_{rank}.log")))?;
        let mut command = Command::new(&self.program);
        place(&mut command, Of { fleet: &self.fleet, node: &seat.node, home: &seat.home, word: &seat.word });
        command
            .env("SLURM_JOB_ID", &self.id)
            .args(["train-ddp", "--inherited", "--cpu", "--rank", &rank.to_string(), "--world", &world])
            .args(["--ranks-per-node", &per_node, "--peers", &peers.join(",")])
            .args(["--seconds", LONGEST_S, "--timeout", TIMEOUT_S, "--batches", BATCHES, "--pause", PAUSE_MS])
            .args(["--ras-port", "0", "--dir"])
            .arg(&self.folder)
            .stdin(OwnedFd::from(seat.port))
            .stdout(log.try_clone()?)
            .stderr(log);
        command.spawn()
    }

    /// Hurts the chosen rank; a brake works for as long as it is kept.
    fn hurt(&self, ranks: &Ranks, word: &str) -> Option<Brake> {
        let victim = Pid::from_child(ranks.0.get(self.victim)?);
        let signal = |signal| {
            // Fails only where the rank has ended.
            let _ = kill_process(victim, signal);
        };
        match self.options.hurt {
            Hurt::Nothing => {}
            Hurt::Slow => {
                let period = super::fleet::Options::default().period;
                return Some(Brake::on(victim, word, self.options.duty.clamp(0.05, 1.0), period));
            }
            Hurt::Hang => signal(Signal::STOP),
            Hurt::Crash => signal(Signal::KILL),
            Hurt::Link => self.relay.iter().for_each(|relay| relay.slow_to(SLOW_LINK)),
        }
        None
    }
}

/// Processes that end when this goes.
struct Ranks(Vec<Child>);

impl Drop for Ranks {
    fn drop(&mut self) {
        for rank in &mut self.0 {
            // Both fail only where it has ended.
            let _ = rank.kill();
            let _ = rank.wait();
        }
    }
}
