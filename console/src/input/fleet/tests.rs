use super::*;
use muster_run::RunState;
use muster_wire::{Component, Profile, describe_in};

#[test]
fn what_an_importer_says_of_a_metric_is_kept_with_its_values() {
    let table = "{\"node\":\"a\",\"ib-loopback/ib_write_bw_8388608:6\":23.5,\"mem-bw/h2d_bw:0\":26.0}\n";
    let table = muster_import::superbench::summary::read(table.as_bytes(), muster_import::Limits::default()).unwrap();
    let mut fleet = Fleet::default();
    fleet.add_table(&table.table, &Better::default()).unwrap();
    let mut by_work: HashMap<&str, Vec<&Metric>> = HashMap::new();
    fleet.metrics.iter().for_each(|m| by_work.entry(&m.id.benchmark).or_default().push(m));
    let run = Run {
        id: "r".into(),
        playbook: "import/superbench".into(),
        profile: Profile::Standard,
        started_ms: 7,
        ended_ms: None,
        nodes: fleet.nodes.clone(),
        plan: fleet.works(),
        state: RunState::Running,
    };
    let records = fleet.records(&run, 0, &by_work);
    let found: Vec<_> = records
        .iter()
        .map(|record| describe_in(&record.facts, &record.series[0].metric))
        .map(|described| (described.component, described.aggregated))
        .collect();
    assert_eq!(found, [(Component::IbPort("6".into()), true), (Component::Gpu(0), true)]);
}
