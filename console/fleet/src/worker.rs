//! How is one node worked on, from its turn to log in to the end of its last work, and what if it is lost on the way?

use std::sync::Arc;
use std::time::{Duration, Instant};

use muster_wire::{Bye, Request};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};
use tokio_util::sync::CancellationToken;

use crate::context::{Reporter, Shared};
use crate::event::{EventKind, Work};
use crate::exec;
use crate::link::{Failure, FailureKind, LinkState, Phase};
use crate::probe::Probe;
use crate::roll::Roll;
use crate::route::Route;
use crate::run::measures;
use crate::script;
use crate::settings::{Settings, Transport};
use crate::stream::{Orders, Session};

/// First pause before a lost node is tried again; doubled each time up to the longest.
const PAUSE: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_secs(8);
/// A lost node is waited for at least this long, even where its step may take less.
const RETURN: Duration = Duration::from_secs(60);
/// Files that are open beside the connections: database, logs, jump hosts.
const OTHER_FILES: usize = 128;
/// A probe that was left behind is killed within this.
const KILL: Duration = Duration::from_secs(3);

/// Who may log in, and who may measure.
#[derive(Clone)]
pub(crate) struct Turns {
    /// As many connections as this process may have files.
    open: Arc<Semaphore>,
    logins: Arc<Semaphore>,
    places: Arc<Semaphore>,
}

/// The turn of one node.
#[derive(Default)]
pub(crate) struct Turn {
    _open: Option<OwnedSemaphorePermit>,
    /// Held until the probe speaks: handshake and upload are what many nodes at once would cost.
    pub(crate) login: Option<OwnedSemaphorePermit>,
    /// Held while the node measures.
    _place: Option<OwnedSemaphorePermit>,
}

impl Turns {
    pub(crate) fn new(settings: &Settings) -> Self {
        let of = |count: usize| Arc::new(Semaphore::new(count.clamp(1, Semaphore::MAX_PERMITS)));
        Self { open: of(connections(settings.transport)), logins: of(settings.fan_out), places: of(settings.at_once) }
    }

    /// The next turn; first come, first served. The semaphores are never closed.
    pub(crate) async fn take(&self, measures: bool) -> Turn {
        let open = self.open.clone().acquire_owned().await.ok();
        let place = if measures { self.places.clone().acquire_owned().await.ok() } else { None };
        Turn { _open: open, login: self.login().await, _place: place }
    }

    async fn login(&self) -> Option<OwnedSemaphorePermit> {
        self.logins.clone().acquire_owned().await.ok()
    }
}

/// Connections that may be open at the same time. The limit on files is raised as far as it goes: a node that only measures
/// holds a connection and nothing else.
fn connections(transport: Transport) -> usize {
    let limit = getrlimit(Resource::Nofile);
    let raised = Rlimit { current: limit.maximum, ..limit };
    let files = if setrlimit(Resource::Nofile, raised).is_ok() { limit.maximum } else { limit.current };
    let files = usize::try_from(files.unwrap_or(u64::MAX)).unwrap_or(usize::MAX);
    // The system's ssh takes three pipes for each node.
    files.saturating_sub(OTHER_FILES) / if transport == Transport::OpenSsh { 4 } else { 1 }
}

/// Works on one node.
pub(crate) struct Worker {
    pub(crate) report: Reporter,
    pub(crate) probe: Arc<Probe>,
    pub(crate) shared: Arc<Shared>,
    pub(crate) cancel: CancellationToken,
    pub(crate) turns: Turns,
}

/// How a node was lost, and how long it is worth waiting for.
struct Loss<'a> {
    failure: &'a Failure,
    since: Instant,
    /// Not waited for before.
    new: bool,
    until: Instant,
    last: bool,
}

/// What an attempt at a work leaves behind.
#[derive(Debug, Default)]
pub(crate) struct Attempt {
    /// What the probe has not finished, once it was asked.
    pub(crate) left: Option<Request>,
    /// The probe's process, while it may still run.
    pub(crate) pid: Option<u32>,
    /// When the probe was last heard, if it spoke.
    pub(crate) heard: Option<Instant>,
}

impl Worker {
    /// Every work in turn.
    pub(crate) async fn all(&self, works: Vec<Work>, mut turn: Turn, roll: &Roll) {
        let (mut link, mut known) = (None, false);
        let mut lost: Option<Failure> = None;
        for work in works {
            // A node that was waited for in vain is not waited for again with its next work.
            let result = match lost.clone() {
                Some(failure) => Err(failure),
                None => {
                    let work = Work { known: work.known || known, ..work };
                    self.persist(work, &mut link, &mut turn, roll).await
                }
            };
            known |= result.is_ok();
            lost = result.as_ref().err().filter(|failure| failure.passing()).cloned();
            self.ended(result).await;
        }
        leave(link).await;
    }

    /// A probe that does what it is asked until nobody asks any more.
    pub(crate) async fn talk(&self, work: &Work, turn: Turn, requests: mpsc::Receiver<Request>) {
        let (mut link, mut turn, mut attempt) = (None, turn, Attempt::default());
        let orders = Some(Orders { requests });
        let result = self.attempt(work, (&mut link, &mut turn), orders, &mut attempt).await;
        self.ended(result).await;
        leave(link).await;
    }

