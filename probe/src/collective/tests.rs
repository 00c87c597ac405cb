//! Ranks on loopback: sound ones, one behind a line that flips a bit, one that leaves, one that never comes.

use std::io::{Read, Write};
use std::net::{IpAddr, Ipv4Addr, TcpStream};

use muster_wire::{Datum, Rank, Secret};

use super::*;

const HERE: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

fn order(collective: Collective, n: usize) -> CollectiveOrder {
    let rank = |at| Rank { name: format!("n{at}"), address: HERE, port: 0 };
    CollectiveOrder {
        visit: 7,
        secret: Secret([9; 32]),
        collective,
        rank: 0,
        ranks: (0..n).map(rank).collect(),
        sizes: vec![4, 1000, 300_000],
        streams: 2,
        duration_ms: 20,
        start_ns: 0,
        meet_ms: 5000,
        limit_ms: 20_000,
    }
}

/// Runs all ranks but those in `absent`; `ports` may put something else in front of a rank.
fn all(
    order: &CollectiveOrder,
    absent: &[usize],
    stops: &[AtomicBool],
    ports: impl FnOnce(&mut Vec<u16>),
) -> Vec<Option<Paired>> {
    let mut waiting = Vec::new();
    let mut open = Vec::new();
    for _ in &order.ranks {
        let order = ListenOrder { visit: order.visit, local: HERE, hold_ms: 5000 };
        waiting.push(listen(&order, &mut |frame| match frame {
            Frame::Listening(listening) => open.push(listening.port),
            other => panic!("{other:?}"),
        }));
    }
    ports(&mut open);
    let mut order = order.clone();
    order.ranks.iter_mut().zip(open).for_each(|(rank, port)| rank.port = port);
    thread::scope(|scope| {
        let one = |(rank, waiting)| {
            let order = CollectiveOrder { rank: rank as u16, ..order.clone() };
            (!absent.contains(&rank)).then(|| {
                scope.spawn(move || {
                    let mut last = None;
                    run(&order, waiting, &stops[rank], &mut |frame| last = Some(frame));
                    let Some(Frame::Paired(paired)) = last else { panic!("{last:?}") };
                    paired
                })
            })
        };
        let running: Vec<_> = waiting.into_iter().enumerate().map(one).collect();
        running.into_iter().map(|rank| rank.map(|rank| rank.join().unwrap())).collect()
    })
}

fn flags(n: usize) -> Vec<AtomicBool> {
    (0..n).map(|_| AtomicBool::new(false)).collect()
}

fn told<'a>(paired: &'a Paired, key: &str) -> Option<&'a Datum> {
    paired.facts.iter().find(|fact| fact.key == key)?.reading.value()
}

#[test]
fn every_collective_ends_with_the_right_bytes_and_a_value_per_operation_on_every_rank() {
    for collective in Collective::ALL {
        for n in [2, 3, 5] {
            let order = order(collective, n);
            for paired in all(&order, &[], &flags(n), |_| {}).into_iter().flatten() {
                assert_eq!(paired.outcome, Outcome::Done, "{collective} of {n}");
                let names: Vec<String> = paired.series.iter().map(|s| s.metric.name.clone()).collect();
                assert_eq!(names, ["busbw-4", "busbw-1000", "busbw-300000"]);
                let entry = |s: &muster_wire::Series| muster_wire::metric(&s.metric.benchmark, &s.metric.name).unwrap();
                assert!(paired.series.iter().all(|s| (entry(s).unit, entry(s).direction) == (s.unit, s.direction)));
                assert!(paired.series.iter().all(|s| s.values.len() >= 5 && s.values.iter().all(|v| *v > 0.0)));
                assert!(matches!(told(&paired, "checked.bytes"), Some(Datum::Number(bytes)) if *bytes > 1e6));
            }
        }
    }
}

