//! Will a job on these nodes meet an incident? The joint risk, when it asks for validation, and of which nodes.

use crate::risk::Curves;

/// Risk above which a validation pays by the rule of expectations: with a constant hazard the expected time to an
/// incident is below the job's expected length exactly when the risk over that length exceeds `1 - 1/e`.
pub const EXPECTATION_P0: f64 = 1.0 - 1.0 / std::f64::consts::E;

/// Probability that any of the nodes has an incident, from each one's probability: `1 - prod (1 - p)`. Nodes are
/// taken as independent.
#[must_use]
pub fn joint_risk(risks: impl IntoIterator<Item = f64>) -> f64 {
    // In logarithms a product of thousands keeps its digits.
    let log: f64 = risks.into_iter().map(|p| (-p.clamp(0.0, 1.0)).ln_1p()).sum();
    -log.exp_m1()
}

/// Expected hours until the first incident on any of the nodes of `curves`, counted up to the last time of the
/// curves: the integral of the product of all curves, by the trapezoid rule.
#[must_use]
pub fn expected_time_to_incident(curves: &Curves) -> f64 {
    let mut log = vec![0.0_f64; curves.times().len()];
    for i in 0..curves.rows() {
        log.iter_mut().zip(curves.row(i)).for_each(|(sum, s)| *sum += s.ln());
    }
    let (mut before, mut sum) = ((0.0, 1.0), 0.0);
    for (t, log) in curves.times().iter().zip(log) {
        let s = log.exp();
        sum += (t - before.0) * 0.5 * (s + before.1);
        before = (*t, s);
    }
    sum
}

/// The rule of expectations: whether an incident is expected before a job of `expected_hours` ends. Compared at the
/// curves' own horizon: when even a fleet without incidents would count fewer hours, the answer is no.
#[must_use]
pub fn should_validate(curves: &Curves, expected_hours: f64) -> bool {
    let horizon = curves.times().last().copied().unwrap_or(0.0);
    expected_time_to_incident(curves) < expected_hours.min(horizon)
}

/// Nodes to validate, the riskiest first, so that the joint risk falls to `p0` when a validation removes the share
/// `coverage` of a node's risk; all nodes when that is not enough. Empty when the risk is low already.
#[must_use]
pub fn nodes_to_validate(risks: &[f64], coverage: f64, p0: f64) -> Vec<usize> {
    let log = |p: f64| (-p.clamp(0.0, 1.0)).ln_1p();
    let mut order: Vec<usize> = (0..risks.len()).collect();
    order.sort_by(|&a, &b| risks[b].total_cmp(&risks[a]).then(a.cmp(&b)));
    let mut sum: f64 = risks.iter().map(|p| log(*p)).sum();
    let mut chosen = Vec::new();
    for i in order {
        if -sum.exp_m1() <= p0 {
            break;
        }
        // A node certain to fail has an infinite logarithm; the sum is made anew without it.
        if risks[i] >= 1.0 {
            sum = (0..risks.len())
                .map(|k| log(if k == i || chosen.contains(&k) { risks[k] * (1.0 - coverage) } else { risks[k] }))
                .sum();
        } else {
            sum += log(risks[i] * (1.0 - coverage)) - log(risks[i]);
        }
        chosen.push(i);
    }
    chosen
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn risks_join_and_the_rule_of_expectations_is_its_p0() {
        assert!((joint_risk([0.5, 0.5]) - 0.75).abs() < 1e-12);
        assert_eq!(joint_risk([1.0, 0.2]), 1.0);
        assert_eq!(joint_risk([]), 0.0);
        assert!((joint_risk(vec![1e-12; 1000]) - 1e-9).abs() < 1e-15);
        // Constant hazards: E[T] < D exactly when p(D) > 1 - 1/e, up to the grid and the far end.
        let times: Vec<f64> = (1..=24_000).map(|k| 0.1 * f64::from(k)).collect();
        for rate in [0.01, 0.02, 0.05] {
            let one: Vec<f64> = times.iter().map(|t| (-rate * t).exp()).collect();
            let curves = Curves::new(times.clone(), [one.clone(), one].concat());
            assert!((expected_time_to_incident(&curves) - 0.5 / rate).abs() < 0.01 / rate);
            for job in [0.4 / rate, 0.6 / rate] {
                let p = joint_risk([1.0 - (-rate * job).exp(), 1.0 - (-rate * job).exp()]);
                assert_eq!(should_validate(&curves, job), p > EXPECTATION_P0);
            }
        }
    }

    #[test]
    fn the_riskiest_nodes_are_validated_until_the_rest_may_run() {
        let risks = [0.01, 0.3, 0.02, 1.0];
        let chosen = nodes_to_validate(&risks, 0.95, 0.1);
        assert_eq!(chosen, [3, 1]);
        let left = |k: usize| if chosen.contains(&k) { risks[k] * 0.05 } else { risks[k] };
        assert!(joint_risk((0..4).map(left)) <= 0.1);
        assert_eq!(nodes_to_validate(&risks, 0.0, 0.1).len(), 4);
        assert!(nodes_to_validate(&risks[..1], 0.9, 0.1).is_empty());
    }
}
