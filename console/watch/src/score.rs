//! How far every node is from its peers now.

use std::collections::BTreeMap;

use muster_wire::ComponentKind;

use super::detector::Watch;

/// A part of a node, as its metrics show it in the last block.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Score<'a> {
    /// The node.
    pub node: &'a str,
    /// What its metrics speak of.
    pub component: ComponentKind,
    /// Largest deviation of any of them, in standard deviations.
    pub z: f64,
}

impl Watch {
    /// A score for each part of each node that could be judged by the last block, by node and part.
    #[must_use]
    pub fn scores(&self) -> Vec<Score<'_>> {
        let mut worst: BTreeMap<(usize, ComponentKind), f64> = BTreeMap::new();
        for column in &self.columns {
            for (node, cell) in column.cells.iter().enumerate().filter(|(_, cell)| cell.now.ready) {
                let z = worst.entry((node, column.about.of)).or_insert(0.0);
                *z = z.max(cell.now.z.abs());
            }
        }
        let score = |((node, component), z): ((usize, ComponentKind), f64)| Score {
            node: &self.nodes[node].name,
            component,
            z,
        };
        worst.into_iter().filter(|(_, z)| z.is_finite()).map(score).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Settings, Watch};

    #[test]
    fn the_node_that_differs_has_the_largest_score_and_none_has_one_before_anything_is_usual() {
        let mut watch = Watch::new(Settings::default());
        let nodes: Vec<_> = (0..5).filter_map(|n| watch.node(&format!("n{n}"))).collect();
        let metric = watch.metric("gpu_power_w").unwrap();
        for second in 0..420 {
            for (at, &node) in nodes.iter().enumerate() {
                let level = if at == 2 && second > 360 { 300.0 } else { 500.0 };
                watch.push(f64::from(second), node, metric, level + f64::from((second * 7 + at as i32) % 5));
            }
            if second == 60 {
                assert_eq!(watch.scores(), []);
            }
        }
        let scores = watch.scores();
        assert_eq!(scores.len(), 5);
        let largest = scores.iter().max_by(|a, b| a.z.total_cmp(&b.z)).unwrap();
        assert!(largest.node == "n2" && largest.z > 3.0, "{scores:?}");
    }

    #[test]
    fn two_metrics_of_one_part_are_one_score_and_what_cannot_be_compared_has_none() {
        let mut watch = Watch::new(Settings::default());
        for name in ["n0", "n1"] {
            watch.node(name).unwrap();
        }
        for (metric, z) in [("gpu_power_w", [2.0, -1.0]), ("gpu_util_pct", [-5.0, 0.5]), ("cpu_util_pct", [1.0, 9.0])] {
            watch.metric(metric).unwrap();
            let column = watch.columns.last_mut().unwrap();
            for (cell, z) in column.cells.iter_mut().zip(z) {
                (cell.now.z, cell.now.ready) = (z, true);
            }
        }
        watch.columns[2].cells[1].now.ready = false;
        let scores: Vec<_> =
            watch.scores().iter().map(|score| (score.node.to_owned(), score.component, score.z)).collect();
        use muster_wire::ComponentKind::{Cpu, Gpus};
        let of = |node: &str, part, z| (node.to_owned(), part, z);
        assert_eq!(scores, [of("n0", Cpu, 1.0), of("n0", Gpus, 5.0), of("n1", Gpus, 1.0)]);
    }
}
