//! In which order work is done: that of each stream, and otherwise as chance has it, so that who does not wait for an event
//! finds out.

use std::collections::VecDeque;
use std::sync::Arc;

use super::errors::{Code, ILLEGAL_ADDRESS, INVALID_HANDLE};
use super::state::State;

/// Launch shape: blocks, threads of a block, bytes of dynamic shared memory.
pub(super) type Shape = ([u32; 3], [u32; 3], usize);

/// Work on a card.
pub(super) type Body = Arc<dyn Fn(&mut State, usize) -> Result<(), Code> + Send + Sync>;

/// One piece of work.
#[derive(Clone)]
pub(super) enum Work {
    Kernel {
        index: usize,
        shape: Shape,
        params: Vec<u8>,
    },
    Put {
        to: u64,
        bytes: Vec<u8>,
    },
    /// The address is the caller's, who keeps it until the stream was waited for.
    Get {
        to: usize,
        from: u64,
        size: usize,
    },
    Copy {
        to: u64,
        from: u64,
        size: usize,
    },
    Record {
        event: usize,
        turn: u64,
    },
    Follow {
        event: usize,
        turn: u64,
    },
    /// A recorded graph.
    Replay {
        graph: usize,
    },
    /// What another library does on this stream.
    Call {
        body: Body,
    },
    /// All streams of a meeting are held until each has come to it.
    Meet {
        number: usize,
    },
}

pub(super) struct Stream {
    pub(super) card: usize,
    /// Work, and when the host brought it.
    waiting: VecDeque<(f64, Work)>,
    /// What is recorded instead of done, while that is asked for.
    pub(super) recorded: Option<Vec<Work>>,
    /// When its last work was done, nanoseconds on its card's clock.
    now: f64,
}

/// Turns count how often it was recorded.
#[derive(Default)]
pub(super) struct Event {
    card: usize,
    asked: u64,
    /// When it happened, by turn, nanoseconds on its card's clock. Who follows a turn does not wait for those behind it.
    times: Vec<f64>,
}

impl Event {
    fn has_come(&self, turn: u64) -> bool {
        self.times.len() as u64 >= turn
    }

    /// When that turn came; nothing was ever asked of turn 0.
    fn at(&self, turn: u64) -> f64 {
        turn.checked_sub(1).and_then(|at| self.times.get(at as usize)).copied().unwrap_or(0.0)
    }
}

impl State {
    pub(super) fn new_stream(&mut self) -> usize {
        self.streams.push(Stream { card: self.current, waiting: VecDeque::new(), recorded: None, now: 0.0 });
        self.streams.len()
    }

    pub(super) fn new_event(&mut self) -> usize {
        self.events.push(Event { card: self.current, ..Event::default() });
        self.events.len()
    }

    /// Puts work on the stream of this handle.
    pub(super) fn enqueue(&mut self, stream: usize, work: Work) -> Result<(), Code> {
        let stream = stream.checked_sub(1).and_then(|at| self.streams.get_mut(at)).ok_or(INVALID_HANDLE)?;
        self.cards[stream.card].usable()?;
        match &mut stream.recorded {
            Some(recorded) => recorded.push(work),
            None => stream.waiting.push_back((self.cards[stream.card].host, work)),
        }
        Ok(())
    }

    /// The card of a stream's handle.
    pub(super) fn card_of(&self, stream: usize) -> Option<usize> {
        self.streams.get(stream.checked_sub(1)?).map(|stream| stream.card)
    }

    /// The card of an event's handle.
    pub(super) fn card_of_event(&self, event: usize) -> Option<usize> {
        self.events.get(event.checked_sub(1)?).map(|event| event.card)
    }

    pub(super) fn record(&mut self, event: usize, stream: usize) -> Result<(), Code> {
        let card = self.card_of(stream);
        let found = event.checked_sub(1).and_then(|at| self.events.get_mut(at));
        // An event is recorded by streams of its own context only.
        let found = found.filter(|event| Some(event.card) == card).ok_or(INVALID_HANDLE)?;
        found.asked += 1;
        let turn = found.asked;
        self.enqueue(stream, Work::Record { event: event - 1, turn })
    }

