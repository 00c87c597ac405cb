//! What may a node say now, and how much? Counted from what the console ordered; nothing that a node sends adds to it.

use std::collections::BTreeMap;
use std::time::Instant;

use muster_wire::limits::{JOB_BYTES, NAME_BYTES, work_bytes};
use muster_wire::{Frame, Profile, Request, Series, TRAIN_DDP};

use crate::link::FailureKind;

/// Bytes of signs of life, progress and log lines that every stream may begin with, and earns each second.
const CHATTER: u64 = 256 << 10;
const CHATTER_EACH_SECOND: u64 = 16 << 10;
/// Bytes of a fine look, and most looks in a second that a probe makes.
const LOOK: u64 = 512;
const MOST_LOOKS: u64 = 100;
/// Bytes of results that a collector may send.
const COLLECTOR: u64 = 1 << 20;
/// Bytes of the names and ends of files that a look at a job may send.
const JOB: u64 = 1 << 20;
/// Most bytes on the line for a byte of results in memory: a number of eight bytes is sent as nine.
const ENCODED: u64 = 2;

/// One stream of one node.
#[derive(Debug)]
pub(crate) struct Turn {
    since: Instant,
    granted: u64,
    /// Bytes earned each second.
    each_second: u64,
    used: u64,
    greeted: bool,
    /// A `Run` was ordered, so that results may come.
    works: bool,
    /// A `Watch` was ordered, so that ticks may come.
    watches: bool,
    /// Looks at a job that were ordered and have not ended.
    looks: u32,
    /// Visits ordered and not answered.
    visits: BTreeMap<u64, Visit>,
}

/// A visit of a pair or a collective.
#[derive(Debug)]
struct Visit {
    /// Whose values it gives.
    benchmark: &'static str,
    /// The port was asked for and not said.
    port: bool,
}

/// What a node did that it must not.
pub(crate) type Breach = (FailureKind, String);

impl Turn {
    /// Begins `now`, with nothing ordered.
    pub(crate) const fn new(now: Instant) -> Self {
        Self {
            since: now,
            granted: CHATTER,
            each_second: CHATTER_EACH_SECOND,
            used: 0,
            greeted: false,
            works: false,
            watches: false,
            looks: 0,
            visits: BTreeMap::new(),
        }
    }

    /// The console orders `request`.
    pub(crate) fn ordered(&mut self, request: &Request) {
        self.granted += granted(request);
        match request {
            Request::Run { .. } => self.works = true,
            Request::Job(_) => self.looks += 1,
            Request::Watch(order) => {
                self.watches = true;
                // Looks that come more often than once a second.
                let looks = |period_ms: u32| 1_000_u64.checked_div(u64::from(period_ms)).unwrap_or(0).min(MOST_LOOKS);
                self.each_second = CHATTER_EACH_SECOND + LOOK * looks(order.fine_ms.min(order.period_ms));
            }
            Request::Pair(order) => {
                let port = order.role == muster_wire::Role::Listen;
                self.visits.insert(order.visit, Visit { benchmark: "net-pair", port });
            }
            Request::Listen(order) => {
                // One that cannot open a port says so as its end.
                self.visits.insert(order.visit, Visit { benchmark: "", port: true });
            }
            Request::Collective(order) => {
                let benchmark = order.collective.benchmark();
                self.visits.insert(order.visit, Visit { benchmark, port: false });
            }
            Request::Train(order) => {
                self.visits.insert(order.visit, Visit { benchmark: TRAIN_DDP, port: false });
            }
            _ => {}
        }
    }

    /// `bytes` more arrived, `now`.
    pub(crate) fn heard(&mut self, bytes: usize, now: Instant) -> Result<(), Breach> {
        self.used += bytes as u64;
        let chatter = now.duration_since(self.since).as_secs() * self.each_second;
        let may = self.granted + chatter;
        if self.used <= may {
            return Ok(());
        }
        Err((FailureKind::TooMuch, format!("sent more than the {} kB that its orders allow", may >> 10)))
    }

    /// Whether this frame may come now.
    pub(crate) fn frame(&mut self, frame: &Frame) -> Result<(), Breach> {
        let breach = |what: String| Err((FailureKind::OutOfTurn, what));
        match frame {
            Frame::Hello(_) if self.greeted => breach("said hello twice".to_owned()),
            Frame::Hello(_) => {
                self.greeted = true;
                Ok(())
            }
            _ if !self.greeted => breach("did not say hello first".to_owned()),
            Frame::Series(_) | Frame::Finished(_) if !self.works => {
                breach("sent a result and was not told to measure".to_owned())
            }
            Frame::Columns(_) | Frame::Tick(_) | Frame::Peers(_) if !self.watches => {
                breach("sent telemetry and was not told to watch".to_owned())
            }
            Frame::Chunk(_) | Frame::Collected(_) if self.looks == 0 => {
                breach("sent files of a job and was not told to look at one".to_owned())
            }
            Frame::Collected(_) => {
                self.looks -= 1;
                Ok(())
            }
            Frame::Listening(listening) => match self.visits.get_mut(&listening.visit) {
                Some(visit) if visit.port => {
                    visit.port = false;
                    Ok(())
                }
                _ => breach(format!("opened a port for visit {}, which it was not told to", listening.visit)),
            },
            Frame::Paired(paired) => {
                let Some(visit) = self.visits.remove(&paired.visit) else {
                    return breach(format!("sent a result of visit {}, which it was not told to make", paired.visit));
                };
                let foreign = |series: &&Series| series.metric.benchmark != visit.benchmark;
                match paired.series.iter().find(foreign) {
                    Some(series) => {
                        let name = muster_wire::clean(&series.metric.path(), NAME_BYTES);
                        breach(format!("sent values of '{name}' with visit {}", paired.visit))
                    }
                    None => Ok(()),
                }
            }
            _ => Ok(()),
        }
    }
}

