//! How long does an operation of one size take, again and again, and did everybody get the right bytes?

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Barrier, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use muster_wire::{Collective, whole_bytes};

use super::buffers::Buffers;
use super::lane::{Broken, Lane};
use super::pattern::ELEMENT;
use super::plan::{Step, steps};
use crate::clock;
use crate::pair::meet::Limit;

/// Operations before the first that counts.
pub(super) const WARMUP: u32 = 2;
/// Operations that are measured however long they take, and at most.
const FEW: usize = 5;
const MOST: usize = 1024;
/// A lane carries at least this much of a block: less is faster over fewer.
const SHARE: usize = 16 << 10;
/// What a rank tells the others before each operation.
const GO: u64 = 1;
const OVER: u64 = 2;
const WRONG: u64 = 3;

/// Who takes part in what.
#[derive(Clone, Copy)]
pub(crate) struct Team<'a> {
    pub(crate) collective: Collective,
    pub(crate) me: usize,
    /// Names of all ranks.
    pub(crate) names: &'a [String],
    pub(crate) lanes: &'a [Lane],
}

/// Times of one size.
#[derive(Debug)]
pub(crate) struct Swept {
    /// Bytes that an operation really moves: the size in whole elements.
    pub(crate) bytes: usize,
    /// Seconds of each operation.
    pub(crate) seconds: Vec<f64>,
    pub(crate) started_ns: u64,
}

/// Why a size was not measured to its end.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Trouble {
    pub(crate) kind: Kind,
    /// Operation, from 1, with those that do not count.
    pub(crate) operation: u32,
    /// Step of it, from 1; 0 before the first.
    pub(crate) step: usize,
    /// The rank it is about.
    pub(crate) peer: usize,
    pub(crate) text: String,
}

/// What went wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Stopped,
    /// Nothing came, or nothing was taken, until the time was over.
    Late,
    /// The connection broke.
    Gone,
    /// Other bytes than those sent.
    Wrong,
    /// A rank ended it for all.
    Told,
    /// Nothing to do with the network.
    Own,
}

impl Kind {
    pub(crate) const fn word(self) -> &'static str {
        match self {
            Self::Stopped => "stopped",
            Self::Late => "late",
            Self::Gone => "gone",
            Self::Wrong => "wrong",
            Self::Told => "told",
            Self::Own => "own",
        }
    }
}

/// Measures operations of `bytes` bytes for about `duration`.
pub(crate) fn sweep(team: Team<'_>, bytes: u64, duration: Duration, limit: &Limit<'_>) -> Result<Swept, Trouble> {
    let n = team.names.len();
    let block = usize::try_from(whole_bytes(bytes, n)).unwrap_or(usize::MAX) / ELEMENT / n;
    let used = (block * ELEMENT / SHARE).clamp(1, team.lanes.len());
    let size = Size {
        team,
        steps: &steps(team.collective, team.me, n),
        block,
        used,
        limit,
        gate: Barrier::new(used),
        over: AtomicBool::new(false),
        trouble: Mutex::default(),
    };
    let mut lead = Lead { duration, begun: Instant::now(), first: None, started_ns: 0, seconds: Vec::new() };
    thread::scope(|scope| {
        let size = &size;
        (1..used).for_each(|lane| drop(scope.spawn(move || size.work(lane, None))));
        size.work(0, Some(&mut lead));
    });
    match size.trouble.into_inner().unwrap_or_else(PoisonError::into_inner) {
        Some(trouble) => Err(trouble),
        None => Ok(Swept { bytes: block * ELEMENT * n, seconds: lead.seconds, started_ns: lead.started_ns }),
    }
}

/// One size under way, as its lanes share it.
struct Size<'a> {
    team: Team<'a>,
    steps: &'a [Step],
    /// Elements of a block, all lanes together.
    block: usize,
    used: usize,
    limit: &'a Limit<'a>,
    gate: Barrier,
    over: AtomicBool,
    trouble: Mutex<Option<Trouble>>,
}

/// What the first lane keeps of all.
struct Lead {
    duration: Duration,
    begun: Instant,
    first: Option<Instant>,
    started_ns: u64,
    seconds: Vec<f64>,
}

impl Lead {
    fn enough(&self) -> bool {
        let long = self.first.is_some_and(|first| first.elapsed() >= self.duration);
        self.seconds.len() >= MOST || self.seconds.len() >= FEW && long
    }

    fn took(&mut self, operation: u32) {
        let took = self.begun.elapsed().as_secs_f64();
        if operation >= WARMUP {
            self.first.get_or_insert(self.begun);
            self.seconds.push(took);
        }
    }
}

