//! What is said of a stored run, node by node: verdicts of thousands of nodes on thousands of metrics take gigabytes.

use anyhow::Result;
use muster_playbook::report::NodeFindings;
use muster_run::Run;
use muster_store::Store;

use super::kept::{Kept, Pieces, keep_assessment};
use super::{Assessment, Judging, assess};

/// An assessment whose nodes are given one after another, as often as they are asked for.
pub struct ByNode {
    /// All that is said of no single node; it has no nodes.
    pub rest: Assessment,
    nodes: Nodes,
}

enum Nodes {
    Kept(Pieces),
    Judged(Vec<NodeFindings>),
}

impl ByNode {
    /// What is said of those nodes of `run` that are `picked`: as it was kept, or else from its records, and then kept.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub fn of(store: &dyn Store, run: &Run, judging: &Judging, picked: impl Fn(&str) -> bool) -> Result<Self> {
        if let Some((rest, pieces)) = Kept::of(store, run, judging).and_then(|kept| kept.apart(&picked)) {
            return Ok(Self { rest, nodes: Nodes::Kept(pieces) });
        }
        let mut said = assess(run, &store.records(&run.id)?, judging);
        keep_assessment(store, run, judging, &said);
        let mut nodes = std::mem::take(&mut said.nodes);
        nodes.retain(|node| picked(&node.node));
        Ok(Self { rest: said, nodes: Nodes::Judged(nodes) })
    }

    /// Gives what is said of every node to `each`, in the run's order, until it fails.
    ///
    /// # Errors
    /// Those of `each`, and when what was kept does not decode.
    pub fn each(&self, each: &mut dyn FnMut(&NodeFindings) -> Result<()>) -> Result<()> {
        match &self.nodes {
            Nodes::Kept(pieces) => pieces.each(each),
            Nodes::Judged(nodes) => nodes.iter().try_for_each(each),
        }
    }
}
