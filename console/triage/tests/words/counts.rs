//! Jobs of six ranks on three nodes, by what RAS counts and what the flight recorder holds.

use std::collections::BTreeMap;

use muster_triage::case::{Case, Comm, CommRank, Config, Dump, Entry, Job, Member, Poll, Process, State, Status};

fn process(rank: u32) -> Process {
    let host = format!("n{}", rank / 2);
    Process { host, pid: Some(100 + rank), rank: Some(rank), gpu: Some(rank % 2), dead: false }
}

fn members() -> Job {
    let member =
        |rank: u32| Member { rank, node: Some(format!("n{}", rank / 2)), pid: Some(100 + rank), gpu: Some(rank % 2) };
    Job { world_size: Some(6), members: (0..6).map(member).collect(), ..Job::default() }
}

/// Answers of RAS in which each rank has launched so many; `None` gives no data.
fn polls(answers: &[[Option<u64>; 6]], dead: Option<u32>) -> Case {
    let poll = |(number, counts): (u32, &[Option<u64>; 6])| {
        let known = |(rank, count): (u32, &Option<u64>)| {
            let counts: BTreeMap<String, u64> = [("AllReduce".to_owned(), (*count)?)].into();
            Some(CommRank { process: process(rank), counts, failed: false })
        };
        let missing = (0..).zip(counts).filter(|(_, count)| count.is_none());
        let comm = Comm {
            hash: "c0".into(),
            size: Some(6),
            ranks: (0..).zip(counts).filter_map(known).collect(),
            missing: missing.map(|(rank, _)| Process { dead: dead == Some(rank), ..process(rank) }).collect(),
            ..Comm::default()
        };
        let name = format!("ras.{number}");
        Poll { name, number, comms: vec![comm], version: Some("2.24.3".to_owned()), ..Poll::default() }
    };
    Case { job: members(), polls: (0..).zip(answers).map(poll).collect(), ..Case::default() }
}

/// All ranks stand still, this one an operation behind the others.
pub(super) fn one_behind(rank: usize) -> Case {
    let mut counts = [Some(41); 6];
    counts[rank] = Some(40);
    polls(&[counts; 2], None)
}

#[test]
fn what_counts_of_launched_operations_come_to_is_said_word_for_word() {
    let mut text = String::new();
    let all = |count: u64| [Some(count); 6];
    let with = |count: u64, others: &[(usize, Option<u64>)]| {
        let mut counts = all(count);
        others.iter().for_each(|(rank, count)| counts[*rank] = *count);
        counts
    };
    let cases: [(&str, Vec<[Option<u64>; 6]>); 12] = [
        ("one look, all level", vec![all(41)]),
        ("all stand level", vec![all(41); 2]),
        ("all move on", vec![all(41), all(60)]),
        ("rank 3 stays behind", vec![with(41, &[(3, Some(40))]); 2]),
        ("rank 3 is behind, and moves", vec![with(41, &[(3, Some(40))]), with(60, &[(3, Some(59))])]),
        ("rank 3 stays behind, all others move", vec![with(41, &[(3, Some(40))]), with(60, &[(3, Some(40))])]),
        ("ranks 2 and 3 stay behind", vec![with(41, &[(2, Some(40)), (3, Some(40))]); 2]),
        ("half of the ranks stay behind", vec![with(41, &[(0, Some(40)), (1, Some(40)), (2, Some(40))]); 2]),
        ("rank 4 is ahead", vec![with(41, &[(4, Some(42))]); 2]),
        ("rank 3 gives no data", vec![with(41, &[(3, None)]); 2]),
        ("ranks 2 and 3 give no data", vec![with(41, &[(2, None), (3, None)]); 2]),
        ("rank 3 gives no data, and rank 4 stays behind", vec![with(41, &[(3, None), (4, Some(40))]); 2]),
    ];
    for (name, answers) in cases {
        super::said(&mut text, name, &polls(&answers, None));
    }
    super::said(&mut text, "rank 3 is dead", &polls(&[with(41, &[(3, None)]); 2], Some(3)));
    super::hold("ras.txt", &text);
}

/// Each rank's dump: how far it is in each of these operations of the group of all.
fn dumps(of: impl Fn(u32) -> Option<Vec<(&'static str, State)>>) -> Case {
    let dump = |rank: u32| {
        let entries: Vec<(&str, State)> = of(rank)?;
        let last =
            |least: State| (1..).zip(&entries).filter(|(_, (_, state))| *state >= least).map(|(seq, _)| seq).last();
        let status = Status {
            enqueued: last(State::Scheduled),
            started: last(State::Started),
            completed: last(State::Completed),
        };
        let entry = |(seq, (op, state)): (u64, &(&str, State))| Entry {
            slot: "0".into(),
            group: "7".into(),
            desc: "default_pg".into(),
            seq,
            op: (*op).into(),
            inputs: "[[8]]".into(),
            outputs: "[[8]]".into(),
            dtypes: "[\"Float\"]".into(),
            state: *state,
            retired: *state == State::Completed,
            created_s: Some(1_760_000_000.0 + seq as f64),
            ..Entry::default()
        };
        let config = Config { desc: "default_pg".into(), ranks: (0..6).collect() };
        Some(Dump {
            rank,
            groups: [("7".to_owned(), config)].into(),
            status: [("0".to_owned(), status)].into(),
            entries: (1..).zip(&entries).map(entry).collect(),
            left_out: 0,
        })
    };
    Case { job: members(), dumps: (0..6).filter_map(dump).collect(), ..Case::default() }
}

#[test]
fn what_recorded_operations_come_to_is_said_word_for_word() {
    use State::{Completed, Scheduled, Started};
    let mut text = String::new();
    const REDUCE: &str = "nccl:all_reduce";
    let done = || vec![(REDUCE, Completed), (REDUCE, Completed)];
    let open = |state| [done(), vec![(REDUCE, state)]].concat();
    let mut tell =
        |name: &str, odd: &[u32], own: Option<Vec<(&'static str, State)>>, others: Vec<(&'static str, State)>| {
            super::said(
                &mut text,
                name,
                &dumps(|rank| if odd.contains(&rank) { own.clone() } else { Some(others.clone()) }),
            );
        };
    tell("all done", &[], None, done());
    tell("all have started", &[], None, open(Started));
    tell("rank 3 has not enqueued", &[3], Some(done()), open(Started));
    tell("rank 3 has enqueued and not started", &[3], Some(open(Scheduled)), open(Started));
    tell("half have enqueued and not started", &[0, 1, 2], Some(open(Scheduled)), open(Started));
    tell("four have enqueued and not started", &[0, 1, 2, 3], Some(open(Scheduled)), open(Started));
    tell("ranks 2 and 3 have not enqueued", &[2, 3], Some(done()), open(Started));
    tell("half have not enqueued", &[0, 1, 2], Some(done()), open(Started));
    tell("rank 3 has no dump", &[3], None, open(Started));
    tell("rank 3 has completed", &[3], Some(open(Completed)), open(Started));
    tell("rank 3 asks for another", &[3], Some([done(), vec![("nccl:broadcast", Started)]].concat()), open(Started));
    tell("half ask for another", &[0, 1, 2], Some([done(), vec![("nccl:broadcast", Started)]].concat()), open(Started));
    tell("rank 3 is two behind", &[3], Some(vec![(REDUCE, Completed)]), open(Started));
    super::hold("recorded.txt", &text);
}
