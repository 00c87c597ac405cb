//! A criterion that was frozen by force though it does not say how far healthy nodes differ, such as a published number: nodes
//! below it warn, and none fails by it alone.

use crate::findings::{Compared, Effect, Finding, Source};
use crate::{Learned, State, is_defect};
use muster_wire::Component;

/// Findings of the nodes that lie beyond alpha of such a criterion and were not found slow otherwise. Their verdicts warn.
pub(super) fn findings(learned: &mut Learned, group: &str, component: &Component) -> Vec<Finding> {
    let criterion = &learned.criterion;
    let Some(usual) = criterion.sample.as_ref().map(crate::Sample::median) else { return Vec::new() };
    let beyond = learned.verdicts.iter_mut().filter(|verdict| {
        verdict.state < State::Warn
            && verdict.similarity.is_some_and(|similarity| is_defect(similarity, criterion.alpha))
    });
    let warn = |verdict: &mut crate::NodeVerdict| {
        let effect = Effect {
            metric: verdict.metric.clone(),
            unit: criterion.unit,
            direction: criterion.direction,
            value: verdict.value?,
            usual,
            scale: f64::NAN,
        };
        let said = format!(
            "{}: {} {} the frozen criterion ({}), which does not say how far healthy nodes differ",
            verdict.node,
            verdict.metric.path(),
            effect.words(),
            criterion.unit.show(usual),
        );
        verdict.state = State::Warn;
        verdict.reason.clone_from(&said);
        let source = Source::Metric(verdict.metric.clone());
        let mut finding = Finding::new(&verdict.node, component.clone(), source, State::Warn, said)
            .next("compare with nodes known to be good, and freeze a criterion learned from them");
        finding.effect = Some(effect);
        finding.compared = Some(Compared { group: group.to_owned(), peers: 0, criterion: Some(criterion.id.clone()) });
        Some(finding)
    };
    beyond.filter_map(warn).collect()
}

#[cfg(test)]
mod tests {
    use crate::{Criterion, Observation, Params, compare};
    use muster_wire::{Direction, MetricId, Unit};

    use super::*;

    #[test]
    fn all_nodes_below_a_published_number_warn_and_those_that_reach_it_do_not() {
        let metric = MetricId::new("mem-bw", "h2d_bw", "superbench");
        let criterion = Criterion::reference(metric, Unit::BytesPerSec, Direction::HigherIsBetter, 26e9).unwrap();
        let found = |value: f64| {
            let observed: Vec<(String, Observation)> =
                (0..6).map(|n| (format!("n{n}"), Observation::from_values(&[value]))).collect();
            let mut learned = compare(&criterion, &observed, &Params::default());
            // The others of the run are as slow: nothing else found them.
            learned.verdicts.iter_mut().for_each(|verdict| verdict.state = State::Pass);
            let found = findings(&mut learned, "", &Component::Gpu(0));
            assert!(found.len() == learned.verdicts.iter().filter(|verdict| verdict.state == State::Warn).count());
            found
        };
        assert_eq!(found(25.9e9), []);
        let slow = found(22e9);
        assert_eq!(slow.len(), 6);
        assert!(
            slow[0].sentence.starts_with("n0: mem-bw/h2d_bw 22.0 GB/s, 15 % below the frozen criterion (26.0 GB/s)")
        );
    }
}
