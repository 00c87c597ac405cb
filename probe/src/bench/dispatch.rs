//! How long the kernel takes for its smallest services: a system call, waking a thread, changing threads.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::channel;
use std::thread::{Builder, JoinHandle};
use std::time::Duration;

use muster_wire::{Level, Profile};
use rustix::thread::{Pid, futex, gettid};

use super::context::{Context, Metric, share};
use crate::pin::{Place, Worker, with_team};
use crate::steps::Halt;

pub(crate) const NAME: &str = "cpu-dispatch";
const SMOKE: Duration = Duration::from_millis(350);
const SYSCALL: usize = 0;
const HANDOFF: usize = 1;
const WAKE: usize = 2;
/// `thread-handoff`: two threads take turns on one core. `futex-wake`: on two cores, so that the waker's interrupt
/// must reach a core that sleeps. Not in smoke: what else runs on the other core changes it by a factor of two.
pub(super) const NAMES: [&str; 3] = ["syscall", "thread-handoff", "futex-wake"];
/// Whose turn it is.
const OURS: u32 = 0;
const THEIRS: u32 = 1;
const OVER: u32 = 2;

struct Kernel {
    here: Place,
    other: Place,
    partner: Option<Partner>,
}

impl Worker for Kernel {
    fn prepare(&mut self, job: usize) -> Result<(), Halt> {
        self.partner = None;
        self.partner = match job {
            HANDOFF => Some(Partner::start(&self.here)?),
            WAKE => Some(Partner::start(&self.other)?),
            _ => None,
        };
        Ok(())
    }

    /// Hand-offs happen on one core: the one where the scheduler has just woken us, so an idle one if there is any.
    fn begin(&mut self, job: usize) -> Result<(), Halt> {
        let Some(partner) = self.partner.as_ref().filter(|_| job == HANDOFF) else { return Ok(()) };
        let core = Place::this_core();
        core.bind()?;
        core.bind_thread(partner.id)
    }

    fn end(&mut self, job: usize) -> Result<(), Halt> {
        if job == HANDOFF { self.here.bind() } else { Ok(()) }
    }

    fn chunk(&mut self, job: usize) -> Result<f64, Halt> {
        if job == SYSCALL {
            for _ in 0..1_000 {
                std::hint::black_box(rustix::process::getppid());
            }
            return Ok(1_000.0);
        }
        let Some(partner) = &self.partner else { return Err(Halt::Failed("no thread to change to".into())) };
        for _ in 0..16 {
            partner.round()?;
        }
        Ok(32.0)
    }
}

/// A thread that hands the turn back whenever it gets it.
struct Partner {
    turn: Arc<AtomicU32>,
    id: Option<Pid>,
    thread: Option<JoinHandle<Result<(), Halt>>>,
}

impl Partner {
    fn start(place: &Place) -> Result<Self, Halt> {
        let turn = Arc::new(AtomicU32::new(OURS));
        let (theirs, place) = (Arc::clone(&turn), place.clone());
        let (tell, told) = channel();
        let body = move || {
            place.bind()?;
            if tell.send(gettid()).is_err() {
                return Ok(());
            }
            while sleep_while(&theirs, OURS)? == THEIRS {
                pass(&theirs, OURS)?;
            }
            Ok(())
        };
        let thread = Builder::new().name("partner".into()).spawn(body);
        let thread = thread.map_err(|e| Halt::Failed(format!("cannot start a partner thread: {e}")))?;
        let id = told.recv().map_err(|_| Halt::Failed("a partner thread did not start".into()))?;
        Ok(Self { turn, id: Some(id), thread: Some(thread) })
    }

    /// There and back: two hand-offs.
    fn round(&self) -> Result<(), Halt> {
        pass(&self.turn, THEIRS)?;
        sleep_while(&self.turn, THEIRS).map(drop)
    }
}

impl Drop for Partner {
    fn drop(&mut self) {
        let woken = pass(&self.turn, OVER);
        if let (Ok(()), Some(thread)) = (woken, self.thread.take()) {
            drop(thread.join());
        }
    }
}

fn pass(turn: &AtomicU32, to: u32) -> Result<(), Halt> {
    turn.store(to, Ordering::SeqCst);
    futex::wake(turn, futex::Flags::PRIVATE, 1)
        .map(drop)
        .map_err(|e| Halt::Failed(format!("cannot wake a thread: {e}")))
}

/// Sleeps until the turn is not `while_it_is`; returns whose it is then.
fn sleep_while(turn: &AtomicU32, while_it_is: u32) -> Result<u32, Halt> {
    loop {
        let now = turn.load(Ordering::SeqCst);
        if now != while_it_is {
            return Ok(now);
        }
        match futex::wait(turn, futex::Flags::PRIVATE, while_it_is, None) {
            Ok(()) | Err(rustix::io::Errno::AGAIN | rustix::io::Errno::INTR) => {}
            Err(e) => return Err(Halt::Failed(format!("cannot wait for a thread: {e}"))),
        }
    }
}

pub(super) fn run(context: &mut Context<'_>) -> Result<(), Halt> {
    let (here, other, names) = match (context.profile, Place::two_cores()) {
        (Profile::Smoke, _) => (Place::this_node(), Place::this_node(), &NAMES[..WAKE]),
        (_, Some((here, other))) => (here, other, &NAMES[..]),
        (_, None) => {
            context.log(Level::Info, format!("{NAME}: one core only, so futex-wake, which takes two, is left out"));
            (Place::this_core(), Place::this_core(), &NAMES[..WAKE])
        }
    };
    let plan = context.plan(SMOKE, names.len());
    let make = |place: &Place| Ok(Kernel { here: place.clone(), other: other.clone(), partner: None });
    with_team(&[here], &make, |team| {
        for (job, name) in names.iter().enumerate() {
            team.prepare(job)?;
            let mut step = || team.step(job, plan.step).map(|rate| 1e9 / rate);
            context.measure(Metric::of(NAME, *name), &plan, share(job, names.len()), &mut step)?;
        }
        Ok(())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_partner_answers_every_round_and_ends() {
        let partner = Partner::start(&Place::this_core()).unwrap();
        for _ in 0..100 {
            partner.round().unwrap();
            assert_eq!(partner.turn.load(Ordering::SeqCst), OURS);
        }
        let turn = Arc::clone(&partner.turn);
        drop(partner);
        assert_eq!(Arc::strong_count(&turn), 1, "the partner thread still holds the turn");
    }
}