/// Bytes that a request allows its answer.
fn granted(request: &Request) -> u64 {
    let works = |collectors: usize, benchmarks: usize, profile: Profile| {
        collectors as u64 * COLLECTOR + benchmarks as u64 * ENCODED * work_bytes(profile) as u64
    };
    match request {
        Request::Run { collectors, benchmarks, profile, .. } => works(collectors.len(), benchmarks.len(), *profile),
        Request::Pair(_) | Request::Collective(_) | Request::Train(_) => works(0, 1, Profile::Smoke),
        // Names of small files are longer than what they hold.
        Request::Job(order) => JOB + u64::from(order.all_bytes.min(JOB_BYTES)) * 17 / 16,
        _ => 512,
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use muster_wire::{Beat, Finished, Hello, Listening, Outcome, Reading};

    use super::*;

    fn hello() -> Frame {
        Frame::Hello(Hello {
            protocol: 1,
            build: String::new(),
            boot_id: Reading::Absent,
            hostname: Reading::Absent,
            wall_ns: 0,
            monotonic_ns: 0,
            pid: 2,
            capabilities: Vec::new(),
        })
    }

    fn run(benchmarks: usize) -> Request {
        let benchmarks = vec!["b".to_owned(); benchmarks];
        let (collectors, steps) = (Vec::new(), BTreeMap::new());
        Request::Run { collectors, benchmarks, profile: Profile::Smoke, scratch: None, steps }
    }

    fn finished() -> Frame {
        Frame::Finished(Finished { name: "b".into(), outcome: Outcome::Done, elapsed_ns: 1 })
    }

    #[test]
    fn no_frame_makes_room_for_more() {
        let now = Instant::now();
        let mut turn = Turn::new(now);
        turn.ordered(&run(1));
        turn.frame(&hello()).unwrap();
        let all = CHATTER + 2 * work_bytes(Profile::Smoke) as u64;
        for _ in 0..all / 1_024 {
            turn.heard(1_024, now).unwrap();
            turn.frame(&finished()).unwrap();
        }
        let (kind, what) = turn.heard(1_024, now).unwrap_err();
        assert_eq!((kind, what.as_str()), (FailureKind::TooMuch, "sent more than the 1536 kB that its orders allow"));
    }

    #[test]
    fn a_probe_that_works_for_days_may_say_that_it_lives() {
        let start = Instant::now();
        let mut turn = Turn::new(start);
        for second in 0..200_000 {
            turn.heard(4_096, start + Duration::from_secs(second)).unwrap();
        }
    }

    #[test]
    fn hello_comes_first_and_once() {
        let mut turn = Turn::new(Instant::now());
        let beat = Frame::Beat(Beat { wall_ns: 0, monotonic_ns: 0, nonce: 0 });
        assert_eq!(turn.frame(&beat).unwrap_err().1, "did not say hello first");
        turn.frame(&hello()).unwrap();
        turn.frame(&beat).unwrap();
        assert_eq!(turn.frame(&hello()).unwrap_err(), (FailureKind::OutOfTurn, "said hello twice".to_owned()));
    }

    #[test]
    fn a_probe_that_waits_for_orders_may_not_send_results_nor_ports_that_nobody_asked_for() {
        let mut turn = Turn::new(Instant::now());
        turn.frame(&hello()).unwrap();
        assert_eq!(turn.frame(&finished()).unwrap_err().0, FailureKind::OutOfTurn);
        let tick = Frame::Tick(muster_wire::Tick { at_ns: 1, values: vec![1.0] });
        assert_eq!(turn.frame(&tick).unwrap_err().1, "sent telemetry and was not told to watch");
        let port = |visit| Frame::Listening(Listening { visit, port: 4 });
        assert!(turn.frame(&port(7)).is_err());
        let local = std::net::IpAddr::from([127, 0, 0, 1]);
        turn.ordered(&Request::Listen(muster_wire::ListenOrder { visit: 7, local, hold_ms: 1 }));
        turn.frame(&port(7)).unwrap();
        turn.ordered(&Request::Watch(muster_wire::WatchOrder { period_ms: 1_000, ..Default::default() }));
        turn.frame(&tick).unwrap();
        assert_eq!(turn.frame(&port(7)).unwrap_err().1, "opened a port for visit 7, which it was not told to");
    }

    #[test]
    fn who_is_told_to_look_more_often_may_say_more_and_not_without_bounds() {
        let earned = |fine_ms: u32| {
            let begun = Instant::now();
            let mut turn = Turn::new(begun);
            turn.ordered(&Request::Watch(muster_wire::WatchOrder { period_ms: 1_000, fine_ms, job: None }));
            let more = |bytes: &usize| {
                turn.used = 0;
                turn.heard(*bytes, begun + Duration::from_secs(10)).is_ok()
            };
            (0..4_000).map(|kib| kib << 10).take_while(more).last().unwrap_or(0)
        };
        assert!(earned(10) > earned(0) + (480 << 10), "100 looks of 512 bytes in each of ten seconds");
        assert_eq!(earned(1), earned(10));
    }
}
