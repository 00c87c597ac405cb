//! The conversation with the console: who listens, who writes, who watches, and how it ends.
//!
//! One thread reads requests, one writes frames, one keeps watch (signs of life, signals, silence); the main
//! thread works. Whatever ends the conversation goes through [`Stop`], so that there is one way out.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, IsTerminal, Read};
use std::os::fd::AsFd;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::Duration;

use muster_wire::{
    CollectiveOrder, Decoder, Finished, Frame, Hello, JobOrder, Level, ListenOrder, Outcome, PROTOCOL, PairOrder,
    Profile, RANKS_PER_NODE, Request, Steps, TrainOrder, WatchOrder,
};

use crate::collect::{LOAD, Root};
use crate::collective::{self, Waiting};
use crate::exit::{EARLY, USAGE};
use crate::out::{Done, Out};
use crate::passes::{self, How};
use crate::stop::{self, Cause, Stop};
use crate::{clock, ddp, gate, job, pair, watch, work};

/// The watch looks this often.
const TICK: Duration = Duration::from_millis(100);
/// Ticks between signs of life: two per second, so that a late one still comes within the second.
const TICKS_PER_BEAT: u32 = 5;
/// Ticks without a request after which the console is taken for gone. Ticks and not time, so that a probe that
/// was itself stopped for a while does not blame the console.
const SILENCE: u32 = 300;
/// The same before work was asked for: a console may set up many nodes before it starts them.
const SILENCE_BEFORE: u32 = 3000;
/// A benchmark that has not reacted to the order to end by now is left behind.
const PATIENCE: Duration = Duration::from_secs(2);
/// Time for the last frames to leave.
const FAREWELL: Duration = Duration::from_millis(700);

enum Job {
    /// The one run, after which the probe leaves.
    Run(Run),
    /// One of many visits.
    Pair(Box<PairOrder>),
    /// A port for what is done together, and that.
    Listen(ListenOrder),
    Collective(Box<CollectiveOrder>),
    Train(Box<TrainOrder>),
    /// Until the end is ordered.
    Watch(WatchOrder),
    /// One look at the processes of a job.
    Look(Box<JobOrder>),
}

struct Run {
    collectors: Vec<String>,
    benchmarks: Vec<String>,
    profile: Profile,
    scratch: Option<PathBuf>,
    steps: BTreeMap<String, Steps>,
}

#[derive(Clone)]
struct Session {
    out: Out,
    stop: Arc<Stop>,
    silent: Arc<AtomicU32>,
    working: Arc<AtomicBool>,
    /// Ticks are sent: they are signs of life enough.
    watching: Arc<AtomicBool>,
}

/// Serves one console on stdin and stdout until the work is done or the console is gone.
pub(crate) fn serve() -> ExitCode {
    if io::stdin().is_terminal() {
        eprintln!("muster-probe serve speaks frames to a console; by hand, use 'info' or 'run' (see --help)");
        return ExitCode::from(USAGE);
    }
    // A leader already (started by sshd or a shell with job control) is as good: then this fails.
    let _ = rustix::process::setsid();
    stop::catch_signals();
    let (session, done, jobs) = match begin() {
        Ok(begun) => begun,
        Err(error) => {
            eprintln!("muster-probe serve: cannot start: {error}");
            return ExitCode::from(EARLY);
        }
    };
    let mut ports = Vec::new();
    while let Some(job) = wait_for(&jobs, &session.stop, &mut ports) {
        let say = &mut |frame| session.out.send(frame, &session.stop);
        match job {
            Job::Pair(order) => pair::run(&order, session.stop.flag(), say),
            Job::Listen(order) => {
                // The oldest has waited in vain longest.
                ports.truncate(usize::from(RANKS_PER_NODE) - 1);
                ports.splice(0..0, collective::listen(&order, say));
            }
            Job::Collective(order) => {
                let port = collective::take(&mut ports, order.visit);
                collective::run(&order, port, session.stop.flag(), say);
            }
            Job::Train(order) => ddp::take_part(&order, &mut ports, session.stop.flag(), say),
            Job::Watch(order) => watch::run(&order, &Root::system(), &session.stop, say),
            Job::Look(order) => job::run(&order, &Root::system(), &session.stop, say),
            Job::Run(run) => {
                session.work(&run);
                break;
            }
        }
    }
    session.leave(&done)
}

