//! How is one node worked on, from its turn to log in to the end of its last work, and what if it is lost on the way?

use std::sync::Arc;
use std::time::{Duration, Instant};

use muster_wire::{Bye, Request};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use crate::context::{Reporter, Shared};
use crate::event::{EventKind, Work};
use crate::link::{Failure, FailureKind, LinkState, Phase};
use crate::permit::{Permit, Permits};
use crate::probe::Probe;
use crate::roll::Roll;
use crate::route::Route;
use crate::script;
use crate::stream::{Attempt, Orders, Session};

/// First pause before a lost node is tried again; doubled each time up to the longest.
const PAUSE: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_secs(8);
/// A lost node is waited for at least this long, even where its step may take less.
const RETURN: Duration = Duration::from_secs(60);
/// A probe that was left behind is killed within this.
const KILL: Duration = Duration::from_secs(3);

/// Works on one node.
pub(crate) struct Worker {
    pub(crate) report: Reporter,
    pub(crate) probe: Arc<Probe>,
    pub(crate) shared: Arc<Shared>,
    pub(crate) cancel: CancellationToken,
    pub(crate) permits: Permits,
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

impl Worker {
    /// Every work in turn.
    pub(crate) async fn all(&self, works: Vec<Work>, mut permit: Permit, roll: &Roll) {
        let (mut link, mut known) = (None, false);
        let mut lost: Option<Failure> = None;
        for work in works {
            // A node whose work was not done is asked for nothing more for now: it is gone, refuses us, hangs, or lies.
            let result = match lost.clone() {
                Some(failure) => Err(failure),
                None => {
                    let work = Work { known: work.known || known, ..work };
                    self.persist(work, &mut link, &mut permit, roll).await
                }
            };
            known |= result.is_ok();
            lost = result.as_ref().err().cloned();
            self.ended(result).await;
        }
        leave(link).await;
    }

    /// A probe that does what it is asked until nobody asks any more.
    pub(crate) async fn talk(&self, work: &Work, permit: Permit, requests: mpsc::Receiver<Request>) {
        let (mut link, mut permit, mut attempt) = (None, permit, Attempt::default());
        let orders = Some(Orders { requests });
        let result = self.attempt(work, (&mut link, &mut permit), orders, &mut attempt).await;
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
        permit: &mut Permit,
        roll: &Roll,
    ) -> Result<Bye, Failure> {
        let until = Instant::now() + if work.last { RETURN } else { work.limit.max(RETURN) };
        let (mut known, mut again, mut pause) = (work.known, false, PAUSE);
        let (mut attempt, mut first) = (Attempt::default(), None);
        // When the node was lost, once it was.
        let mut lost = None;
        loop {
            let result = self.attempt(&work, (link, permit), None, &mut attempt).await;
            let Err(failure) = result else { return result };
            if failure.cut_upload() && !again && !self.cancel.is_cancelled() {
                // Once more, on a fresh connection.
                again = true;
                if !known {
                    first = Some(failure);
                }
                leave(link.take()).await;
                continue;
            }
            let heard = attempt.heard.take();
            known |= heard.is_some();
            if !known || !failure.passing() || self.cancel.is_cancelled() {
                return Err(failure.after(if heard.is_some() { None } else { first.as_ref() }));
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
            *permit = Permit::default();
            let loss = Loss { failure: &failure, since, new, until, last: work.last };
            if !self.wait(pause, &loss, roll).await {
                return Err(first.unwrap_or(failure));
            }
            pause = (pause * 2).min(LONGEST_PAUSE);
            *permit = self.permits.take(work.measures()).await;
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
        (link, permit): (&mut Option<Route>, &mut Permit),
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
                if permit.login.is_none() {
                    permit.login = self.permits.login().await;
                }
                let open = tokio::select! {
                    opened = Route::by(&work.node, &self.shared, &self.report) => opened?,
                    () = self.cancel.cancelled() => return Err(cancelled(Phase::Connect)),
                };
                if let Some(pid) = attempt.pid.take() {
                    let kill = script::kill_left(pid, &self.probe);
                    // A node that cannot run this will not run the probe either, and says why then.
                    let _ = open.run(&work.node.name, &kill, KILL).await;
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
        let result = session.run(orders, permit, attempt).await;
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