    pub(super) fn follow(&mut self, event: usize, stream: usize) -> Result<(), Code> {
        let turn = event.checked_sub(1).and_then(|at| self.events.get(at)).ok_or(INVALID_HANDLE)?.asked;
        self.enqueue(stream, Work::Follow { event: event - 1, turn })
    }

    /// When an event last happened; nothing while it has not.
    pub(super) fn happened(&self, event: usize) -> Option<f64> {
        let event = self.events.get(event.checked_sub(1)?)?;
        (event.asked > 0 && event.has_come(event.asked)).then(|| event.at(event.asked))
    }

    /// Works until this stream is empty; false when something holds it up for ever.
    pub(super) fn drain(&mut self, stream: usize) -> bool {
        while !self.streams[stream - 1].waiting.is_empty() {
            if !self.advance() {
                return false;
            }
        }
        let Stream { card, now, .. } = self.streams[stream - 1];
        self.cards[card].host = self.cards[card].host.max(now);
        !self.cards[card].hangs
    }

    /// Works until nothing can go on.
    pub(super) fn settle(&mut self) {
        while self.advance() {}
    }

    /// Does the next piece of work of any stream that can go on.
    fn advance(&mut self) -> bool {
        self.bring();
        let able: Vec<usize> = (0..self.streams.len()).filter(|at| self.able(*at)).collect();
        if able.is_empty() {
            return false;
        }
        let at = able[self.rng.below(able.len() as u64) as usize];
        let card = self.streams[at].card;
        if let Some((brought, work)) = self.streams[at].waiting.pop_front() {
            // Streams run side by side, each from when it was free and its work was there.
            let start = self.streams[at].now.max(brought);
            let latest = self.cards[card].now;
            self.cards[card].now = if self.cards[card].device.faults.serial { latest.max(start) } else { start };
            self.execute(card, work);
            self.streams[at].now = self.cards[card].now;
            self.cards[card].now = self.cards[card].now.max(latest);
        }
        true
    }

    fn able(&self, stream: usize) -> bool {
        let stream = &self.streams[stream];
        let held = match stream.waiting.front() {
            None => true,
            Some((_, Work::Follow { event, turn })) => !self.events[*event].has_come(*turn),
            Some((_, Work::Meet { number })) => !self.assembled(*number),
            Some(_) => false,
        };
        !held && !self.cards[stream.card].hangs
    }

    fn assembled(&self, number: usize) -> bool {
        let meeting = &self.meetings[number];
        !meeting.held
            && self.all_here(number)
            && meeting.world.is_none_or(|world| meeting.sent && self.has_heard(world))
    }

    /// Whether all streams have come to a meeting.
    pub(super) fn all_here(&self, number: usize) -> bool {
        let meeting = &self.meetings[number];
        let here = |stream: &usize| {
            let stream = &self.streams[*stream - 1];
            let come = matches!(stream.waiting.front(), Some((_, Work::Meet { number: at })) if *at == number);
            come && !self.cards[stream.card].hangs
        };
        meeting.streams.iter().all(here)
    }

    /// The others leave with the one whose turn it was.
    fn meet(&mut self, at: usize, number: usize) -> Result<(), Code> {
        let streams = self.meetings[number].streams.clone();
        let others: Vec<usize> = streams.into_iter().map(|s| s - 1).filter(|s| self.streams[*s].card != at).collect();
        let mut begin = self.cards[at].now;
        for other in &others {
            let stream = &mut self.streams[*other];
            let brought = stream.waiting.pop_front().map_or(0.0, |(brought, _)| brought);
            begin = begin.max(stream.now).max(brought);
        }
        let end = begin + self.hold_meeting(number)?;
        others.into_iter().for_each(|stream| self.streams[stream].now = end);
        self.cards[at].now = end;
        Ok(())
    }

