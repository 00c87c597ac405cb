use super::*;
use muster_run::RunState;
use muster_wire::{Component, Profile, describe_in};

/// The run that a fleet is imported as.
fn imported(fleet: &Fleet) -> Run {
    Run {
        id: "r".into(),
        playbook: "import/superbench".into(),
        profile: Profile::Standard,
        started_ms: 7,
        ended_ms: None,
        nodes: fleet.nodes.clone(),
        plan: fleet.works(),
        state: RunState::Running,
    }
}

#[test]
fn what_an_importer_says_of_a_metric_is_kept_with_its_values() {
    let table = "{\"node\":\"a\",\"ib-loopback/ib_write_bw_8388608:6\":23.5,\"mem-bw/h2d_bw:0\":26.0}\n";
    let fleet = summary(table);
    let mut by_work: HashMap<&str, Vec<&Metric>> = HashMap::new();
    fleet.metrics.iter().for_each(|m| by_work.entry(&m.id.benchmark).or_default().push(m));
    let run = imported(&fleet);
    let records = fleet.records(&run, 0, &by_work);
    let found: Vec<_> = records
        .iter()
        .map(|record| describe_in(&record.facts, &record.series[0].metric))
        .map(|described| (described.component, described.aggregated))
        .collect();
    assert_eq!(found, [(Component::IbPort("6".into()), true), (Component::Gpu(0), true)]);
}

fn summary(text: &str) -> Fleet {
    let summary = muster_import::superbench::summary::read(text.as_bytes(), muster_import::Limits::default()).unwrap();
    let mut fleet = Fleet::default();
    fleet.add_table(&summary, &Better::default()).unwrap();
    fleet
}

#[test]
fn bandwidths_of_messages_too_small_for_two_decimals_accuse_nobody() {
    let fleet = summary(
        "{\"node\":\"a\",\"nccl-bw/allreduce_8_busbw:0\":0.0,\"nccl-bw/allreduce_1024_busbw:0\":1.2}\n\
         {\"node\":\"b\",\"nccl-bw/allreduce_8_busbw:0\":0.01,\"nccl-bw/allreduce_1024_busbw:0\":0.0}\n",
    );
    let names: Vec<&str> = fleet.metrics.iter().map(|metric| metric.id.name.as_str()).collect();
    assert_eq!(names, ["allreduce_1024_busbw:0"], "a zero beside a real bandwidth is one");
    assert!(fleet.notes.iter().any(|note| note.ends_with("nccl-bw/allreduce_8_busbw:0")), "{:?}", fleet.notes);
}

#[test]
fn nan_of_a_summary_is_a_result_and_null_is_not_measured() {
    let fleet = summary(
        "{\"node\":\"a\",\"mem-bw/h2d_bw:0\":26.0,\"mem-bw/d2h_bw:0\":null,\"kernel-launch/event_time:0\":NaN}\n\
         {\"node\":\"b\",\"mem-bw/h2d_bw:0\":null,\"mem-bw/d2h_bw:0\":null,\"kernel-launch/event_time:0\":0.006}\n\
         {\"node\":\"c\",\"mem-bw/h2d_bw:0\":25.9,\"mem-bw/return_code\":NaN,\"kernel-launch/event_time:0\":\"nan\"}\n",
    );
    let values = |name: &str, node: usize| {
        let metric = fleet.metrics.iter().find(|metric| metric.id.name == name).unwrap();
        metric.values(node).to_vec()
    };
    assert!(values("event_time:0", 0)[0].is_nan() && values("event_time:0", 2)[0].is_nan());
    assert!((values("event_time:0", 1)[0] - 6000.0).abs() < 1e-6 && values("h2d_bw:0", 1).is_empty());
    // What no node has cannot be missing on one.
    assert_eq!(fleet.left_open(), [("b", "mem-bw", "h2d_bw:0 is null: it was not measured")]);
    assert_eq!(fleet.failures(), [("c", "mem-bw", "return code NaN")]);
    let broken: Vec<(&str, &str)> = fleet.broken().into_iter().map(|(node, work, _)| (node, work)).collect();
    assert_eq!(broken, [("a", "kernel-launch"), ("c", "kernel-launch")]);
    assert_eq!(fleet.broken()[0].2, "event_time:0 is NaN or infinite in 1 of 1");
}

#[test]
fn what_was_left_open_is_kept_as_not_run_beside_what_was_measured() {
    let mut fleet = summary("{\"node\":\"a\",\"mem-bw/h2d_bw:0\":26.0}\n{\"node\":\"b\",\"mem-bw/h2d_bw:0\":26.0}\n");
    fleet.leave_open("a", "mem-bw", "the test did not end".into());
    fleet.leave_open("c", "gemm", "its value could not be read".into());
    let run = imported(&fleet);
    let mut by_work: HashMap<&str, Vec<&Metric>> = HashMap::new();
    fleet.metrics.iter().for_each(|m| by_work.entry(&m.id.benchmark).or_default().push(m));
    let ended = |node: usize| {
        let records = fleet.records(&run, node, &by_work);
        records.into_iter().map(|record| (record.work, record.outcome, record.series.len())).collect::<Vec<_>>()
    };
    assert_eq!(ended(0), [("mem-bw".to_owned(), Outcome::NotRun("the test did not end".into()), 1)]);
    assert_eq!(ended(1), [("mem-bw".to_owned(), Outcome::Done, 1)]);
    assert_eq!(ended(2), [("gemm".to_owned(), Outcome::NotRun("its value could not be read".into()), 0)]);
    let missing = |(node, observed): (String, Observation)| (node, matches!(observed, Observation::Missing(_)));
    let observed: Vec<(String, bool)> = fleet.observations(&fleet.metrics[0]).into_iter().map(missing).collect();
    assert_eq!(observed, [("a".to_owned(), false), ("b".to_owned(), false), ("c".to_owned(), true)]);
}
