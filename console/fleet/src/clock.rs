//! How far is a node's clock from ours? Asked and answered like NTP does, over the probe's own connection.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use muster_wire::{Beat, Frame};

/// Exchanges made at once; later ones come with the pings.
const WANTED: u32 = 4;

/// Node's clock minus ours. The truth lies within `uncertainty` of `offset`, if the node stamped its answer between
/// our question and our hearing of it, which no delay on the way can change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Clock {
    /// Nanoseconds; positive where the node is ahead.
    pub offset_ns: i64,
    /// Half the round trip of the fastest exchange, nanoseconds.
    pub uncertainty_ns: u64,
    /// Exchanges the fastest was chosen from.
    pub exchanges: u32,
}

/// The exchanges of one stream.
#[derive(Debug)]
pub(crate) struct Exchange {
    started: Instant,
    asked: Option<(u64, Instant)>,
    greeted: bool,
    best: Option<Clock>,
    exchanges: u32,
}

impl Exchange {
    /// Begins when the probe is asked to start, before it can have looked at its clock.
    pub(crate) fn new() -> Self {
        Self { started: Instant::now(), asked: None, greeted: false, best: None, exchanges: 0 }
    }

    /// Whether another question should go out at once.
    pub(crate) fn wants(&self) -> bool {
        self.greeted && self.asked.is_none() && self.exchanges <= WANTED
    }

    /// A ping with this number goes out now.
    pub(crate) fn asked(&mut self, nonce: u64) {
        self.asked = Some((nonce, Instant::now()));
    }

    /// Hears a frame.
    pub(crate) fn heard(&mut self, frame: &Frame) {
        let wall = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        match frame {
            Frame::Hello(hello) => {
                self.greeted = true;
                self.take(hello.wall_ns, self.started.elapsed(), wall);
            }
            Frame::Beat(Beat { wall_ns, nonce, .. }) => {
                if let Some((_, asked)) = self.asked.take_if(|(number, _)| number == nonce) {
                    self.take(*wall_ns, asked.elapsed(), wall);
                }
            }
            _ => {}
        }
    }

    /// The best answer so far.
    pub(crate) fn clock(&self) -> Option<Clock> {
        self.best.map(|best| Clock { exchanges: self.exchanges, ..best })
    }

    /// The node's clock said `node_ns` at some time within the `passed` before our `wall`.
    fn take(&mut self, node_ns: u64, passed: Duration, wall: Duration) {
        self.exchanges += 1;
        let uncertainty = passed / 2;
        let middle = i128::try_from(wall.saturating_sub(uncertainty).as_nanos()).unwrap_or(i128::MAX);
        let offset = i128::from(node_ns) - middle;
        let uncertainty_ns = u64::try_from(uncertainty.as_nanos()).unwrap_or(u64::MAX);
        // A hostile clock may be anywhere.
        let offset_ns = i64::try_from(offset).unwrap_or(if offset < 0 { i64::MIN } else { i64::MAX });
        if self.best.is_none_or(|best| uncertainty_ns < best.uncertainty_ns) {
            self.best = Some(Clock { offset_ns, uncertainty_ns, exchanges: 0 });
        }
    }
}

#[cfg(test)]
mod tests {
    use muster_wire::Reading;

    use super::*;

    const WALL: Duration = Duration::from_secs(1_800_000_000);

    fn node(ahead_ms: i64, at: Duration) -> u64 {
        u64::try_from(i64::try_from(at.as_nanos()).unwrap() + ahead_ms * 1_000_000).unwrap()
    }

    #[test]
    fn the_fastest_exchange_counts_and_the_truth_lies_within_its_bounds() {
        let mut exchange = Exchange::new();
        // The node is 5 s ahead; the first answer took a second to come back, the second two milliseconds.
        exchange.take(node(5_000, WALL - Duration::from_millis(990)), Duration::from_secs(1), WALL);
        let slow = exchange.clock().unwrap();
        exchange.take(node(5_000, WALL - Duration::from_millis(1)), Duration::from_millis(2), WALL);
        let fast = exchange.clock().unwrap();
        for clock in [slow, fast] {
            assert!((clock.offset_ns - 5_000_000_000).unsigned_abs() <= clock.uncertainty_ns, "{clock:?}");
        }
        assert_eq!((slow.uncertainty_ns, fast.uncertainty_ns, fast.exchanges), (500_000_000, 1_000_000, 2));
    }

    #[test]
    fn only_the_answer_to_our_question_is_measured() {
        let mut exchange = Exchange::new();
        let hello = |wall_ns| {
            Frame::Hello(muster_wire::Hello {
                protocol: 1,
                build: String::new(),
                boot_id: Reading::Absent,
                hostname: Reading::Absent,
                wall_ns,
                monotonic_ns: 0,
                pid: 2,
                capabilities: Vec::new(),
            })
        };
        assert!(!exchange.wants());
        exchange.heard(&hello(u64::MAX));
        assert_eq!(exchange.clock().unwrap().offset_ns, i64::MAX);
        assert!(exchange.wants());
        exchange.asked(7);
        assert!(!exchange.wants());
        exchange.heard(&Frame::Beat(Beat { wall_ns: 0, monotonic_ns: 0, nonce: 0 }));
        assert_eq!(exchange.clock().unwrap().exchanges, 1);
        exchange.heard(&Frame::Beat(Beat { wall_ns: 0, monotonic_ns: 0, nonce: 7 }));
        assert_eq!(exchange.clock().unwrap().exchanges, 2);
    }
}
