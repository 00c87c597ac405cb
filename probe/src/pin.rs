//! Who does the work of a step: threads at fixed places, that start together and count what they did until the end.

use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::{Builder, Scope, scope};
use std::time::{Duration, Instant};

use rustix::thread::{CpuSet, Pid, sched_setaffinity};

use crate::steps::Halt;
use crate::topology;

/// CPUs one thread may use: one core, or one NUMA node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Place(Vec<usize>);

impl Place {
    /// One thread each for every physical core that we may use.
    pub(crate) fn every_core() -> Vec<Self> {
        topology::cores(&topology::allowed()).into_iter().map(|cpu| Self(vec![cpu])).collect()
    }

    /// One CPU.
    pub(crate) fn core(cpu: usize) -> Self {
        Self(vec![cpu])
    }

    /// The core we run on now: the scheduler has just found it to be a free one.
    pub(crate) fn this_core() -> Self {
        Self(vec![rustix::thread::sched_getcpu()])
    }

    /// The NUMA node we run on now. The scheduler may move the thread to a free core of it, which costs
    /// microseconds; a fixed core may be one that a neighbour has fixed as well, which costs half of every step.
    pub(crate) fn this_node() -> Self {
        Self(topology::neighbours(rustix::thread::sched_getcpu(), &topology::allowed()))
    }

    /// Two different cores near each other, where there are two.
    pub(crate) fn two_cores() -> Option<(Self, Self)> {
        let here = topology::neighbours(rustix::thread::sched_getcpu(), &topology::cores(&topology::allowed()));
        match here.as_slice() {
            [first, second, ..] => Some((Self(vec![*first]), Self(vec![*second]))),
            _ => None,
        }
    }

    /// A CPU of this place.
    pub(crate) fn cpu(&self) -> usize {
        self.0.first().copied().unwrap_or(0)
    }

    /// Binds the calling thread. Memory it touches first comes from its own NUMA node.
    pub(crate) fn bind(&self) -> Result<(), Halt> {
        self.bind_thread(None)
    }

    /// Binds a thread of this process, the calling one if `None`.
    pub(crate) fn bind_thread(&self, thread: Option<Pid>) -> Result<(), Halt> {
        let mut set = CpuSet::new();
        self.0.iter().filter(|cpu| **cpu < CpuSet::MAX_CPU).for_each(|cpu| set.set(*cpu));
        if set.count() == 0 {
            return Ok(());
        }
        sched_setaffinity(thread, &set)
            .map_err(|e| Halt::Failed(format!("cannot pin a thread to CPU {:?}: {e}", self.0)))
    }
}

/// One thread's part of a benchmark. `job` tells its metrics apart.
pub(crate) trait Worker {
    /// Readies `job`, outside measured time.
    fn prepare(&mut self, _job: usize) -> Result<(), Halt> {
        Ok(())
    }
    /// Called right before every step of `job`, outside measured time.
    fn begin(&mut self, _job: usize) -> Result<(), Halt> {
        Ok(())
    }
    /// Called right after every step of `job`, outside measured time.
    fn end(&mut self, _job: usize) -> Result<(), Halt> {
        Ok(())
    }
    /// Does a little of `job` (far less than a step) and says how much that was. Allocates nothing.
    fn chunk(&mut self, job: usize) -> Result<f64, Halt>;
    /// Checks the result of `job`, outside measured time.
    fn verify(&mut self, _job: usize) -> Result<(), Halt> {
        Ok(())
    }
}

#[derive(Clone, Copy)]
enum Order {
    Prepare(usize),
    Step { job: usize, start: Option<Instant>, length: Duration },
    Verify(usize),
}

struct Member {
    orders: Sender<Order>,
    answers: Receiver<Result<f64, Halt>>,
}

/// Threads of one benchmark, waiting for orders.
pub(crate) struct Team(Vec<Member>);

impl Team {
    /// Readies `job` everywhere.
    pub(crate) fn prepare(&self, job: usize) -> Result<(), Halt> {
        self.all(Order::Prepare(job)).map(drop)
    }

    /// Work per second of all threads together in one step of `job`. All count from one moment, so a thread that
    /// comes late to its core loses the time it was late.
    pub(crate) fn step(&self, job: usize, length: Duration) -> Result<f64, Halt> {
        Ok(self.rates(0..self.0.len(), job, length)?.into_iter().sum())
    }

    /// The same for the first thread while the others rest.
    pub(crate) fn first(&self, job: usize, length: Duration) -> Result<f64, Halt> {
        Ok(self.rates(0..1, job, length)?.into_iter().sum())
    }

    /// Work per second of each of some threads in one step of `job`, while the others rest.
    pub(crate) fn rates(&self, members: Range<usize>, job: usize, length: Duration) -> Result<Vec<f64>, Halt> {
        let members = self.0.get(members).unwrap_or_default();
        let lead = Duration::from_micros(50 + 10 * members.len() as u64);
        let start = (members.len() > 1).then(|| Instant::now() + lead);
        obeyed(members, Order::Step { job, start, length })
    }