    async fn ended(&self, result: Result<Bye, Failure>) {
        let state = match &result {
            Ok(_) => LinkState::Closed,
            Err(failure) => LinkState::Failed { why: failure.message.clone() },
        };
        self.report.link(state).await;
        self.report.tell(EventKind::Ended(result)).await;
    }

    /// One work to its end, over as many connections as it takes: a node that was reached once is waited for. If it does not come
    /// back, the failure is how it was lost, which names what it was doing.
    async fn persist(
        &self,
        mut work: Work,
        link: &mut Option<Route>,
        turn: &mut Turn,
        roll: &Roll,
    ) -> Result<Bye, Failure> {
        let until = Instant::now() + if work.last { RETURN } else { work.limit.max(RETURN) };
        let (mut known, mut again, mut pause) = (work.known, false, PAUSE);
        let (mut attempt, mut first) = (Attempt::default(), None);
        // When the node was lost, once it was.
        let mut lost = None;
        loop {
            let result = self.attempt(&work, (link, turn), None, &mut attempt).await;
            let Err(failure) = result else { return result };
            if failure.cut_upload() && !again && !self.cancel.is_cancelled() {
                // Once more, on a fresh connection.
                again = true;
                leave(link.take()).await;
                continue;
            }
            let heard = attempt.heard.take();
            known |= heard.is_some();
            if !known || !failure.passing() || self.cancel.is_cancelled() {
                return Err(failure);
            }
            if heard.is_some() {
                first = Some(failure.clone());
            }
            if let Some(left) = attempt.left.take() {
                work.request = left;
            }
            let new = heard.is_some() || lost.is_none();
            let since = heard.or(lost).unwrap_or_else(Instant::now);
            lost = Some(since);
            if heard.is_some() {
                pause = PAUSE;
                self.report.tell(EventKind::Interrupted(failure.clone(), since.elapsed())).await;
            }
            *turn = Turn::default();
            let loss = Loss { failure: &failure, since, new, until, last: work.last };
            if !self.wait(pause, &loss, roll).await {
                return Err(first.unwrap_or(failure));
            }
            pause = (pause * 2).min(LONGEST_PAUSE);
            *turn = self.turns.take(measures(&work)).await;
        }
    }

    /// Waits before another attempt; false where none is to be made.
    async fn wait(&self, pause: Duration, loss: &Loss<'_>, roll: &Roll) -> bool {
        // Jitter keeps a fleet that was lost together from coming back together.
        let pause = pause.mul_f64(rand::random_range(0.5..1.5));
        let retry_in_ms = u64::try_from(pause.as_millis()).unwrap_or(u64::MAX);
        self.report.link(LinkState::Waiting { retry_in_ms, because: loss.failure.message.clone() }).await;
        // A node that hangs by itself was not lost with others.
        let counts = loss.new && loss.failure.kind != FailureKind::Frozen;
        let _waiting = roll.waits(counts.then_some(loss.since));
        let given_up = async {
            if loss.last {
                std::future::pending::<()>().await;
            }
            roll.not_worth_while(loss.since).await;
        };
        tokio::select! {
            () = tokio::time::sleep(pause) => Instant::now() < loss.until,
            () = given_up => false,
            () = self.cancel.cancelled() => false,
        }
    }

    /// One attempt at a work, over the open connection or a new one.
    async fn attempt(
        &self,
        work: &Work,
        (link, turn): (&mut Option<Route>, &mut Turn),
        orders: Option<Orders>,
        attempt: &mut Attempt,
    ) -> Result<Bye, Failure> {
        let cancelled = |phase| Failure::new(&work.node.name, phase, FailureKind::Cancelled, "cancelled");
        if self.cancel.is_cancelled() || !self.report.heard() {
            return Err(cancelled(Phase::Resolve));
        }
        let open = match link.take() {
            Some(open) => open,
            None => {
                if turn.login.is_none() {
                    turn.login = self.turns.login().await;
                }
                let target = self.shared.resolver.target(&work.node, &self.shared.settings)?;
                let open = tokio::select! {
                    opened = Route::open(&target, &self.shared, &self.report) => opened?,
                    () = self.cancel.cancelled() => return Err(cancelled(Phase::Connect)),
                };
                if let Some(pid) = attempt.pid.take() {
                    let kill = script::kill_left(pid, &self.probe.file_name());
                    // A node that cannot run this will not run the probe either, and says why then.
                    let _ = exec::run(&open, &work.node.name, &kill, KILL).await;
                }
                open
            }
        };
        let session = Session {
            link: &open,
            work,
            probe: &self.probe,
            shared: &self.shared,
            report: &self.report,
            cancel: &self.cancel,
        };
        let result = session.run(orders, turn, attempt).await;
        // A connection over which a node fell silent is not asked again.
        if !result.as_ref().is_err_and(Failure::passing) {
            *link = Some(open);
        }
        result
    }
}

async fn leave(link: Option<Route>) {
    if let Some(link) = link {
        let _ = tokio::time::timeout(Duration::from_secs(1), link.goodbye()).await;
    }
}
