//! How a node's metrics changed since an earlier run: which are listed, and each change in a line.

use muster_analysis::history::Shift;
use muster_wire::Unit;

use crate::judgement::word;
use crate::snapshot::{Before, NodeRow, VerdictRow};
use crate::text::{counted, day, days, difference, width};
use crate::theme::{Role, Theme};
use crate::ui::Ui;

/// The verdicts in the list: all, or only those that changed, with those that became worse first.
pub(crate) fn listed<'n>(ui: &Ui, node: &'n NodeRow) -> Vec<&'n VerdictRow> {
    let mut rows: Vec<&VerdictRow> =
        node.verdicts.iter().filter(|v| !ui.states.node.changed || has_changed(v)).collect();
    if ui.states.node.changed {
        rows.sort_by_key(|verdict| rank(verdict));
    }
    rows
}

/// The verdict under the cursor.
pub(crate) fn chosen<'n>(ui: &Ui, node: &'n NodeRow, at: usize) -> Option<&'n VerdictRow> {
    if ui.states.node.changed { listed(ui, node).get(at).copied() } else { node.verdicts.get(at) }
}

/// Whether it differs from the earlier result.
pub(crate) fn has_changed(verdict: &VerdictRow) -> bool {
    verdict.before.as_ref().is_some_and(|before| before.shift != Shift::Same)
}

fn rank(verdict: &VerdictRow) -> u8 {
    match verdict.before.as_ref().map(|before| before.shift) {
        Some(Shift::Worse) => 0,
        Some(Shift::Otherwise) => 1,
        Some(Shift::Better) => 2,
        Some(Shift::Same) | None => 3,
    }
}

/// How many metrics became worse, and since when, in one sentence; `None` where there was no run before.
pub(crate) fn changes(verdicts: &[VerdictRow]) -> Option<(String, Role)> {
    let before = || verdicts.iter().filter_map(|verdict| verdict.before.as_ref());
    before().next()?;
    let worse = || before().filter(|before| before.shift == Shift::Worse);
    let Some(since) = worse().map(|before| before.from.at_ms).min() else {
        return Some(("no metric is worse than in the run before".to_owned(), Role::Dim));
    };
    let metrics = counted(worse().count(), "metric", "metrics");
    Some((format!("{metrics} became worse since {}", day(since)), Role::Attention))
}

/// `2026-11-12 1.41 TFLOP/s pass → 2026-11-21 833 GFLOP/s fail, -41 %, worse`, as much of it as fits `room` cells.
pub(crate) fn line(theme: &Theme, verdict: &VerdictRow, before: &Before, unit: Option<Unit>, room: usize) -> String {
    let value = |value: Option<f64>| {
        let shown = value.zip(unit).map(|(value, unit)| unit.show(value));
        shown.unwrap_or_else(|| theme.absent().to_owned())
    };
    let (then, now) = days(before.from.at_ms, verdict.at_ms);
    let side = |day: &str, of: Option<f64>, state: &str| format!("{day} {}{state}", value(of));
    let [was, is] = [before.state, verdict.state].map(|state| format!(" {}", word(state)));
    let arrow = theme.pick("→", "->");
    let whole = format!("{} {arrow} {}", side(&then, before.value, &was), side(&now, verdict.value, &is));
    let bare = format!("{} {arrow} {}", side(&then, before.value, ""), side(&now, verdict.value, ""));
    let change = change(verdict, before);
    let change = if change.is_empty() { change } else { format!(", {change}") };
    let said = shift_word(before.shift);
    let options = [
        format!("{whole}{change}, {said} (was in {})", before.from.id),
        format!("{whole}{change}, {said}"),
        format!("{bare}{change}, {said}"),
        format!("{bare}{change}"),
    ];
    let fits = options.iter().find(|text| width(text) <= room);
    fits.or(options.last()).cloned().unwrap_or_default()
}

/// The difference from the earlier value; empty if there is none.
fn change(verdict: &VerdictRow, before: &Before) -> String {
    before.value.zip(verdict.value).map_or_else(String::new, |(then, now)| difference(then, now))
}