fn begin() -> io::Result<(Session, Done, Receiver<Job>)> {
    let stop = Arc::new(Stop::default());
    let (out, done) = Out::start(own_output()?, Arc::clone(&stop))?;
    out.send(Frame::Hello(hello()), &stop);
    let session = Session { out, stop, silent: Arc::default(), working: Arc::default(), watching: Arc::default() };
    let (post, jobs) = channel();
    let listener = session.clone();
    thread::Builder::new().name("listener".to_owned()).spawn(move || listener.listen(&post))?;
    let watch = session.clone();
    thread::Builder::new().name("watch".to_owned()).spawn(move || watch.keep())?;
    Ok((session, done, jobs))
}

/// Takes stdout for the frames alone: whatever else prints goes to stderr from here on.
fn own_output() -> io::Result<File> {
    let frames = io::stdout().as_fd().try_clone_to_owned()?;
    rustix::stdio::dup2_stdout(io::stderr())?;
    Ok(File::from(frames))
}

fn hello() -> Hello {
    let root = Root::system();
    Hello {
        protocol: PROTOCOL,
        build: env!("CARGO_PKG_VERSION").to_owned(),
        boot_id: root.text("/proc/sys/kernel/random/boot_id"),
        hostname: root.text("/proc/sys/kernel/hostname"),
        wall_ns: clock::wall_ns(),
        monotonic_ns: clock::monotonic_ns(),
        pid: std::process::id(),
        capabilities: pair::perftest::abilities(),
    }
}

/// The next job; a port that waited too long for its own is closed meanwhile.
fn wait_for(jobs: &Receiver<Job>, stop: &Stop, ports: &mut Vec<Waiting>) -> Option<Job> {
    while !stop.asked() {
        ports.retain(|port| !port.over());
        match jobs.recv_timeout(TICK) {
            Ok(job) => return Some(job),
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return None,
        }
    }
    None
}

