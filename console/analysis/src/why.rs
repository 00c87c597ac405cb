//! What a verdict says of its criterion and of how far a node is off, in words.

use muster_wire::Direction;

use crate::{Cluster, Criterion, Sample};

/// `two clusters, 10 nodes (median 100) and 6 nodes (median 80): another model, firmware or rack?`
pub(crate) fn two_clusters(criterion: &Criterion) -> String {
    let each = |c: &Cluster| format!("{} nodes (median {})", c.nodes, short(c.median));
    let listed: Vec<String> = criterion.clusters.iter().map(each).collect();
    format!("two clusters, {}: another model, firmware or rack?", listed.join(" and "))
}

/// Says so where the node belongs to a smaller cluster.
pub(crate) fn alike(criterion: &Criterion, sample: &Sample) -> String {
    let [large, small] = criterion.clusters.as_slice() else { return String::new() };
    let away = |c: &Cluster| (sample.median() / c.median).ln().abs();
    if away(small) < away(large) {
        format!(
            "; {} nodes are alike in this (median {}): another model, firmware or rack?",
            small.nodes,
            short(small.median)
        )
    } else {
        String::new()
    }
}

/// How far healthy nodes scatter, where alpha does not leave room for it.
pub(crate) fn scatter(criterion: &Criterion) -> String {
    let (limit, allowed) = (criterion.scatter.unwrap_or(0.0), 1.0 - criterion.alpha);
    if limit < allowed {
        return String::new();
    }
    format!(", healthy nodes scatter by up to {:.1} % and alpha allows {:.1} %", limit * 100.0, allowed * 100.0)
}

/// A value in four digits.
fn short(value: f64) -> String {
    if (0.01..1e5).contains(&value.abs()) {
        let decimals = (3 - value.abs().log10().floor() as i32).clamp(0, 5) as usize;
        format!("{value:.decimals$}")
    } else {
        format!("{value:.3e}")
    }
}

/// `48 % slower`: the loss of rate where higher is better, the extra time where lower is; a node whose median is
/// fine and whose tail is not is said to be slower in its worst steps.
pub(crate) fn how_much(own: f64, usual: f64, dir: Direction) -> String {
    let percent = match dir {
        Direction::HigherIsBetter => (usual - own) / usual * 100.0,
        Direction::LowerIsBetter => (own - usual) / usual * 100.0,
    };
    if percent >= 1.0 && percent.is_finite() {
        format!("{percent:.0} % slower")
    } else {
        "slower in its worst steps".to_owned()
    }
}
