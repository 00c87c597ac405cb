//! Versions on the left; on the right the evidence of the chosen one and what it says otherwise than its base.

use muster_analysis::history::{Change, diff};
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Style;
use ratatui::widgets::Widget;

use crate::judgement::{status_about, status_word};
use crate::snapshot::{Criteria, Snapshot, VersionRow};
use crate::text::{elide, similarity, whole_age, wrap};
use crate::theme::Role;
use crate::ui::Ui;
use crate::widgets::{Line, Panel, Plot, block, framed_panel, instead, put, put_right};

/// Draws the screen.
pub(crate) fn draw(ui: &Ui, snapshot: &Snapshot, buffer: &mut Buffer, area: Rect) {
    let none = || {
        Panel::empty(
            "No criterion has been kept yet.",
            "`muster criteria learn` keeps what the newest run has shown, and `muster criteria freeze METRIC` judges later \
             runs by it; 3 shows what a run learns by itself.",
        )
    };
    let part = &snapshot.criteria;
    let has = part.data.as_ref().is_some_and(|c| !c.versions.is_empty());
    let instead = instead(ui, snapshot, (&part.load, has), none);
    let (Some(criteria), None) = (part.data.as_deref(), &instead) else {
        return framed_panel(buffer, area, &ui.theme, ("Criteria", &instead.unwrap_or_else(none)));
    };
    let width = if ui.wide { area.width } else { (area.width * 9 / 20).min(84) };
    list(ui, snapshot, criteria, buffer, Rect { width, ..area });
    if let Some((chosen, base)) = ui.states.criteria.chosen(criteria).filter(|_| !ui.wide) {
        let right = Rect { x: area.x + width, width: area.width - width, ..area };
        detail(ui, snapshot, (chosen, base), buffer, right);
    }
}

fn list(ui: &Ui, snapshot: &Snapshot, criteria: &Criteria, buffer: &mut Buffer, area: Rect) {
    let theme = &ui.theme;
    let versions = &criteria.versions;
    let frozen = versions.iter().filter(|v| v.frozen).count();
    let note = format!("{frozen} frozen, {}/{}", ui.states.criteria.versions.at + 1, versions.len());
    let block = block(theme, area, "Versions", &note);
    let inner = block.inner(area);
    block.render(area, buffer);
    let window = ui.states.criteria.versions.window(versions.len(), inner.height.into());
    for (y, row) in (inner.y..inner.bottom()).zip(window) {
        let version = &versions[row];
        let is_base = ui.states.criteria.base.as_ref() == Some(&version.criterion.id);
        let mark = if is_base { "*" } else { " " };
        put(buffer, (inner.x, y), 1, mark, theme.style(Role::Key));
        let room = inner.width.saturating_sub(19);
        let name = elide(&version.criterion.id, room.into(), theme.is_ascii());
        put(buffer, (inner.x + 1, y), room, &name, theme.style(Role::Text));
        let word = if version.frozen { "frozen" } else { "" };
        put_right(buffer, (inner.right() - 17, y), 7, word, theme.style(Role::Head));
        let age = whole_age(ui.now_ms(snapshot).saturating_sub(version.learned_ms));
        put_right(buffer, (inner.right() - 9, y), 8, &age, theme.style(Role::Dim));
        if row == ui.states.criteria.versions.at {
            buffer.set_style(Rect { y, height: 1, ..inner }, theme.style(Role::Selected));
        }
    }
}

type Row = (String, Style);

fn detail(
    ui: &Ui,
    snapshot: &Snapshot,
    (chosen, base): (&VersionRow, Option<&VersionRow>),
    buffer: &mut Buffer,
    area: Rect,
) {
    let theme = &ui.theme;
    let title = elide(&chosen.criterion.metric.to_string(), usize::from(area.width) - 6, theme.is_ascii());
    let block = block(theme, area, &title, if chosen.frozen { "frozen" } else { "" });
    let inner = block.inner(area);
    block.render(area, buffer);
    let inner = Rect { x: inner.x + 1, width: inner.width.saturating_sub(2), ..inner };
    let mut rows = evidence(ui, snapshot, chosen, inner.width.into());
    rows.extend(changes(ui, chosen, base, inner.width.into()));
    let used = u16::try_from(rows.len()).unwrap_or(u16::MAX).min(inner.height);
    for (y, (text, style)) in (inner.y..inner.bottom()).zip(&rows) {
        put(buffer, (inner.x, y), inner.width, text, *style);
    }
    let rest = Rect { y: inner.y + used, height: inner.height - used, ..inner };
    curves(ui, (chosen, base), (buffer, rest));
}