    /// Checks `job` everywhere.
    pub(crate) fn verify(&self, job: usize) -> Result<(), Halt> {
        self.all(Order::Verify(job)).map(drop)
    }

    fn all(&self, order: Order) -> Result<Vec<f64>, Halt> {
        obeyed(&self.0, order)
    }
}

/// Gives an order and collects the answers.
fn obeyed(members: &[Member], order: Order) -> Result<Vec<f64>, Halt> {
    let lost = || Halt::Failed("a benchmark thread ended unexpectedly".into());
    for member in members {
        member.orders.send(order).map_err(|_| lost())?;
    }
    let mut rates = Vec::with_capacity(members.len());
    let mut halts = Vec::new();
    // Every answer is awaited, also after a failure: the next order must not meet an old answer.
    for member in members {
        match member.answers.recv().unwrap_or_else(|_| Err(lost())) {
            Ok(rate) => rates.push(rate),
            Err(halt) => halts.push(halt),
        }
    }
    // A failure outweighs work that others did not come to, which often follows from it.
    halts.sort_by_key(|halt| !matches!(halt, Halt::Failed(_)));
    halts.into_iter().next().map_or(Ok(rates), Err)
}

/// Starts one thread per place, lets each `make` its worker there (so that its memory is local), and gives the
/// team to `body`. The threads end with it.
pub(crate) fn with_team<W: Worker, R>(
    places: &[Place],
    make: &(dyn Fn(&Place) -> Result<W, Halt> + Sync),
    body: impl FnOnce(&Team) -> Result<R, Halt>,
) -> Result<R, Halt> {
    scope(|scope| {
        let members = places.iter().map(|place| member(scope, place, make)).collect::<Result<Vec<_>, _>>()?;
        let team = Team(members);
        for member in &team.0 {
            member.answers.recv().map_err(|_| Halt::Failed("a benchmark thread did not start".into()))??;
        }
        body(&team)
    })
}

fn member<'scope, W: Worker>(
    scope: &'scope Scope<'scope, '_>,
    place: &'scope Place,
    make: &'scope (dyn Fn(&Place) -> Result<W, Halt> + Sync),
) -> Result<Member, Halt> {
    let (orders, inbox) = channel();
    let (outbox, answers) = channel();
    let body = move || {
        let made = caught(|| place.bind().and_then(|()| make(place)));
        let mut worker = match made {
            Ok(worker) => worker,
            Err(halt) => return drop(outbox.send(Err(halt))),
        };
        let mut answer = outbox.send(Ok(0.0));
        while let (Ok(()), Ok(order)) = (&answer, inbox.recv()) {
            answer = outbox.send(caught(|| obey(&mut worker, order)));
        }
    };
    let started = Builder::new().name("measure".into()).spawn_scoped(scope, body);
    started.map_err(|e| Halt::Failed(format!("cannot start a benchmark thread: {e}")))?;
    Ok(Member { orders, answers })
}

fn caught<T>(work: impl FnOnce() -> Result<T, Halt>) -> Result<T, Halt> {
    let failed = |_| Err(Halt::Failed("a benchmark thread came to an internal error".into()));
    catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(failed)
}

fn obey<W: Worker>(worker: &mut W, order: Order) -> Result<f64, Halt> {
    match order {
        Order::Prepare(job) => worker.prepare(job).map(|()| 0.0),
        Order::Verify(job) => worker.verify(job).map(|()| 0.0),
        Order::Step { job, start, length } => {
            worker.begin(job)?;
            let rate = timed(worker, job, start, (length, NOTHING));
            worker.end(job)?;
            rate
        }
    }
}

/// After so long without any work done, nothing is known of how fast it goes.
const NOTHING: Duration = Duration::from_secs(10);

fn timed<W: Worker>(
    worker: &mut W,
    job: usize,
    start: Option<Instant>,
    (length, nothing): (Duration, Duration),
) -> Result<f64, Halt> {
    let start = start.unwrap_or_else(Instant::now);
    while Instant::now() < start {
        std::hint::spin_loop();
    }
    let mut done = 0.0;
    loop {
        done += worker.chunk(job)?;
        let spent = start.elapsed();
        if spent >= length && done > 0.0 {
            return Ok(done / spent.as_secs_f64());
        }
        if spent >= nothing {
            return Err(Halt::NotRun(format!("no work was done in {} s: the node is too busy", spent.as_secs())));
        }
    }
}

/// A vector of `len` copies of `value`, or the halt that says there is not enough memory. Touches every page, and
/// asks for huge ones where they fit, so that address translation is the same on every node.
pub(crate) fn filled<T: Clone>(len: usize, value: T) -> Result<Vec<T>, Halt> {
    let mut vec: Vec<T> = Vec::new();
    let bytes = len.saturating_mul(size_of::<T>());
    vec.try_reserve_exact(len).map_err(|_| Halt::Failed(format!("no memory for {bytes} bytes")))?;
    prefer_huge_pages(vec.as_mut_ptr().cast(), bytes);
    vec.resize(len, value);
    Ok(vec)
}

