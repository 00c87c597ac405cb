//! Whether a playbook's work comes in an order that does not spoil its own results.

use muster_wire::{Profile, Stage, benchmark};

use crate::Plan;

const fn words(stage: Stage) -> &'static str {
    match stage {
        Stage::Part => "one part at a time",
        Stage::Burn => "a load that heats the node up",
        Stage::EndToEnd => "end to end",
    }
}

/// One sentence for every benchmark that runs after work which should come later: bandwidth before burn, parts before
/// the whole. A phase behind an idle gate may begin anew, and in `smoke` nothing gets warm.
#[must_use]
pub fn remarks(plan: &Plan) -> Vec<String> {
    let mut remarks = Vec::new();
    let mut latest: Option<(Stage, &str)> = None;
    for phase in &plan.phases {
        if phase.idle.is_some() {
            latest = None;
        }
        for name in phase.benchmarks.iter().filter(|_| phase.profile > Profile::Smoke) {
            let own = benchmark(name).map_or(Stage::Part, |entry| entry.stage);
            match latest {
                Some((before, other)) if own < before => remarks.push(format!(
                    "{name} ({}) runs after {other} ({}): put it before, or an `idle_s` between them",
                    words(own),
                    words(before)
                )),
                _ => latest = Some((own, name)),
            }
        }
    }
    remarks
}

#[cfg(test)]
mod tests {
    use crate::{Playbook, builtin, plan};

    use super::*;

    fn of(steps: &str) -> Vec<String> {
        let text = format!("name = \"p\"\ntitle = \"P\"\nprofile = \"quick\"\n{steps}");
        remarks(&plan(&Playbook::parse(&text, "p.toml").unwrap(), &["n1".to_owned()]))
    }

    #[test]
    fn bandwidth_after_burn_is_remarked_on_unless_a_gate_stands_between() {
        let (burn, stream) =
            ("[[steps]]\nid = \"b\"\nrun = [\"cpu-burn\"]\n", "[[steps]]\nid = \"s\"\nrun = [\"cpu-stream\"]\n");
        assert_eq!(of(&format!("{stream}{burn}")), [""; 0]);
        assert_eq!(
            of(&format!("{burn}{stream}")),
            [
                "cpu-stream (one part at a time) runs after cpu-burn (a load that heats the node up): put it before, or an \
              `idle_s` between them"
            ]
        );
        assert_eq!(of(&format!("{burn}{stream}idle_s = 5\n")), [""; 0]);
    }

    #[test]
    fn the_playbooks_that_come_with_the_program_keep_the_order() {
        // What burn-in looks at after its burn is what the heat has changed.
        for (name, text) in builtin().iter().filter(|(name, _)| *name != "burn-in") {
            let plan = plan(&Playbook::parse(text, name).unwrap(), &["n1".to_owned()]);
            assert_eq!(remarks(&plan), [""; 0], "{name}");
        }
    }
}
