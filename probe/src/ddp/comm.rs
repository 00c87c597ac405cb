//! How do the ranks of a communicator sum numbers, so that all end with the same bits?
//!
//! Around a ring: each block is summed in one order, wherever it ends up, and then handed on as it is.

use std::sync::PoisonError;
use std::time::Duration;

use muster_wire::Collective;

use super::board::{Board, Doing, Kept, Work};
use super::bucket::block;
use super::group::Op;
use crate::collective::{Broken, Half, Lane, Place, Step, steps};
use crate::pair::meet::Limit;

/// Bytes of a number.
const ELEMENT: usize = size_of::<f32>();

/// What was not done, where, and by whom.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Trouble {
    /// Communicator, by its place in [`Board::kept`].
    pub(super) comm: usize,
    pub(super) op: Op,
    /// Number of the operation in its communicator.
    pub(super) seq: u64,
    pub(super) kind: Kind,
    /// Rank of the job at the other end.
    pub(super) peer: usize,
    pub(super) why: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// The time is over.
    Late,
    /// The connection is gone.
    Gone,
    /// The peer does something else.
    Mismatch,
    /// Ended from outside.
    Ended,
}

/// A ring of ranks.
pub(super) struct Communicator<'a> {
    board: &'a Board,
    /// Place in [`Board::kept`].
    comm: usize,
    lane: Lane,
    /// Place of this rank in the ring.
    me: usize,
    steps: Vec<Step>,
    timeout: Duration,
    bytes: Vec<u8>,
    arrival: Vec<u8>,
}

/// An operation under way.
struct Under<'a> {
    kept: &'a Kept,
    limit: &'a Limit<'a>,
    op: Op,
    seq: u64,
}

impl<'a> Communicator<'a> {
    /// Of `lane`, whose connections are known by the places of the ring.
    pub(super) fn new(board: &'a Board, comm: usize, lane: Lane, timeout: Duration) -> Self {
        let ranks = &board.kept[comm].group.ranks;
        let me = ranks.iter().position(|rank| *rank == board.rank).unwrap_or(0);
        let steps = steps(Collective::AllReduce, me, ranks.len());
        Self { board, comm, lane, me, steps, timeout, bytes: Vec::new(), arrival: Vec::new() }
    }

    fn size(&self) -> usize {
        self.board.kept[self.comm].group.ranks.len()
    }

    /// Every rank ends with the sum of what all put into `data`.
    pub(super) fn all_reduce(&mut self, data: &mut [f32]) -> Result<(), Trouble> {
        self.operate(Op::AllReduce, data.len(), |own, under| own.sum(data, under))
    }

    /// Every rank ends with the words of all, in the order of the ring.
    pub(super) fn all_gather(&mut self, word: u64) -> Result<Vec<u64>, Trouble> {
        Ok(self.gather([word])?.into_iter().map(|[word]| word).collect())
    }

    /// The same of several words of each.
    pub(super) fn gather<const N: usize>(&mut self, own: [u64; N]) -> Result<Vec<[u64; N]>, Trouble> {
        self.operate(Op::AllGather, N, |ring, under| {
            let (me, n) = (ring.me, ring.size());
            let mut words = vec![[0; N]; n];
            words[me] = own;
            for s in 0..n - 1 {
                let mut heard = vec![0; 8 * N];
                let said = words[(me + n - s) % n].map(u64::to_be_bytes);
                ring.exchange(under, ((me + 1) % n, said.as_flattened()), ((me + n - 1) % n, &mut heard))?;
                let mut pieces = heard.as_chunks::<8>().0.iter();
                words[(me + 2 * n - s - 1) % n] = [(); N].map(|()| pieces.next().map_or(0, |p| u64::from_be_bytes(*p)));
            }
            Ok(words)
        })
    }

    /// From here on operations may take so much longer: what ranks do between them has limits of its own, which are to end first.
    pub(super) fn be_patient(&mut self, longer: Duration) {
        self.timeout += longer;
    }