/// Passes everything on to `port`, but for one bit `at` some byte of the first connection.
fn line_with_a_flaw(port: u16, at: usize) -> u16 {
    let listener = TcpListener::bind((HERE, 0)).unwrap();
    let own = listener.local_addr().unwrap().port();
    thread::spawn(move || {
        for (number, incoming) in listener.incoming().enumerate() {
            let (mut from, mut to) = (incoming.unwrap(), TcpStream::connect((HERE, port)).unwrap());
            thread::spawn(move || {
                let (mut passed, mut piece) = (0, vec![0; 4096]);
                while let Ok(count @ 1..) = from.read(&mut piece) {
                    if number == 0 && (passed..passed + count).contains(&at) {
                        piece[at - passed] ^= 0x40;
                    }
                    passed += count;
                    if to.write_all(&piece[..count]).is_err() {
                        break;
                    }
                }
            });
        }
    });
    own
}

#[test]
fn one_wrong_bit_is_seen_by_the_rank_behind_the_bad_line_in_the_step_that_brought_it() {
    let mut order = order(Collective::AllReduce, 3);
    (order.sizes, order.streams) = (vec![3000], 1);
    // Card, two words of agreement, and a byte into the first block that rank 0 sends to rank 1.
    let at = 44 + 16 + 401;
    let seen = all(&order, &[], &flags(3), |ports| ports[1] = line_with_a_flaw(ports[1], at));
    let behind = seen[1].as_ref().unwrap();
    let Outcome::Failed(why) = &behind.outcome else { panic!("{behind:?}") };
    assert_eq!(
        why,
        "allreduce: 3000 bytes, operation 1, step 1 of 4: 1 wrong elements, the first at byte 400, from n0"
    );
    assert_eq!(told(behind, "trouble.peer"), Some(&Datum::Text("n0".into())));
    // The wrong sum went on around the ring: the others saw it later.
    for paired in seen.iter().flatten() {
        assert_eq!(told(paired, "trouble"), Some(&Datum::Text("wrong".into())), "{paired:?}");
        let Some(Datum::Number(step)) = told(paired, "trouble.step") else { panic!("{paired:?}") };
        assert_eq!(*step == 1.0, std::ptr::eq(paired, behind), "{paired:?}");
    }
}

#[test]
fn a_rank_that_leaves_ends_it_for_all_and_its_neighbour_names_it() {
    let mut order = order(Collective::AllReduce, 3);
    (order.sizes, order.duration_ms) = (vec![8 << 20], 10_000);
    let stops = flags(3);
    let seen = thread::scope(|scope| {
        scope.spawn(|| {
            thread::sleep(Duration::from_millis(300));
            stops[1].store(true, std::sync::atomic::Ordering::Release);
        });
        all(&order, &[], &stops, |_| {})
    });
    assert_eq!(seen[1].as_ref().unwrap().outcome, Outcome::NotRun("stopped".into()));
    let Outcome::Failed(why) = &seen[2].as_ref().unwrap().outcome else { panic!("{seen:?}") };
    assert!(why.starts_with("allreduce: 8388608 bytes, operation ") && why.contains(" n1: "), "{why}");
}

#[test]
fn who_does_not_come_is_named_and_an_order_out_of_bounds_refused() {
    let order = CollectiveOrder { meet_ms: 300, ..order(Collective::AllToAll, 3) };
    let seen = all(&order, &[0], &flags(3), |_| {});
    let Outcome::Failed(why) = &seen[1].as_ref().unwrap().outcome else { panic!("{seen:?}") };
    assert_eq!(why, "alltoall: the ranks did not meet within 300 ms: no connection from n0");
    let huge = CollectiveOrder { sizes: vec![COLLECTIVE_BYTES + 1], ..order };
    let seen = all(&huge, &[0, 1], &flags(3), |_| {});
    let Outcome::Failed(why) = &seen[2].as_ref().unwrap().outcome else { panic!("{seen:?}") };
    assert!(why.contains("beyond the limits"), "{why}");
}