/// The difference in a cell of the table, marked where it is more than chance.
pub(crate) fn cell(theme: &Theme, verdict: &VerdictRow, before: &Before) -> (String, Role) {
    let (mark, role) = match before.shift {
        Shift::Same => ("", Role::Dim),
        Shift::Worse => ("! ", Role::Attention),
        Shift::Better => (theme.pick("✓ ", "+ "), Role::Good),
        Shift::Otherwise => ("~ ", Role::Text),
    };
    let change = change(verdict, before);
    let change = if change.is_empty() { theme.absent().to_owned() } else { change };
    (format!("{mark}{change}"), role)
}

const fn shift_word(shift: Shift) -> &'static str {
    match shift {
        Shift::Same => "within scatter",
        Shift::Better => "better",
        Shift::Worse => "worse",
        Shift::Otherwise => "changed",
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use muster_wire::MetricId;

    use super::*;
    use crate::judgement::State;
    use crate::snapshot::EarlierRun;

    const DAY: u64 = 86_400_000;
    const NOW: u64 = 1_795_269_600_000;

    fn verdict((state, value): (State, f64), before: Option<(State, f64, Shift, u64)>) -> VerdictRow {
        let before = before.map(|(state, value, shift, days)| Before {
            state,
            value: Some(value),
            shift,
            from: Arc::new(EarlierRun { id: "r0".to_owned(), at_ms: NOW - days * DAY }),
        });
        VerdictRow {
            metric: MetricId::new("cpu-gemm", "fp32", "own"),
            state,
            similarity: None,
            value: Some(value),
            deviation: None,
            reason: String::new(),
            at_ms: NOW,
            run: Arc::from("r1"),
            before,
        }
    }

    #[test]
    fn a_change_says_then_now_difference_and_both_days_as_far_as_there_is_room() {
        let theme = Theme::new(true, false);
        let slow = verdict((State::Fail, 833e9), Some((State::Pass, 1.41e12, Shift::Worse, 9)));
        let said = |room| line(&theme, &slow, slow.before.as_ref().unwrap(), Some(Unit::FlopPerSec), room);
        let whole = "2026-11-12 1.41 TFLOP/s pass → 2026-11-21 833 GFLOP/s fail, -41 %, worse";
        assert_eq!(said(76), whole);
        assert_eq!(said(100), format!("{whole} (was in r0)"));
        assert_eq!(said(70), "2026-11-12 1.41 TFLOP/s → 2026-11-21 833 GFLOP/s, -41 %, worse");
    }

    #[test]
    fn the_longest_line_fits_the_narrowest_terminal_without_a_cut() {
        let theme = Theme::new(true, false);
        let odd = verdict((State::Unknown, 1.234e12), Some((State::NotRun, 1.111e9, Shift::Otherwise, 0)));
        let text = line(&theme, &odd, odd.before.as_ref().unwrap(), Some(Unit::FlopPerSec), 76);
        assert!(width(&text) <= 76 && text.contains("1111x"), "{text}");
    }

    #[test]
    fn metrics_that_became_worse_are_counted_with_the_day_since_when() {
        let row = |shift, days| verdict((State::Pass, 1.0), Some((State::Pass, 1.0, shift, days)));
        let said = |verdicts: Vec<VerdictRow>| changes(&verdicts).map(|(text, _)| text);
        assert_eq!(said(vec![verdict((State::Pass, 1.0), None)]), None);
        let worse = |count: usize| (0..count).map(|_| row(Shift::Worse, 9)).collect::<Vec<_>>();
        assert_eq!(said(worse(1)).unwrap(), "1 metric became worse since 2026-11-12");
        assert_eq!(said(worse(3)).unwrap(), "3 metrics became worse since 2026-11-12");
        let mixed = vec![row(Shift::Worse, 9), row(Shift::Worse, 20), row(Shift::Same, 90)];
        assert_eq!(said(mixed).unwrap(), "2 metrics became worse since 2026-11-01");
        let calm = vec![row(Shift::Same, 9), row(Shift::Better, 9), row(Shift::Otherwise, 20)];
        assert_eq!(said(calm).unwrap(), "no metric is worse than in the run before");
    }
}
