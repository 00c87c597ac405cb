//! Where each buffer lies: one memory, in which buffers that are never needed at the same time share a place.

use crate::op::Span;

/// Elements to which every buffer is aligned: a cache line of f32.
const ALIGN: usize = 16;

/// Elements that are nobody's behind each gradient of a tape whose updates come last: so far a bucket of gradients may reach when it
/// is cut into equal parts, of 4 elements or a multiple, for up to 16 replicas.
pub const GAP: usize = 64;

/// When a buffer is needed, in operations, both ends included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Life {
    pub(crate) first: usize,
    pub(crate) last: usize,
}

impl Life {
    pub(crate) const ALWAYS: Self = Self { first: 0, last: usize::MAX };

    const fn meets(self, other: Self) -> bool {
        self.first <= other.last && other.first <= self.last
    }
}

/// A buffer to be placed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Request {
    pub(crate) len: usize,
    /// `None`: nobody uses it.
    pub(crate) life: Option<Life>,
}

/// Places the largest buffers first, each at the lowest offset that is free during its whole life (Pisarchyk and
/// Lee, "Efficient Memory Management for Deep Neural Net Inference", 2020, greedy by size). Returns the places in
/// the order of the requests and the size of the memory.
pub(crate) fn place(requests: &[Request]) -> (Vec<Span>, usize) {
    let mut order: Vec<usize> = (0..requests.len()).collect();
    order.sort_by_key(|i| std::cmp::Reverse(requests[*i].len));
    let mut spans = vec![Span { offset: 0, len: 0 }; requests.len()];
    // In order of offset, so that the first gap is found in one walk.
    let mut placed: Vec<(Span, Life)> = Vec::new();
    let mut size = 0;
    for at in order {
        let Request { len, life: Some(life) } = requests[at] else { continue };
        let mut offset = 0;
        for (taken, _) in placed.iter().filter(|(_, other)| other.meets(life)) {
            if offset + len <= taken.offset {
                break;
            }
            offset = offset.max(taken.end().next_multiple_of(ALIGN));
        }
        spans[at] = Span { offset, len };
        let rank = placed.partition_point(|(span, _)| span.offset <= offset);
        placed.insert(rank, (spans[at], life));
        size = size.max(offset + len);
    }
    (spans, size)
}

/// Offsets of buffers of these lengths that lie one behind the other, [`GAP`] elements apart at least, and the room for all.
pub(crate) fn line_up(lengths: impl Iterator<Item = usize>) -> (Vec<usize>, usize) {
    let (mut offsets, mut end) = (Vec::new(), 0);
    for len in lengths {
        offsets.push(end);
        end = (end + len + GAP).next_multiple_of(ALIGN);
    }
    (offsets, end)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn buffers_alive_at_the_same_time_never_overlap(
            buffers in prop::collection::vec((1usize..400, 0usize..40, 0usize..20, prop::bool::weighted(0.1)), 1..80)
        ) {
            let requests: Vec<Request> = buffers
                .iter()
                .map(|&(len, first, more, always)| {
                    let life = if always { Life::ALWAYS } else { Life { first, last: first + more } };
                    Request { len, life: Some(life) }
                })
                .collect();
            let (spans, size) = place(&requests);
            for (i, (a, ra)) in spans.iter().zip(&requests).enumerate() {
                prop_assert!(a.end() <= size && a.len == ra.len && a.offset % ALIGN == 0);
                for (b, rb) in spans.iter().zip(&requests).skip(i + 1) {
                    let together = ra.life.unwrap().meets(rb.life.unwrap());
                    prop_assert!(!together || a.end() <= b.offset || b.end() <= a.offset, "{a:?} {b:?}");
                }
            }
        }
    }

    #[test]
    fn buffers_that_never_meet_share_a_place() {
        let at = |first, last| Request { len: 100, life: Some(Life { first, last }) };
        let (spans, size) = place(&[at(0, 1), at(2, 3), at(4, 9)]);
        assert_eq!(size, 100);
        assert!(spans.iter().all(|span| span.offset == 0));
    }
}
