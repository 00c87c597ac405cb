//! Two ends on loopback, and strangers between them.

use std::io::Write;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::mpsc::channel;
use std::thread;

use muster_wire::Secret;

use super::*;

const HERE: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

fn order(role: Role) -> PairOrder {
    let load = Load { streams: 2, duration_ms: 72, sizes: vec![8, 5000], round_trips: 40, engine: Engine::Tcp };
    let secret = Secret([9; 32]);
    PairOrder {
        visit: 7,
        peer: "other".into(),
        local: HERE,
        remote: HERE,
        secret,
        role,
        load,
        meet_ms: 5000,
        limit_ms: 20_000,
    }
}

/// What each end says when the listener's port is given to `visitor`.
fn visit(listen: PairOrder, visitor: impl FnOnce(u16) -> Option<Paired> + Send) -> (Paired, Option<Paired>) {
    let (post, port) = channel();
    thread::scope(|scope| {
        let other = scope.spawn(move || visitor(port.recv().unwrap()));
        let mut last = None;
        run(&listen, &AtomicBool::new(false), &mut |frame| match frame {
            Frame::Listening(listening) => post.send(listening.port).unwrap(),
            Frame::Paired(paired) => last = Some(paired),
            other => panic!("{other:?}"),
        });
        (last.unwrap(), other.join().unwrap())
    })
}

fn connecting(order: &PairOrder, port: u16) -> Paired {
    let order = PairOrder { role: Role::Connect { port, start_ns: 0 }, ..order.clone() };
    let mut last = None;
    run(&order, &AtomicBool::new(false), &mut |frame| last = Some(frame));
    let Some(Frame::Paired(paired)) = last else { panic!("{last:?}") };
    paired
}

fn names(paired: &Paired) -> Vec<String> {
    for series in &paired.series {
        let entry = muster_wire::metric(&series.metric.benchmark, &series.metric.name).unwrap();
        assert_eq!((entry.unit, entry.direction), (series.unit, series.direction), "{}", series.metric);
    }
    paired.series.iter().map(|s| s.metric.to_string()).collect()
}

#[test]
fn both_ends_say_what_they_received_and_the_first_times_the_round_trips() {
    let (listener, connector) = visit(order(Role::Listen), |port| Some(connecting(&order(Role::Listen), port)));
    let connector = connector.unwrap();
    assert_eq!((&listener.outcome, &connector.outcome), (&Outcome::Done, &Outcome::Done));
    assert_eq!(names(&listener), ["net-pair/throughput@tcp-2", "net-pair/retransmits@tcp-2"]);
    assert_eq!(
        names(&connector),
        ["net-pair/rtt-8@tcp", "net-pair/rtt-5000@tcp", "net-pair/retransmits@tcp-2", "net-pair/throughput@tcp-2"]
    );
    assert!(listener.started_ns > 0 && listener.started_ns < listener.ended_ns);
    assert_eq!(connector.series[0].values.len(), 40);
    assert!(connector.series[0].values.iter().all(|ns| *ns > 0.0));
    let flow = &listener.series[0].values;
    assert!(!flow.is_empty() && flow.iter().sum::<f64>() > 0.0, "{flow:?}");
    let told: Vec<&str> = listener.facts.iter().map(|f| f.key.as_str()).collect();
    assert!(told.contains(&"sent.segments") && told.contains(&"interface"), "{told:?}");
}

#[test]
fn a_stranger_who_does_not_know_the_secret_is_turned_away_and_the_peer_still_served() {
    let listen = order(Role::Listen);
    let (listener, connector) = visit(listen.clone(), |port| {
        let mut stranger = TcpStream::connect((HERE, port)).unwrap();
        stranger.write_all(&[0; 42]).unwrap();
        let wrong = PairOrder { secret: Secret([1; 32]), meet_ms: 300, ..listen };
        assert!(matches!(connecting(&wrong, port).outcome, Outcome::Failed(_)));
        Some(connecting(&order(Role::Listen), port))
    });
    assert_eq!((listener.outcome, connector.unwrap().outcome), (Outcome::Done, Outcome::Done));
}

#[test]
fn a_listener_whose_peer_never_comes_gives_up_in_time_and_names_it() {
    let listen = PairOrder { meet_ms: 200, ..order(Role::Listen) };
    let (listener, _) = visit(listen, |_| None);
    assert_eq!(listener.outcome, Outcome::Failed("with other: the two ends did not meet within 200 ms".into()));
    assert_eq!(listener.started_ns, 0);
}

#[test]
fn only_the_peers_address_is_listened_to() {
    let listen = PairOrder { remote: IpAddr::V4(Ipv4Addr::new(127, 0, 0, 9)), meet_ms: 400, ..order(Role::Listen) };
    let (listener, connector) = visit(listen, |port| Some(connecting(&order(Role::Listen), port)));
    assert!(matches!(listener.outcome, Outcome::Failed(_)));
    assert!(matches!(connector.unwrap().outcome, Outcome::Failed(_)));
}

#[test]
fn a_pair_that_is_stopped_says_so() {
    let listen = order(Role::Listen);
    let stop = AtomicBool::new(true);
    let mut last = None;
    run(&listen, &stop, &mut |frame| last = Some(frame));
    let Some(Frame::Paired(paired)) = last else { panic!("{last:?}") };
    assert_eq!(paired.outcome, Outcome::NotRun("stopped".into()));
}

#[test]
fn both_ends_time_the_all_reduce_of_two() {
    let listen = order(Role::Listen);
    let load = Load { engine: Engine::AllReduce { bytes: 100_000 }, ..listen.load.clone() };
    let listen = PairOrder { load, ..listen };
    let (listener, connector) = visit(listen.clone(), |port| Some(connecting(&listen, port)));
    for paired in [listener, connector.unwrap()] {
        assert_eq!(paired.outcome, Outcome::Done);
        let told = paired.series.iter().find(|s| s.metric.to_string() == "net-pair/allreduce@tcp-2").unwrap();
        assert!(told.values.len() >= 5 && told.values.iter().all(|v| *v > 0.0), "{told:?}");
        assert!(names(&paired).contains(&"net-pair/retransmits@tcp-2".to_owned()));
    }
}