impl Size<'_> {
    /// One lane from the first operation to the last. All lanes pass every gate, whatever happened to them.
    fn work(&self, lane: usize, mut lead: Option<&mut Lead>) {
        let slice = self.block * lane / self.used..self.block * (lane + 1) / self.used;
        let mut buffers = Buffers::new(self.team.collective, (self.team.me, self.team.names.len()), self.block, slice)
            .map_err(|halt| self.fail((Kind::Own, 0, 0, self.team.me), format!("{halt:?}")))
            .ok();
        for operation in 0.. {
            if let Some(buffers) = &mut buffers {
                buffers.fill(operation);
            }
            self.gate.wait();
            if let Some(lead) = &mut lead {
                self.agree(lead, operation);
                lead.begun = Instant::now();
                if operation == WARMUP {
                    lead.started_ns = clock::monotonic_ns();
                }
            }
            self.gate.wait();
            if self.over.load(Ordering::Acquire) {
                return;
            }
            let done = buffers.as_mut().is_some_and(|buffers| self.operate(lane, buffers, operation));
            self.gate.wait();
            if let Some(lead) = &mut lead {
                lead.took(operation);
            }
            if let Some(buffers) = buffers.as_ref().filter(|_| done) {
                self.check(buffers, operation);
            }
        }
    }

    /// Before an operation all ranks say whether they go on; the first decides when there is enough.
    fn agree(&self, lead: &Lead, operation: u32) {
        let (me, n) = (self.team.me, self.team.names.len());
        let own = self.trouble.lock().unwrap_or_else(PoisonError::into_inner).as_ref().map(|trouble| trouble.kind);
        if own.is_none() && self.limit.stopped() {
            // Operations that never wait would never look.
            self.fail((Kind::Stopped, operation, 0, me), "stopped".to_owned());
            return self.over.store(true, Ordering::Release);
        }
        let word = match own {
            None if me == 0 && lead.enough() => OVER,
            None => GO,
            Some(Kind::Wrong) => WRONG,
            Some(_) => return self.over.store(true, Ordering::Release),
        };
        match self.team.lanes[0].words((me, n), word, self.limit) {
            Ok(words) => {
                if let Some(rank) = words.iter().position(|word| *word == WRONG) {
                    let name = &self.team.names[rank];
                    self.fail((Kind::Told, operation, 0, rank), format!("{name} received wrong bytes"));
                }
                if words[0] == OVER || words.contains(&WRONG) {
                    self.over.store(true, Ordering::Release);
                }
            }
            Err(broken) => {
                let step = Step { to: (me + 1) % n, from: (me + n - 1) % n, ..self.steps[0] };
                self.broken(broken, operation, (0, &step));
                self.over.store(true, Ordering::Release);
            }
        }
    }

    fn operate(&self, lane: usize, buffers: &mut Buffers, operation: u32) -> bool {
        for (at, step) in self.steps.iter().enumerate() {
            let (send, receive) = buffers.both(step);
            let done = self.team.lanes[lane].exchange((step.to, send), (step.from, receive), self.limit);
            if let Err(broken) = done {
                self.broken(broken, operation, (at + 1, step));
                return false;
            }
            buffers.reduce(step);
        }
        true
    }

    /// Every arrival of an operation, and what was computed here.
    fn check(&self, buffers: &Buffers, operation: u32) {
        if let Some((at, wrong)) = buffers.wrong(operation, self.steps) {
            let from = self.steps.get(at).map_or(self.team.me, |step| step.from);
            let what = if from == self.team.me { "computed here" } else { "from" };
            let name = if from == self.team.me { "" } else { &self.team.names[from] };
            let text = format!("{wrong} {what} {name}");
            self.fail((Kind::Wrong, operation, at + 1, from), text.trim_end().to_owned());
        }
    }

    fn broken(&self, broken: Broken, operation: u32, (number, step): (usize, &Step)) {
        let names = self.team.names;
        let (kind, peer, text) = match broken {
            Broken::Stopped => (Kind::Stopped, step.from, "stopped".to_owned()),
            Broken::Late { receiving: true } => {
                (Kind::Late, step.from, format!("nothing more from {}", names[step.from]))
            }
            Broken::Late { receiving: false } => {
                (Kind::Late, step.to, format!("{} takes nothing more", names[step.to]))
            }
            Broken::Receiving(why) => {
                (Kind::Gone, step.from, format!("cannot receive from {}: {why}", names[step.from]))
            }
            Broken::Sending(why) => (Kind::Gone, step.to, format!("cannot send to {}: {why}", names[step.to])),
        };
        self.fail((kind, operation, number, peer), text);
    }

    /// Keeps the first trouble: later ones follow from it.
    fn fail(&self, (kind, operation, step, peer): (Kind, u32, usize, usize), what: String) {
        let of = self.steps.len();
        let place = if step == 0 { "before its first step".to_owned() } else { format!("step {step} of {of}") };
        let text = format!("operation {}, {place}: {what}", operation + 1);
        let mut kept = self.trouble.lock().unwrap_or_else(PoisonError::into_inner);
        kept.get_or_insert(Trouble { kind, operation: operation + 1, step, peer, text });
    }
}
