//! From the findings of a node to its state: the one place where that is decided.

use std::collections::BTreeMap;

use muster_wire::Component;
use serde::{Deserialize, Serialize};

use super::Finding;
use crate::State;

/// What is known of one component of a node.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ComponentState {
    /// Which part.
    pub component: Component,
    /// The worst that is known of it.
    pub state: State,
    /// Something asked for could not be decided; said beside a warning or a failure, which must not hide it.
    pub undecided: bool,
    /// Share of its speed that it could have lost and still pass, with probability 0.05; `None` where no measurement vouches
    /// for it.
    pub resolution: Option<f64>,
}

/// What is known of a node.
#[derive(Clone, Debug, PartialEq)]
pub struct NodeState {
    /// The worst of its components.
    pub state: State,
    /// Some component is undecided, whatever the state.
    pub undecided: bool,
    /// In the order of components.
    pub components: Vec<ComponentState>,
}

/// Decides a node's state from what `measured` its components, and from its findings.
///
/// A component is as bad as the worst that is said of it: pass, not run, unknown, warn, fail, in this order. What does not
/// apply says nothing. A node of which nothing is known is unknown.
#[must_use]
pub fn decide_node<'a>(
    measured: impl IntoIterator<Item = ComponentState>,
    findings: impl IntoIterator<Item = &'a Finding>,
) -> NodeState {
    let mut components: BTreeMap<Component, ComponentState> =
        measured.into_iter().map(|known| (known.component.clone(), known)).collect();
    for finding in findings {
        let fresh = || ComponentState {
            component: finding.component.clone(),
            state: finding.state,
            undecided: false,
            resolution: None,
        };
        let known = components.entry(finding.component.clone()).or_insert_with(fresh);
        known.state = known.state.max(finding.state);
        known.undecided |= is_open(finding.state);
    }
    let components: Vec<ComponentState> = components.into_values().collect();
    let state = components.iter().map(|known| known.state).max().unwrap_or(State::Unknown);
    let undecided = is_open(state) || components.iter().any(|known| known.undecided || is_open(known.state));
    NodeState { state, undecided, components }
}

/// Whether something that was asked for has no answer.
const fn is_open(state: State) -> bool {
    matches!(state, State::Unknown | State::NotRun)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::findings::Source;

    fn measured(component: Component, state: State) -> ComponentState {
        ComponentState { component, state, undecided: false, resolution: Some(0.05) }
    }

    fn finding(component: Component, state: State) -> Finding {
        Finding::new("n1", component, Source::Link, state, "n1: why".to_owned())
    }

    #[test]
    fn a_node_is_as_bad_as_its_worst_component_and_the_others_keep_their_state() {
        let node = decide_node(
            [measured(Component::Cpu, State::Pass), measured(Component::Gpu(3), State::Pass)],
            &[finding(Component::Gpu(3), State::Fail), finding(Component::Disk(None), State::Pass)],
        );
        assert_eq!((node.state, node.undecided), (State::Fail, false));
        let states: Vec<(String, State)> = node.components.iter().map(|c| (c.component.to_string(), c.state)).collect();
        let expected = [("cpu", State::Pass), ("disk", State::Pass), ("gpu:3", State::Fail)];
        assert_eq!(states, expected.map(|(name, state)| (name.to_owned(), state)));
    }

    #[test]
    fn what_is_undecided_is_said_beside_a_warning_and_a_failure() {
        for (state, undecided) in
            [(State::Unknown, true), (State::NotRun, true), (State::Warn, false), (State::Pass, false)]
        {
            let node = decide_node(
                [measured(Component::Cpu, State::Pass)],
                &[finding(Component::Memory, state), finding(Component::Node, State::Fail)],
            );
            assert_eq!((node.state, node.undecided), (State::Fail, undecided), "{state:?}");
        }
    }

    #[test]
    fn nothing_known_is_no_pass() {
        assert_eq!(decide_node([], &[]).state, State::Unknown);
        assert!(decide_node([], &[]).undecided);
        let nothing = decide_node([], &[finding(Component::Gpu(0), State::NotApplicable)]);
        assert_eq!((nothing.state, nothing.undecided), (State::NotApplicable, false));
    }

    #[test]
    fn one_more_bad_finding_never_makes_a_node_better() {
        let all = [State::NotApplicable, State::Pass, State::NotRun, State::Unknown, State::Warn, State::Fail];
        for before in all {
            for more in all {
                let one = decide_node([], &[finding(Component::Cpu, before)]);
                let two = decide_node([], &[finding(Component::Cpu, before), finding(Component::Memory, more)]);
                assert!(two.state >= one.state);
            }
        }
    }
}