    pub(super) fn execute(&mut self, at: usize, work: Work) {
        let works = self.cards[at].broken.is_none();
        let done = match work {
            Work::Record { event, turn } => {
                let now = self.cards[at].now;
                self.events[event].times.resize(turn as usize, now);
                Ok(())
            }
            Work::Follow { event, turn } => {
                self.cards[at].now = self.cards[at].now.max(self.events[event].at(turn));
                Ok(())
            }
            Work::Meet { number } => self.meet(at, number),
            _ if !works => Ok(()),
            Work::Call { body } => body(self, at),
            Work::Kernel { index, shape, params } => {
                self.launch(at, index, shape, &params);
                Ok(())
            }
            Work::Replay { graph } => {
                self.replay(at, graph);
                Ok(())
            }
            Work::Put { to, bytes } => {
                self.cards[at].copied(bytes.len());
                self.cards[at].device.memory.write(to, &bytes).map_err(|_| ILLEGAL_ADDRESS)
            }
            Work::Get { to, from, size } => self.get(at, to, (from, size)),
            Work::Copy { to, from, size } => self.copy(at, (to, from), size),
        };
        if let Err(code) = done {
            self.cards[at].broken = Some(code);
        }
    }

    #[expect(unsafe_code, reason = "memory of the caller")]
    fn get(&mut self, at: usize, to: usize, (from, size): (u64, usize)) -> Result<(), Code> {
        self.cards[at].copied(size);
        let bytes = self.cards[at].device.memory.read(from, size).map_err(|_| ILLEGAL_ADDRESS)?;
        // SAFETY: the caller of the copy gave room for that many bytes until the stream was waited for.
        unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), to as *mut u8, size) };
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::driver::Config;

    /// What one card copies from another that writes 1 there first, with and without waiting for it.
    fn copied(waits: bool, seed: u64) -> u8 {
        let mut state = State::new(Config { devices: 2, ..Config::default() });
        state.rng = crate::rng::Rng(seed);
        let at: Vec<u64> = (0..2).filter_map(|card| state.cards[card].device.memory.allocate(16)).collect();
        let mut streams = Vec::new();
        for (card, address) in at.iter().enumerate() {
            state.current = card;
            streams.push(state.new_stream());
            assert_eq!(state.cards[card].device.memory.write(*address, &[0; 16]), Ok(()));
        }
        state.current = 0;
        let event = state.new_event();
        let done = state
            .enqueue(streams[0], Work::Put { to: at[0], bytes: vec![1; 16] })
            .and_then(|()| state.record(event, streams[0]))
            .and_then(|()| if waits { state.follow(event, streams[1]) } else { Ok(()) })
            .and_then(|()| state.enqueue(streams[1], Work::Copy { to: at[1], from: at[0], size: 16 }));
        assert_eq!(done, Ok(()));
        assert!(state.drain(streams[1]));
        state.cards[1].device.memory.read(at[1], 1).map_or(9, |bytes| bytes[0])
    }

    #[test]
    fn streams_that_do_not_wait_for_each_other_come_in_any_order() {
        assert!((0..64).all(|seed| copied(true, seed) == 1));
        let free: Vec<u8> = (0..64).map(|seed| copied(false, seed)).collect();
        assert!(free.contains(&0) && free.contains(&1), "{free:?}");
    }

    #[test]
    fn who_waits_for_a_mark_does_not_wait_for_what_is_marked_later() {
        for seed in 0..16 {
            let mut state = State::new(Config::default());
            state.rng = crate::rng::Rng(seed);
            let (first, second, event) = (state.new_stream(), state.new_stream(), state.new_event());
            let at = state.cards[0].device.memory.allocate(16).unwrap_or(0);
            let put = |state: &mut State| state.enqueue(first, Work::Put { to: at, bytes: vec![1; 16] });
            let mut done = put(&mut state).and_then(|()| state.record(event, first));
            done = done.and_then(|()| state.follow(event, second));
            done = done.and_then(|()| put(&mut state)).and_then(|()| state.record(event, first));
            assert_eq!(done, Ok(()));
            assert!(state.drain(first) && state.drain(second));
            let [early, late] = [second, first].map(|stream| state.streams[stream - 1].now);
            assert!((late - 2.0 * early).abs() < 1e-6, "{early} {late}");
            assert_eq!(state.happened(event), Some(late));
        }
    }
}