/// What the version rests on.
fn evidence(ui: &Ui, snapshot: &Snapshot, version: &VersionRow, room: usize) -> Vec<Row> {
    let theme = &ui.theme;
    let c = &version.criterion;
    let value = |v: Option<f64>, show: &dyn Fn(f64) -> String| v.map_or(theme.absent().to_owned(), show);
    let group = if version.group.is_empty() { "all nodes" } else { &version.group };
    let age = whole_age(ui.now_ms(snapshot).saturating_sub(version.learned_ms));
    let median = value(c.sample.as_ref().map(muster_analysis::Sample::median), &|m| c.unit.show(m));
    let outside: Vec<&str> = version.outside.iter().take(6).map(|(node, _)| node.as_str()).collect();
    let outside = if outside.is_empty() { "none".to_owned() } else { outside.join(", ") };
    let lines = [
        (format!("{}  {}", status_word(c.status), status_about(c.status)), Role::Head),
        (format!("for {group}, learned {age} ago from {}", version.source), Role::Text),
        (
            format!(
                "healthy {}/{}  repeatability {}  median {median}  alpha {}  tau {}",
                c.healthy,
                c.n,
                value(c.repeatability, &similarity),
                c.alpha,
                c.tau
            ),
            Role::Text,
        ),
        (format!("outside then: {outside}"), Role::Dim),
    ];
    lines
        .into_iter()
        .flat_map(|(text, role)| wrap(&text, room).into_iter().map(move |l| (l, theme.style(role))))
        .collect()
}

/// What it says otherwise than its base.
fn changes(ui: &Ui, chosen: &VersionRow, base: Option<&VersionRow>, room: usize) -> Vec<Row> {
    let theme = &ui.theme;
    let mut rows = vec![(String::new(), theme.style(Role::Text))];
    let Some(base) = base.filter(|b| b.criterion.id != chosen.criterion.id) else {
        rows.push(("No version before it; space marks one to compare with.".to_owned(), theme.style(Role::Dim)));
        return rows;
    };
    rows.push((elide(&format!("against {}", base.criterion.id), room, theme.is_ascii()), theme.style(Role::Head)));
    let found = diff(&base.criterion, &chosen.criterion, &[]).changes;
    if found.is_empty() {
        rows.push(("both always say the same".to_owned(), theme.style(Role::Text)));
    }
    let unit = chosen.criterion.unit;
    let line = |change: &Change| match change {
        Change::Incomparable(why) => format!("cannot be compared: {why}"),
        Change::Alpha(a, b) => format!("alpha {a} to {b}"),
        Change::Tau(a, b) => format!("tau {a} to {b}"),
        Change::Status(a, b) => format!("{a} to {b}"),
        Change::Nodes(a, b) => format!("{a} to {b} nodes"),
        Change::Repeatability(a, b) => {
            let show = |v: &Option<f64>| v.map_or(theme.absent().to_owned(), similarity);
            format!("repeatability {} to {}", show(a), show(b))
        }
        Change::Centre(m) => {
            let show = |v: Option<f64>| v.map_or(theme.absent().to_owned(), |v| unit.show(v));
            let alike = m.similarity.map_or(String::new(), |s| format!(", similarity {}", similarity(s)));
            let worse = m.worse.map_or(String::new(), |w| format!(", {:.0} % of it for the worse", w * 100.0));
            format!("median {} to {}{alike}{worse}", show(m.from), show(m.to))
        }
    };
    rows.extend(found.iter().flat_map(|c| wrap(&line(c), room)).map(|l| (l, theme.style(Role::Text))));
    rows
}

fn curves(ui: &Ui, (chosen, base): (&VersionRow, Option<&VersionRow>), (buffer, area): (&mut Buffer, Rect)) {
    let theme = &ui.theme;
    if area.height < 6 {
        return;
    }
    let steps = |v: &VersionRow| {
        let points = v.criterion.sample.as_ref().map(|s| muster_analysis::cdf_points(s, usize::from(area.width) * 2));
        points.unwrap_or_default()
    };
    let (new, old) = (steps(chosen), base.map(steps).unwrap_or_default());
    let text = "CDF: N this version, O the other";
    put(buffer, (area.x, area.y), area.width, text, theme.style(Role::Dim));
    let mut lines = vec![Line { points: &old, style: theme.style(Role::Text), tag: 'O' }];
    lines.push(Line { points: &new, style: theme.style(Role::Focus), tag: 'N' });
    lines.retain(|l| !l.points.is_empty());
    let unit = chosen.criterion.unit;
    let plot = Rect { y: area.y + 1, height: area.height - 1, ..area };
    Plot { theme, show: &|x| unit.show(x), start: 0.0, band: None, lines }.draw(buffer, plot);
}
