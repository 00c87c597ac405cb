//! What is said of a node must be what its values are.

use muster_analysis::decide::{
    Cell, ComponentDecision, Decision, Fleet, Limiting, Metric, NodeDecision, Settings, View, Why, decide,
};
use muster_analysis::findings::{Decided, Finding, Source, metric_findings};
use muster_analysis::{Chance, Sample, State};
use muster_wire::{Component, Direction, MetricId, Unit};

use crate::families::{Speeds, fleet};
use crate::run::Run;

/// The findings of one node; nodes are called `n0`, `n1`, ..., and every frozen criterion `c1`.
fn found(run: &Run, node: usize) -> Vec<Finding> {
    let names: Vec<String> = (0..run.nodes()).map(|at| format!("n{at}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let of = Fleet { nodes: run.nodes(), metrics: run.metrics(), run_nodes: run.nodes() };
    let units = vec![Unit::Count; run.rows.len()];
    let criteria: Vec<Option<&str>> = run.rows.iter().map(|row| row.frozen.as_ref().map(|_| "c1")).collect();
    let decision = decide(&of, &Settings::default());
    let decided = Decided {
        nodes: &names,
        group: "",
        fleet: &of,
        units: &units,
        criteria: &criteria,
        decision: &decision,
        visits: 1,
    };
    metric_findings(&decided, node)
}

fn said(run: &Run, node: usize) -> Vec<(State, String)> {
    found(run, node).into_iter().map(|finding| (finding.state, finding.sentence)).collect()
}

/// The only thing said of a node.
fn only(run: &Run, node: usize) -> (State, String) {
    let mut all = said(run, node);
    assert_eq!(all.len(), 1, "{all:?}");
    all.remove(0)
}

/// Values of one metric by node and step, a little apart.
fn values(nodes: usize, steps: usize, value: impl Fn(usize, usize) -> f64) -> Run {
    let apart = |node: usize, step: usize| 0.001f64.mul_add(((node * 7 + step * 3) % 5) as f64 - 2.0, 1.0);
    let of = |node: usize| (0..steps).map(|step| value(node, step) * apart(node, step) / 400.0).collect();
    let speeds: Speeds = vec![(0..nodes).map(of).collect()];
    Run::of(&speeds)
}

/// Eight nodes against a criterion of 100.
fn against_100(steps: usize, value: impl Fn(usize) -> f64) -> Run {
    values(8, steps, |node, _| value(node)).frozen(&[values(8, steps, |_, _| 100.0)])
}

#[test]
fn a_whole_slow_run_is_compared_with_the_criterion_and_not_with_itself() {
    let all = against_100(8, |_| 70.0);
    let one = against_100(8, |node| if node == 0 { 40.0 } else { 70.0 });
    for (run, nodes) in [(&all, 0..8), (&one, 1..8)] {
        for node in nodes {
            let (state, said) = only(run, node);
            assert_eq!(state, State::Warn, "{said}");
            assert!(said.contains("30 % below the frozen criterion c1 (median 100"), "{said}");
            assert!(said.ends_with(": so is nearly the whole run"), "{said}");
        }
    }
    let slowest = said(&one, 0);
    assert!(slowest[0].0 == State::Fail && slowest[0].1.contains("43 % below 7 peers (median 70"), "{slowest:?}");
    assert!(slowest[1].1.contains("the whole run's bench/m0000 is 30 % below the frozen criterion"), "{slowest:?}");
    for (_, said) in said(&against_100(2, |_| 70.0), 5) {
        assert!(said.contains("30 % below the frozen criterion") && !said.contains("peer"), "{said}");
    }
}

#[test]
fn a_node_that_reaches_the_criterion_is_not_blamed_for_the_others() {
    let half = against_100(8, |node| if node < 4 { 100.0 } else { 70.0 });
    assert!(said(&half, 0).is_empty(), "{:?}", said(&half, 0));
    assert_eq!(only(&half, 7).0, State::Fail);
    let one = against_100(8, |node| if node == 0 { 100.0 } else { 70.0 });
    assert!(said(&one, 0).is_empty(), "{:?}", said(&one, 0));
    assert_eq!(only(&one, 7).0, State::Warn);
    let two = values(2, 8, |node, _| [100.0, 70.0][node]).frozen(&[values(8, 8, |_, _| 100.0)]);
    assert!(said(&two, 0).is_empty(), "{:?}", said(&two, 0));
    let (state, said) = only(&two, 1);
    assert!(state == State::Fail && said.contains("30 % below the frozen criterion c1"), "{said}");
}

#[test]
fn steps_that_did_no_work_are_told() {
    let run = values(16, 32, |node, step| if node == 3 && step % 5 < 2 { 0.0 } else { 100.0 });
    let (state, said) = only(&run, 3);
    assert_eq!(state, State::Fail);
    assert!(said.contains("100 % below 15 peers") && said.ends_with("(14 of 32 are zero)"), "{said}");
    let run = values(16, 8, |node, _| if node == 3 { 0.0 } else { 100.0 });
    assert!(only(&run, 3).1.contains("100 % below 15 peers (median 100"));
}

#[test]
fn errors_of_one_node_among_none_are_above_and_no_factor() {
    let run = values(16, 8, |_, _| 1.0).with(|_, row| {
        row.direction = Direction::LowerIsBetter;
        for (node, sample) in row.samples.iter_mut().enumerate() {
            *sample = Sample::new(&[if node == 3 { 5.0 } else { 0.0 }; 8]).ok();
        }
    });
    let (state, said) = only(&run, 3);
    assert!(state == State::Fail && said.contains(", above 15 peers (median 0"), "{said}");
    assert!(!said.contains("e-100") && !said.contains("e100"), "{said}");
}

#[test]
fn slow_steps_are_told_with_both_medians() {
    let mut speeds = fleet("gauss0.5", &mut Chance::new(0), 16, 3, 3000);
    (0..3000).step_by(110).for_each(|step| speeds[1][4][step] *= 0.1);
    let (state, said) = only(&Run::of(&speeds), 4);
    assert_eq!(state, State::Warn);
    assert!(said.contains(" peers (median ") && said.ends_with("far slower than any of theirs"), "{said}");
}

#[test]
fn half_speed_in_nearly_half_of_few_steps_of_many_metrics_warns() {
    let run = |touched: usize| {
        let mut speeds = fleet("gauss0.5", &mut Chance::new(3), 16, 8, 7);
        for metric in &mut speeds[..touched] {
            metric[3].iter_mut().skip(1).step_by(2).for_each(|speed| *speed *= 0.5);
        }
        Run::of(&speeds)
    };
    let states = run(8).states();
    assert!(states.iter().enumerate().all(|(node, state)| (*state == State::Warn) == (node == 3)), "{states:?}");
    // Where others have such steps too, or it is in one metric of eight, it may be stalls.
    assert_eq!(run(1).states()[3], State::Pass);
    let mut all = run(8);
    for row in &mut all.rows {
        row.samples[9] = row.samples[3].clone();
    }
    assert_eq!(all.states()[3], State::Pass);
}

#[test]
fn one_unit_of_the_last_digit_printed_is_no_loss() {
    let printed = |own: f64| {
        let mut run = Run::of(&fleet("gauss0.5", &mut Chance::new(5), 16, 2, 8));
        for (node, sample) in run.rows[0].samples.iter_mut().enumerate() {
            *sample = Sample::new(&[if node == 3 { own } else { 0.05 }; 8]).ok();
        }
        run
    };
    assert!(printed(0.04).states().iter().all(|state| *state == State::Pass), "{:?}", printed(0.04).states());
    let remark = only(&printed(0.04), 3);
    assert_eq!(remark.0, State::Pass);
    assert!(remark.1.contains("bench/m0000 too noisy to judge; the other metrics of cpu pass"), "{}", remark.1);
    assert_eq!(printed(0.03).states()[3], State::Fail);
    // 0.041 shows that three digits are printed.
    assert_eq!(printed(0.041).states()[3], State::Fail);
}

/// One latency of the CPU as its node has it, and what was decided of it.
type Latency = (&'static str, f64, Cell);

const PASSED: Cell = Cell {
    state: State::Pass,
    why: Why::AsPeers,
    view: View::MedianStep,
    peers: 3,
    alike: 0,
    loss: 0.0,
    centre: 258.0,
    scale: 0.045,
    limit: 0.8,
    warn_limit: 0.8,
    resolution: 0.85,
    frozen: false,
};

/// What is said of the first of four nodes whose CPU has these latencies. All metrics together resolve a loss of 60 %.
fn of_latencies(latencies: &[Latency], state: State, limiting: Option<Limiting>) -> Vec<Finding> {
    let sample = |value: f64| Sample::new(&[value; 8]).expect("values are positive");
    let ids: Vec<MetricId> = latencies.iter().map(|(name, ..)| MetricId::new("cpu-latency", *name, "own")).collect();
    let own: Vec<Sample> = latencies.iter().map(|(_, value, _)| sample(*value)).collect();
    let usual = sample(258.0);
    let metrics = ids.iter().zip(&own).map(|(id, own)| Metric {
        id,
        direction: Direction::LowerIsBetter,
        component: Component::Cpu,
        aggregated: false,
        samples: vec![Some(own), Some(&usual), Some(&usual), Some(&usual)],
        frozen: None,
    });
    let fleet = Fleet { nodes: 4, metrics: metrics.collect(), run_nodes: 4 };
    let (component, undecided) = (Component::Cpu, limiting.is_some());
    let cpu = ComponentDecision { component, state, undecided, resolution: Some(0.6), limiting, average: None };
    let decision = Decision {
        cells: latencies.iter().map(|(.., cell)| vec![*cell; 4]).collect(),
        nodes: vec![NodeDecision { state, undecided, components: vec![cpu], kinds: Vec::new() }],
        metrics_of: vec![(0..latencies.len()).collect()],
        slower_runs: Vec::new(),
    };
    let criteria: Vec<Option<&str>> = vec![None; latencies.len()];
    let decided = Decided {
        nodes: &["n0", "n1", "n2", "n3"],
        group: "",
        fleet: &fleet,
        units: &vec![Unit::Nanos; latencies.len()],
        criteria: &criteria,
        decision: &decision,
        visits: 1,
    };
    metric_findings(&decided, 0)
}

#[test]
fn an_undecided_node_that_is_far_behind_is_told_with_spread_and_factor_of_one_metric_and_both_values() {
    let far = Cell { loss: 1.0 - 258.0 / 690.0, scale: 0.09, resolution: 0.95, ..PASSED };
    let latencies = [("l1", 260.0, Cell { loss: 0.01, ..PASSED }), ("dram", 690.0, far)];
    let limiting = Limiting { metric: 0, scale: PASSED.scale, resolution: PASSED.resolution, nodes: 4 };
    let found = of_latencies(&latencies, State::Unknown, Some(limiting));
    let [only] = &found[..] else { panic!("{found:?}") };
    assert_eq!((only.state, only.again), (State::Unknown, true));
    assert_eq!(
        only.sentence,
        "n0: cpu not decided: with 4 nodes and a spread of up to 5 % between peers (cpu-latency/l1), a node less than \
         10x slower might not be detected; cpu-latency/dram 690 ns here, 258 ns at its peers"
    );
}

#[test]
fn of_warnings_by_one_rule_the_largest_loss_goes_first_and_of_failures_the_furthest_beyond_its_limit() {
    let cell = |(state, why): (State, Why), loss: f64, limit: f64| Cell { state, why, loss, limit, ..PASSED };
    let names = |rules: [(State, Why); 4]| {
        let [quiet, tail, loud, last] = rules;
        let latencies = [
            ("quiet", 287.0, cell(quiet, 0.1, 0.1)),
            ("tail", 645.0, cell(tail, 0.6, 0.8)),
            ("loud", 369.0, cell(loud, 0.3, 0.5)),
            ("last", 369.0, cell(last, 0.3, 0.6)),
        ];
        let found = of_latencies(&latencies, quiet.0, None);
        let [only] = &found[..] else { panic!("{found:?}") };
        let Source::Metrics(ids) = &only.source else { panic!("{only:?}") };
        assert!(only.sentence.starts_with(&format!("n0: {} ", ids[0].path())), "{}", only.sentence);
        ids.iter().map(|id| id.name.clone()).collect::<Vec<_>>()
    };
    let (warns, tail) = ((State::Warn, Why::BeyondWarning), (State::Warn, Why::TailOfFleet));
    assert_eq!(names([warns, tail, warns, warns]), ["loud", "quiet", "tail", "last"]);
    assert_eq!(names([(State::Fail, Why::Beyond); 4]), ["quiet", "tail", "loud", "last"]);
}