    /// Launches, records, compares with the neighbours what each is about to do, and does it.
    fn operate<T>(
        &mut self,
        op: Op,
        elements: usize,
        body: impl FnOnce(&mut Self, &Under<'_>) -> Result<T, Trouble>,
    ) -> Result<T, Trouble> {
        let board = self.board;
        let kept = &board.kept[self.comm];
        let seq = kept.launch(op);
        let record = || board.recorder.lock().unwrap_or_else(PoisonError::into_inner);
        let id = record().launch((self.comm, seq), op, elements, self.timeout);
        board.doing(Some(Doing { comm: self.comm, seq, op, elements }));
        let limit = Limit::new(self.timeout, &board.halt, "it was not over");
        let under = Under { kept, limit: &limit, op, seq };
        let result = self.agree(&under, elements).and_then(|()| body(self, &under))?;
        board.doing(None);
        record().complete(id);
        Ok(result)
    }

    /// A shorter or another operation on one rank must not pass for the rest of the sum.
    fn agree(&self, under: &Under<'_>, elements: usize) -> Result<(), Trouble> {
        let head = |op: Op, seq: u64, elements: u64| {
            [op as u64, seq, elements].iter().flat_map(|word| word.to_be_bytes()).collect::<Vec<u8>>()
        };
        let own = head(under.op, under.seq, elements as u64);
        let mut theirs = vec![0; own.len()];
        let n = self.size();
        let (to, from) = ((self.me + 1) % n, (self.me + n - 1) % n);
        self.exchange(under, (to, &own), (from, &mut theirs))?;
        if theirs == own {
            return Ok(());
        }
        let word = |at: usize| theirs[8 * at..8 * at + 8].try_into().map_or(0, u64::from_be_bytes);
        let their_op = if word(0) == Op::AllReduce as u64 { Op::AllReduce } else { Op::AllGather };
        let why = format!(
            "it runs {} {} of {} elements, where this rank runs {} {} of {elements}",
            their_op.name(),
            word(1),
            word(2),
            under.op.name(),
            under.seq,
        );
        Err(self.trouble(under, Kind::Mismatch, from, why))
    }

    fn sum(&mut self, data: &mut [f32], under: &Under<'_>) -> Result<(), Trouble> {
        let n = self.size();
        let mut bytes = std::mem::take(&mut self.bytes);
        bytes.clear();
        bytes.extend(data.iter().flat_map(|number| number.to_le_bytes()));
        let range = |at: usize| {
            let elements = block(data.len(), at, n);
            elements.start * ELEMENT..elements.end * ELEMENT
        };
        let mut arrival = std::mem::take(&mut self.arrival);
        for step in &self.steps {
            let into = match (step.receive, step.add_to) {
                (Place::Data(at), _) | (Place::Apart(_), Some(at)) => at,
                (Place::Apart(_), None) => continue,
            };
            arrival.clear();
            arrival.resize(range(into).len(), 0);
            self.exchange(under, (step.to, &bytes[range(step.send)]), (step.from, &mut arrival))?;
            let place = &mut bytes[range(into)];
            if step.add_to.is_some() { add(place, &arrival) } else { place.copy_from_slice(&arrival) }
        }
        for (number, bytes) in data.iter_mut().zip(bytes.chunks_exact(ELEMENT)) {
            *number = number_of(bytes);
        }
        (self.bytes, self.arrival) = (bytes, arrival);
        Ok(())
    }

    fn exchange(
        &self,
        under: &Under<'_>,
        (to, what): (usize, &[u8]),
        (from, into): (usize, &mut [u8]),
    ) -> Result<(), Trouble> {
        let ranks = &under.kept.group.ranks;
        let (next, before) = (ranks[to], ranks[from]);
        let request = |work: &mut Work| work.requested += 1;
        let complete = |work: &mut Work| work.completed += 1;
        under.kept.work(next, request);
        under.kept.work(before, request);
        let tell = &mut |half| match half {
            Half::Sent => under.kept.work(next, complete),
            Half::Received => under.kept.work(before, complete),
        };
        self.lane.exchange_telling((to, what), (from, into), under.limit, tell).map_err(|broken| match broken {
            Broken::Stopped => self.trouble(under, Kind::Ended, from, "ended from outside".to_owned()),
            Broken::Late { receiving: true } => {
                let why = format!("it has not sent everything within {} s", self.timeout.as_secs());
                self.trouble(under, Kind::Late, from, why)
            }
            Broken::Late { receiving: false } => {
                let why = format!("it has not taken everything within {} s", self.timeout.as_secs());
                self.trouble(under, Kind::Late, to, why)
            }
            Broken::Receiving(why) => self.trouble(under, Kind::Gone, from, why),
            Broken::Sending(why) => self.trouble(under, Kind::Gone, to, why),
        })
    }

    /// `peer` is a place of the ring.
    fn trouble(&self, under: &Under<'_>, kind: Kind, peer: usize, why: String) -> Trouble {
        let peer = under.kept.group.ranks[peer];
        Trouble { comm: self.comm, op: under.op, seq: under.seq, kind, peer, why }
    }
}

fn number_of(bytes: &[u8]) -> f32 {
    bytes.try_into().map_or(f32::NAN, f32::from_le_bytes)
}

/// The arrival is the sum of the ranks before; the own number is added to it on every rank alike.
fn add(place: &mut [u8], arrival: &[u8]) {
    for (own, came) in place.chunks_exact_mut(ELEMENT).zip(arrival.chunks_exact(ELEMENT)) {
        own.copy_from_slice(&(number_of(came) + number_of(own)).to_le_bytes());
    }
}
