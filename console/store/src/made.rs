//! A run as the tests of this crate need it.

use muster_run::{Run, RunState};
use muster_wire::Profile;

/// One that goes on, without nodes and plan.
pub(crate) fn run(id: &str) -> Run {
    Run {
        id: id.to_owned(),
        playbook: "p".to_owned(),
        profile: Profile::Smoke,
        started_ms: 1,
        ended_ms: None,
        nodes: Vec::new(),
        plan: Vec::new(),
        state: RunState::Running,
    }
}
