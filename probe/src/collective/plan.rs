//! Which block goes where in which step of a collective, and what a right arrival holds.

use muster_wire::Collective;

/// One step of one rank: it sends a block and receives one at the same time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Step {
    pub(crate) to: usize,
    pub(crate) from: usize,
    /// Block of the own data that is sent.
    pub(crate) send: usize,
    pub(crate) receive: Place,
    /// Block of the own data that the arrival is added to.
    pub(crate) add_to: Option<usize>,
    pub(super) holds: Held,
}

/// Where an arrival is put: arrivals that are added or that others replace are kept apart, so that each can be checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    Data(usize),
    Apart(usize),
}

/// What a block holds: the sum of `count` contributions to block `block`, whose numbers sum to `ids`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Held {
    pub(super) block: usize,
    pub(super) count: u32,
    pub(super) ids: u32,
}

/// The steps of rank `me` of `n`.
pub(crate) fn steps(collective: Collective, me: usize, n: usize) -> Vec<Step> {
    let ring = |send: usize, receive| Step {
        to: (me + 1) % n,
        from: (me + n - 1) % n,
        send,
        receive,
        add_to: None,
        holds: Held { block: 0, count: 0, ids: 0 },
    };
    // `by` places back in the ring; never more than twice around.
    let back = |by: usize| (me + 2 * n - by) % n;
    match collective {
        Collective::AllReduce => {
            let reduce = (0..n - 1).map(|s| {
                let block = back(s + 1);
                let holds = sum(block, block, s + 1, n);
                Step { add_to: Some(block), holds, ..ring(back(s), Place::Apart(s)) }
            });
            let gather = (0..n - 1).map(|s| {
                let block = back(s);
                Step { holds: sum(block, 0, n, n), ..ring((me + 1 + 2 * n - s) % n, Place::Data(block)) }
            });
            reduce.chain(gather).collect()
        }
        Collective::AllGather => (0..n - 1)
            .map(|s| {
                let block = back(s + 1);
                let holds = Held { block, count: 1, ids: block as u32 };
                Step { holds, ..ring(back(s), Place::Data(block)) }
            })
            .collect(),
        Collective::AllToAll => (1..n)
            .map(|s| {
                let (to, from) = ((me + s) % n, back(s));
                let holds = Held { block: me, count: 1, ids: (from * n + me) as u32 };
                Step { to, from, send: to, receive: Place::Apart(from), add_to: None, holds }
            })
            .collect(),
    }
}

/// What rank `me` puts into `block` of its data before the first step; nothing where that is of no use.
pub(super) fn own(collective: Collective, me: usize, n: usize, block: usize) -> Option<Held> {
    match collective {
        Collective::AllReduce => Some(Held { block, count: 1, ids: me as u32 }),
        Collective::AllGather => (block == me).then_some(Held { block, count: 1, ids: me as u32 }),
        Collective::AllToAll => Some(Held { block, count: 1, ids: (me * n + block) as u32 }),
    }
}

/// The block that rank `me` computes itself, and what it must hold in the end.
pub(super) fn computed(collective: Collective, me: usize, n: usize) -> Option<Held> {
    (collective == Collective::AllReduce).then(|| sum((me + 1) % n, 0, n, n))
}

/// The contributions of `count` ranks from `first` on, around the ring.
fn sum(block: usize, first: usize, count: usize, n: usize) -> Held {
    Held { block, count: count as u32, ids: (0..count).map(|at| ((first + at) % n) as u32).sum() }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Blocks as lists of who contributed; every rank makes a step, then all make the next.
    fn simulate(collective: Collective, n: usize) {
        let of = |me: usize, block: usize| own(collective, me, n, block).map(|held| (held.count, held.ids));
        let mut data: Vec<Vec<Option<(u32, u32)>>> =
            (0..n).map(|me| (0..n).map(|block| of(me, block)).collect()).collect();
        let plans: Vec<Vec<Step>> = (0..n).map(|me| steps(collective, me, n)).collect();
        for at in 0..plans[0].len() {
            let sent: Vec<Option<(u32, u32)>> = (0..n).map(|me| data[me][plans[me][at].send]).collect();
            for me in 0..n {
                let step = plans[me][at];
                assert_eq!(plans[step.from][at].to, me, "{collective} of {n}, step {at}: nobody sends to {me}");
                let arrived = sent[step.from];
                assert_eq!(
                    arrived,
                    Some((step.holds.count, step.holds.ids)),
                    "{collective} of {n}, rank {me}, step {at}"
                );
                if let Place::Data(block) = step.receive {
                    assert_ne!(block, step.send);
                    assert_eq!(block, step.holds.block);
                    data[me][block] = arrived;
                }
                if let (Some(block), Some((count, ids))) = (step.add_to, arrived) {
                    let before = data[me][block].unwrap();
                    data[me][block] = Some((before.0 + count, before.1 + ids));
                }
            }
        }
        let all = (n as u32, (0..n as u32).sum());
        for me in 0..n {
            if let Some(held) = computed(collective, me, n) {
                assert_eq!(data[me][held.block], Some((held.count, held.ids)));
                assert!(data[me].iter().all(|block| *block == Some(all)), "{collective} of {n}: {data:?}");
            }
        }
    }

    #[test]
    fn every_rank_receives_what_it_should_in_every_step() {
        for collective in Collective::ALL {
            (2..=17).for_each(|n| simulate(collective, n));
        }
    }

    #[test]
    fn the_steps_carry_what_the_bus_factor_says() {
        for n in [2, 3, 8, 64] {
            for collective in Collective::ALL {
                let carried = steps(collective, 1, n).len() as f64 / n as f64;
                assert!((carried - collective.bus_factor(n)).abs() < 1e-12, "{collective} of {n}");
            }
        }
    }
}