#[expect(unsafe_code, reason = "madvise takes an address")]
fn prefer_huge_pages(start: *mut u8, bytes: usize) {
    const PAGE: usize = 4096;
    let skip = start.align_offset(PAGE);
    if bytes < HUGE {
        return;
    }
    let len = (bytes - skip) / PAGE * PAGE;
    // SAFETY: the range lies within one allocation of `bytes` bytes that the caller owns, and this advice changes
    // no content. Being refused is fine.
    let _refused =
        unsafe { rustix::mm::madvise(start.wrapping_add(skip).cast(), len, rustix::mm::Advice::LinuxHugepage) };
}

/// Smallest allocation worth huge pages: two of 2 MiB fit inside wherever it starts.
const HUGE: usize = 6 << 20;

#[cfg(test)]
mod tests {
    use super::*;

    struct Counter(u64);

    impl Worker for Counter {
        fn chunk(&mut self, job: usize) -> Result<f64, Halt> {
            match job {
                0 => {
                    self.0 += 1;
                    std::thread::sleep(Duration::from_micros(100));
                    Ok(1.0)
                }
                1 => Err(Halt::Failed("broken".into())),
                _ => panic!("on purpose"),
            }
        }
        fn verify(&mut self, _job: usize) -> Result<(), Halt> {
            if self.0 > 0 { Ok(()) } else { Err(Halt::Failed("did nothing".into())) }
        }
    }

    /// Comes to its first work after some time.
    struct Late(Instant);

    impl Worker for Late {
        fn chunk(&mut self, _job: usize) -> Result<f64, Halt> {
            Ok(if self.0.elapsed() > Duration::from_millis(20) { 1.0 } else { 0.0 })
        }
    }

    #[test]
    fn a_step_goes_on_until_some_work_is_done() {
        let begun = Instant::now();
        let rate = timed(&mut Late(begun), 0, Some(begun), (Duration::from_millis(1), Duration::MAX)).unwrap();
        assert!(rate > 0.0 && rate <= 50.0, "{rate}");
    }

    #[test]
    fn a_step_without_any_work_is_no_value_and_no_failure() {
        let lengths = (Duration::from_millis(1), Duration::from_millis(2));
        let ended = timed(&mut Late(Instant::now() + Duration::from_secs(3600)), 0, None, lengths);
        assert!(matches!(&ended, Err(Halt::NotRun(why)) if why.starts_with("no work was done in ")), "{ended:?}");
    }

    #[test]
    fn a_team_adds_up_the_rates_of_its_threads() {
        let places = [Place::this_node(), Place::this_node(), Place::this_node()];
        let rate = with_team(&places, &|_| Ok(Counter(0)), |team| {
            let rate = team.step(0, Duration::from_millis(5))?;
            team.verify(0)?;
            Ok(rate)
        });
        let rate = rate.unwrap();
        assert!(rate > 0.0 && rate <= 30_000.0, "{rate}");
    }

    #[test]
    fn a_failing_or_panicking_thread_is_a_failure_with_words_and_no_deadlock() {
        with_team(&[Place::this_node(), Place::this_node()], &|_| Ok(Counter(0)), |team| {
            assert_eq!(team.step(1, Duration::from_millis(1)), Err(Halt::Failed("broken".into())));
            assert!(matches!(team.step(2, Duration::from_millis(1)), Err(Halt::Failed(_))));
            assert!(team.step(0, Duration::from_millis(1)).is_ok());
            Ok(())
        })
        .unwrap();
        let ended =
            with_team(&[Place::this_node()], &|_| -> Result<Counter, Halt> { Err(Halt::NotRun("no".into())) }, |_| {
                Ok(())
            });
        assert_eq!(ended, Err(Halt::NotRun("no".into())));
    }

    /// Either broken or without work, by its place in the team.
    struct Torn(bool);

    impl Worker for Torn {
        fn chunk(&mut self, _job: usize) -> Result<f64, Halt> {
            Err(if self.0 { Halt::Failed("broken".into()) } else { Halt::NotRun("busy".into()) })
        }
    }

    #[test]
    fn a_failure_of_one_thread_is_not_hidden_by_what_another_did_not_do() {
        let places = [Place::this_node(), Place::this_node()];
        let make = |place: &Place| Ok(Torn(std::ptr::eq(place, &raw const places[1])));
        let ended = with_team(&places, &make, |team| team.step(0, Duration::from_millis(1)));
        assert_eq!(ended, Err(Halt::Failed("broken".into())));
    }

    #[test]
    fn a_bound_thread_runs_where_it_was_put() {
        for place in Place::every_core() {
            std::thread::spawn(move || {
                place.bind().unwrap();
                assert_eq!(rustix::thread::sched_getcpu(), place.cpu());
            })
            .join()
            .unwrap();
        }
    }

    #[test]
    fn too_much_memory_is_a_halt_and_not_an_abort() {
        assert!(matches!(filled(usize::MAX / 16, 0u64), Err(Halt::Failed(_))));
        assert_eq!(filled(3, 7u8).unwrap(), [7, 7, 7]);
    }
}