impl Session {
    fn listen(&self, jobs: &Sender<Job>) {
        let mut input = io::stdin().lock();
        let mut decoder = Decoder::new();
        let mut chunk = [0; 8192];
        let mut heard = false;
        while !self.stop.asked() {
            match input.read(&mut chunk) {
                Ok(0) if heard && !decoder.greeted() => {
                    self.stop.ask(Cause::Refused, format!("not a console: {:?}", decoder.noise()));
                }
                Ok(0) => self.stop.ask(Cause::Left, "console gone: input ended"),
                Ok(count) => {
                    heard = true;
                    decoder.push(&chunk[..count]);
                    self.answer(&mut decoder, jobs);
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => self.stop.ask(Cause::Left, format!("console gone: {error}")),
            }
        }
    }

    fn answer(&self, decoder: &mut Decoder, jobs: &Sender<Job>) {
        loop {
            match decoder.request() {
                Ok(None) => return,
                Ok(Some(request)) => {
                    self.silent.store(0, Ordering::Relaxed);
                    self.take(request, jobs);
                }
                Err(error) => return self.stop.ask(Cause::Refused, error.to_string()),
            }
        }
    }

    fn take(&self, request: Request, jobs: &Sender<Job>) {
        match request {
            Request::Ping { nonce } => self.out.beat(nonce),
            Request::Stop => self.stop.ask(Cause::Asked, "stopped"),
            Request::Run { .. } if self.working.swap(true, Ordering::AcqRel) => {
                self.out.log(Level::Warn, "a second Run is ignored: one probe does one run", &self.stop);
            }
            Request::Run { collectors, benchmarks, profile, scratch, steps } => {
                let scratch = scratch.map(PathBuf::from);
                // The main thread ends only with the process.
                let _ = jobs.send(Job::Run(Run { collectors, benchmarks, profile, scratch, steps }));
            }
            Request::Pair(order) => {
                let _ = jobs.send(Job::Pair(Box::new(order)));
            }
            Request::Listen(order) => {
                let _ = jobs.send(Job::Listen(order));
            }
            Request::Collective(order) => {
                let _ = jobs.send(Job::Collective(Box::new(order)));
            }
            Request::Train(order) => {
                let _ = jobs.send(Job::Train(Box::new(order)));
            }
            Request::Watch(order) => {
                // A console that watches is never silent for long.
                self.working.store(true, Ordering::Release);
                self.watching.store(true, Ordering::Release);
                let _ = jobs.send(Job::Watch(order));
            }
            Request::Job(order) => {
                let _ = jobs.send(Job::Look(Box::new(order)));
            }
            _ => self.out.log(Level::Warn, "a request this probe does not know is ignored", &self.stop),
        }
    }

    fn keep(&self) {
        let mut ticks = 0_u32;
        loop {
            thread::sleep(TICK);
            ticks = ticks.wrapping_add(1);
            if ticks.is_multiple_of(TICKS_PER_BEAT) && !self.watching.load(Ordering::Acquire) {
                self.out.beat(0);
            }
            if let Some(name) = stop::signal() {
                self.stop.ask(Cause::Left, format!("ended by {name}"));
            }
            let limit = if self.working.load(Ordering::Acquire) { SILENCE } else { SILENCE_BEFORE };
            if self.silent.fetch_add(1, Ordering::Relaxed) >= limit {
                self.stop.ask(Cause::Left, "console gone: silent for too long");
            }
            if self.stop.age() > PATIENCE {
                self.abandon();
            }
        }
    }

    /// The work does not react: says so if the output still takes it, and ends the process.
    fn abandon(&self) -> ! {
        let why = self.stop.order().map_or("stopped", |(_, why)| why);
        self.out.bye(&format!("{why}; the work did not react and was left behind"), FAREWELL);
        thread::sleep(TICK);
        std::process::exit(i32::from(EARLY));
    }

    fn work(&self, job: &Run) {
        let root = Root::system();
        let mut say = |frame: Frame| self.out.send(frame, &self.stop);
        for name in &job.collectors {
            let finished = if self.stop.asked() {
                not_run(&work::collected(name))
            } else if let Some(limit) = gate::limit(name) {
                gate::wait(name, limit, &self.stop, &mut say)
            } else {
                work::collector(name, &root, &mut say)
            };
            say(Frame::Finished(finished));
        }
        let looked = job.collectors.iter().any(|name| name == LOAD);
        if !job.benchmarks.is_empty() && !looked && !self.stop.asked() {
            work::check_busy(&root, &mut say);
        }
        let Run { profile, scratch, steps, .. } = job;
        let how = How { profile: *profile, scratch: scratch.as_deref(), stop: self.stop.flag(), steps };
        passes::benchmarks(&job.benchmarks, how, &mut say);
    }

    fn leave(&self, done: &Done) -> ExitCode {
        let order = self.stop.order();
        let reason = order.map_or("finished", |(_, why)| why);
        if let Some((Cause::Refused, why)) = order {
            eprintln!("muster-probe serve: refused: {why}");
        }
        self.out.bye(reason, FAREWELL);
        // A console that does not read holds the last frames up: after an order to end they are not waited for long.
        let limit = if order.is_some() { FAREWELL } else { TICK * SILENCE };
        let written = done.within(limit);
        match order {
            Some((Cause::Refused, _)) => ExitCode::from(USAGE),
            Some((Cause::Left, _)) => ExitCode::from(EARLY),
            _ if !written => ExitCode::from(EARLY),
            _ => ExitCode::SUCCESS,
        }
    }
}

fn not_run(name: &str) -> Finished {
    Finished { name: name.to_owned(), outcome: Outcome::stopped(), elapsed_ns: 0 }
}
