//! What of a plan is still to be done, node by node, once some of it has been acknowledged.

use std::collections::BTreeSet;
use std::time::Duration;

use muster_wire::{Profile, Request};

use crate::Plan;
use crate::plan::limit;

/// Name under which the store keeps a collector's result. Benchmarks keep their own name; the prefix keeps the
/// `disk` collector and the `disk` benchmark apart.
#[must_use]
pub fn collector_work(name: &str) -> String {
    format!("collect/{name}")
}

/// What one node has to do in one phase; never empty.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Todo {
    /// Node name.
    pub node: String,
    /// Index into [`Plan::phases`].
    pub phase: usize,
    /// Id of the step.
    pub step: String,
    /// Collector names, in order, before the benchmarks.
    pub collectors: Vec<String>,
    /// Benchmark names, in order.
    pub benchmarks: Vec<String>,
    /// How much work each benchmark does.
    pub profile: Profile,
    /// Longest it may take.
    pub limit: Duration,
}

impl Todo {
    /// The request that asks the probe for it.
    #[must_use]
    pub fn request(&self, scratch: Option<String>) -> Request {
        Request::Run {
            collectors: self.collectors.clone(),
            benchmarks: self.benchmarks.clone(),
            profile: self.profile,
            scratch,
        }
    }

    /// Names under which the store keeps the results, in the order of the work.
    #[must_use]
    pub fn work_names(&self) -> Vec<String> {
        self.collectors.iter().map(|name| collector_work(name)).chain(self.benchmarks.iter().cloned()).collect()
    }
}

/// The plan without what `done` names as (node, work name): phase by phase, within a phase in the order of the
/// nodes. With nothing done it is the whole plan; entries of `done` that the plan does not have are ignored.
#[must_use]
pub fn resume(plan: &Plan, done: &BTreeSet<(String, String)>) -> Vec<Todo> {
    let mut todos = Vec::new();
    for (index, phase) in plan.phases.iter().enumerate() {
        for node in &phase.nodes {
            let open = |work: String| !done.contains(&(node.clone(), work));
            let collectors: Vec<String> =
                phase.collectors.iter().filter(|name| open(collector_work(name))).cloned().collect();
            let benchmarks: Vec<String> =
                phase.benchmarks.iter().filter(|name| open((*name).clone())).cloned().collect();
            if collectors.is_empty() && benchmarks.is_empty() {
                continue;
            }
            todos.push(Todo {
                node: node.clone(),
                phase: index,
                step: phase.step.clone(),
                // A limit that the step set itself is for the whole step, so it stands for what is left too.
                limit: if phase.own_limit { phase.limit } else { limit(&collectors, &benchmarks, phase.profile) },
                collectors,
                benchmarks,
                profile: phase.profile,
            });
        }
    }
    todos
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn sample() -> Plan {
        let nodes: Vec<String> = (0..4).map(|n| format!("n{n}")).collect();
        crate::plan(&crate::find_builtin("burn-in").unwrap(), &nodes)
    }

    fn pairs(plan: &Plan) -> Vec<(String, String)> {
        plan.phases
            .iter()
            .flat_map(|phase| {
                let works = phase.work_names();
                phase.nodes.iter().flat_map(move |node| works.clone().into_iter().map(|work| (node.clone(), work)))
            })
            .collect()
    }

    fn left(todos: &[Todo]) -> Vec<(String, String)> {
        todos.iter().flat_map(|todo| todo.work_names().into_iter().map(|work| (todo.node.clone(), work))).collect()
    }

    #[test]
    fn with_nothing_done_everything_remains_in_the_order_of_the_plan() {
        assert_eq!(left(&resume(&sample(), &BTreeSet::new())), pairs(&sample()));
    }

    #[test]
    fn a_done_disk_collector_leaves_the_disk_benchmark_to_do() {
        let done = BTreeSet::from([("n0".to_owned(), collector_work("disk"))]);
        let rest = left(&resume(&sample(), &done));
        assert!(rest.contains(&("n0".to_owned(), "disk".to_owned())));
        assert!(!rest.contains(&("n0".to_owned(), "collect/disk".to_owned())));
    }

    #[test]
    fn the_request_carries_the_work_in_order() {
        let todo = resume(&sample(), &BTreeSet::new()).remove(0);
        let Request::Run { collectors, profile, scratch, .. } = todo.request(Some("/tmp".to_owned())) else {
            panic!("not a run request")
        };
        assert_eq!((collectors, profile, scratch.as_deref()), (todo.collectors, todo.profile, Some("/tmp")));
    }

    proptest! {
        #[test]
        fn what_is_done_and_what_remains_make_up_the_plan_and_never_overlap(mask in proptest::collection::vec(any::<bool>(), 64)) {
            let plan = sample();
            let all = pairs(&plan);
            let done: BTreeSet<_> =
                all.iter().zip(mask.iter().cycle()).filter(|(_, done)| **done).map(|(pair, _)| pair.clone()).collect();
            let todos = resume(&plan, &done);
            let rest = left(&todos);
            prop_assert_eq!(rest.len() + done.len(), all.len());
            prop_assert!(rest.iter().all(|pair| !done.contains(pair)));
            prop_assert!(todos.iter().all(|todo| todo.limit <= plan.phases[todo.phase].limit && !todo.limit.is_zero()));
            prop_assert!(todos.windows(2).all(|pair| pair[0].phase <= pair[1].phase));
            let everything: BTreeSet<_> = rest.into_iter().chain(done).collect();
            prop_assert!(resume(&plan, &everything).is_empty());
        }
    }
}
