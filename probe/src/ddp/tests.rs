//! Ranks as threads on loopback: sums are those of a single process, bit for bit, and all ranks have the same.

use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::thread;
use std::time::Duration;

use super::board::Board;
use super::bucket::block;
use super::comm::{Communicator, Kind, Trouble};
use super::meet;
use super::train::unlike;
use crate::pair::meet::Limit;

/// What every rank of `n` does, each with its communicator of all ranks.
fn ranks<T: Send>(n: usize, body: impl Fn(usize, &mut Communicator<'_>) -> T + Sync) -> Vec<T> {
    let listeners: Vec<TcpListener> = (0..n).map(|_| TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap()).collect();
    listeners.iter().for_each(|listener| listener.set_nonblocking(true).unwrap());
    let peers: Vec<SocketAddr> = listeners.iter().map(|listener| listener.local_addr().unwrap()).collect();
    let (peers, body) = (&peers, &body);
    thread::scope(|scope| {
        let one = |(rank, listener): (usize, TcpListener)| {
            scope.spawn(move || {
                let board = Board::new(rank, (peers.clone(), 1), [3; 32]);
                let limit = Limit::new(Duration::from_secs(10), &board.halt, "the ranks did not meet");
                let lane = meet::rings(&board, &listener, &limit).unwrap().remove(0);
                body(rank, &mut Communicator::new(&board, 0, lane, Duration::from_secs(10)))
            })
        };
        let running: Vec<_> = listeners.into_iter().enumerate().map(one).collect();
        running.into_iter().map(|rank| rank.join().unwrap()).collect()
    })
}

/// Numbers whose sum depends on the order in which they are added.
fn number(rank: usize, at: usize) -> f32 {
    let mixed = (rank as u64 * 7919 + at as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    ((mixed >> 40) as f32 - 8_388_608.0) * 10_f32.powi(at as i32 % 7 - 3)
}

#[test]
fn every_rank_ends_with_the_bits_that_one_process_sums_in_the_order_of_the_ring() {
    for n in [2, 3, 5] {
        for len in [1, 2, 7, 1000, 10_007] {
            let sums = ranks(n, |rank, ring| {
                let mut data: Vec<f32> = (0..len).map(|at| number(rank, at)).collect();
                ring.all_reduce(&mut data).unwrap();
                data.into_iter().map(f32::to_bits).collect::<Vec<u32>>()
            });
            let mut right = vec![0; len];
            for first in 0..n {
                for at in block(len, first, n) {
                    let around = (0..n).map(|by| number((first + by) % n, at));
                    right[at] = around.reduce(|sum, own| sum + own).unwrap().to_bits();
                }
            }
            assert!(sums.iter().all(|sum| *sum == right), "{len} numbers of {n} ranks");
        }
    }
}

#[test]
fn words_of_all_ranks_come_in_their_order() {
    let words = ranks(4, |rank, ring| ring.all_gather(10 + rank as u64).unwrap());
    assert!(words.iter().all(|all| *all == [10, 11, 12, 13]), "{words:?}");
}

#[test]
fn a_rank_that_sums_fewer_numbers_is_no_wrong_sum_but_a_mismatch() {
    let ended = ranks(3, |rank, ring| ring.all_reduce(&mut vec![1.0; if rank == 1 { 99 } else { 100 }]));
    let Err(Trouble { kind: Kind::Mismatch, peer: 1, why, .. }) = &ended[2] else { panic!("{ended:?}") };
    assert_eq!(why, "it runs all_reduce 1 of 99 elements, where this rank runs all_reduce 1 of 100");
    assert!(ended.iter().all(Result::is_err), "{ended:?}");
}

#[test]
fn the_few_are_wrong_and_where_there_is_no_majority_nobody_is() {
    assert_eq!(unlike(&[7, 7, 8, 7]), [2]);
    assert_eq!(unlike(&[7, 7, 7]), [] as [usize; 0]);
    assert_eq!(unlike(&[7, 8]), [] as [usize; 0]);
    assert_eq!(unlike(&[1, 2, 2, 3, 2]), [0, 3]);
}
