//! What keys do on the Selector's screen.

use crate::intent::Intent;
use crate::keymap::{Action, Binding, ENTER, FREEZE, PLUS, Slider, TAB, WIDE, char, either, letter, one};
use crate::popups::{Confirm, Popup};
use crate::screens::Screen;
use crate::screens::selector::draw;
use crate::snapshot::{Ask, Selector, Snapshot};
use crate::ui::Ui;

/// Lengths of a job, hours.
const HOURS: [f64; 12] = [1.0, 2.0, 4.0, 8.0, 12.0, 24.0, 48.0, 72.0, 168.0, 336.0, 720.0, 2160.0];
/// Budgets, minutes; past the last one there is no limit.
const MINUTES: [f64; 11] = [2.0, 5.0, 10.0, 15.0, 20.0, 30.0, 45.0, 60.0, 90.0, 120.0, 240.0];
/// Risks that may remain; past the last one the rule of expectations holds.
const RISKS: [f64; 9] = [0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5];

/// Keys of the screen.
pub(crate) const KEYS: &[Binding] = &[
    one(ENTER, "enter", Action::Open, "open the node under the cursor").hint("open", 3),
    one(char(']'), "[ ]", Action::Slide(Slider::Hours, true), "a longer job").hint("job", 1),
    letter("[", Action::Slide(Slider::Hours, false), "a shorter job"),
    either(PLUS, "+", Action::Slide(Slider::Budget, true), "more minutes to spend").hint("budget", 2),
    letter("-", Action::Slide(Slider::Budget, false), "fewer minutes to spend"),
    one(char('>'), "< >", Action::Slide(Slider::Risk, true), "let more risk remain").hint("p0", 2),
    letter("<", Action::Slide(Slider::Risk, false), "let less risk remain"),
    one(TAB, "tab", Action::Pane, "picks, survival, coverage").hint("pane", 4),
    WIDE,
    FREEZE,
];

/// Does `action`.
pub(crate) fn act(ui: &mut Ui, action: Action, snapshot: &Snapshot) -> Option<Vec<Intent>> {
    let selector = snapshot.selector.data.as_deref()?;
    match action {
        Action::Move(motion) => {
            let page = draw::page(ui.size);
            ui.states.selector.nodes.go(motion, selector.nodes.len(), page);
            if let Some(row) = selector.nodes.get(ui.states.selector.nodes.at) {
                let at = snapshot.nodes.iter().position(|n| n.name == row.name);
                at.into_iter().for_each(|at| ui.select(snapshot, at));
            }
        }
        Action::Pane => ui.states.selector.pane = ui.states.selector.pane.next(),
        Action::Open if ui.selected.is_some() => ui.show(Screen::Node),
        Action::Slide(slider, up) => {
            let ask = moved(current(ui, selector), slider, up);
            ui.states.selector.asked = Some(ask.clone());
            return Some(vec![Intent::Ask(ask)]);
        }
        Action::Run => run(ui, selector, snapshot),
        Action::Copy => return Some(vec![Intent::Copy(selector.selection.reason.clone())]),
        _ => return None,
    }
    Some(Vec::new())
}

/// The question as the sliders have it.
pub(crate) fn current(ui: &Ui, selector: &Selector) -> Ask {
    ui.states.selector.asked.clone().unwrap_or_else(|| selector.ask.clone())
}

/// Asks the first question when the screen is first seen.
pub(crate) fn ask(ui: &mut Ui, snapshot: &Snapshot) -> Option<Intent> {
    if ui.states.selector.asked.is_some() || snapshot.selector.data.is_some() {
        return None;
    }
    let first = Ask { job_hours: 24.0, budget_minutes: None, p0: None };
    ui.states.selector.asked = Some(first.clone());
    Some(Intent::Ask(first))
}

fn moved(ask: Ask, slider: Slider, up: bool) -> Ask {
    match slider {
        Slider::Hours => {
            Ask { job_hours: step(&HOURS, Some(ask.job_hours), up).unwrap_or(HOURS[HOURS.len() - 1]), ..ask }
        }
        Slider::Budget => Ask { budget_minutes: step(&MINUTES, ask.budget_minutes, up), ..ask },
        Slider::Risk => Ask { p0: step(&RISKS, ask.p0, up), ..ask },
    }
}

/// The next stop above or below `value`; `None` stands above all of them.
fn step(stops: &[f64], value: Option<f64>, up: bool) -> Option<f64> {
    match (value, up) {
        (None, true) => None,
        (None, false) => stops.last().copied(),
        (Some(v), true) => stops.iter().copied().find(|s| *s > v * 1.001),
        (Some(v), false) => stops.iter().copied().rfind(|s| *s < v * 0.999).or(stops.first().copied()),
    }
}

/// Asks whether to run what was picked on the nodes that ask for it.
fn run(ui: &mut Ui, selector: &Selector, snapshot: &Snapshot) {
    if let Some(run) = Ui::going(snapshot) {
        return ui.say(snapshot, format!("{} is still {}; c cancels it", run.playbook, run.phase.word()));
    }
    let benchmarks: Vec<String> = selector.selection.picks.iter().map(|p| p.benchmark.clone()).collect();
    let nodes: Vec<String> = selector.nodes.iter().filter(|n| n.validate).map(|n| n.name.clone()).collect();
    if benchmarks.is_empty() || nodes.is_empty() {
        return ui.say(snapshot, "nothing has to run before this job");
    }
    let about = format!("{}: {}.", benchmarks.join(", "), selector.selection.reason);
    let verb = format!("Run {} picked benchmarks on", benchmarks.len());
    let then = Intent::RunSelection { benchmarks, nodes: nodes.clone() };
    ui.popups.push(Popup::Confirm(Confirm::on_nodes(&verb, about, &nodes, then)));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slider_stops_at_its_ends_and_beyond_the_last_stop_there_is_no_limit() {
        assert_eq!(step(&RISKS, Some(0.1), true), Some(0.2));
        assert_eq!(step(&RISKS, Some(0.15), false), Some(0.1));
        assert_eq!(step(&RISKS, Some(0.005), false), Some(0.005));
        assert_eq!(
            [step(&RISKS, Some(0.5), true), step(&RISKS, None, true), step(&RISKS, None, false)],
            [None, None, Some(0.5)]
        );
        let ask = Ask { job_hours: 2160.0, budget_minutes: None, p0: None };
        assert_eq!(moved(ask.clone(), Slider::Hours, true), ask, "a job has a length");
    }
}
