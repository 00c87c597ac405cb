//! The columns of the fleet's table: what they show, how wide they are, how they sort, which go first when it is narrow.

use std::cmp::Ordering;

use muster_analysis::service::Service;

use crate::judgement::{PROVISIONAL, State, severity};
use crate::snapshot::{LinkKind, NodeRow, Snapshot};
use crate::stale::Stale;
use crate::text::{natural, percent, similarity, whole_age};
use crate::theme::{Role, Theme};
use crate::ui::Ui;

/// A column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Column {
    Node,
    State,
    Service,
    Worst,
    Similarity,
    Deviation,
    Seen,
    Work,
    Done,
    Rack,
    Link,
}

/// How a column is drawn.
#[derive(Debug)]
pub(crate) struct Spec {
    pub(crate) column: Column,
    pub(crate) title: &'static str,
    min: u16,
    max: u16,
    /// Cells left free before the text, so that it does not touch a right-aligned neighbour.
    indent: u16,
    /// Lower stays longer when the table is narrow.
    rank: u8,
    pub(crate) right: bool,
}

const fn spec(column: Column, title: &'static str, (min, max): (u16, u16), rank: u8, right: bool) -> Spec {
    let indent = if matches!(column, Column::Work | Column::Link) { 1 } else { 0 };
    Spec { column, title, min, max, indent, rank, right }
}

/// All, from left to right.
pub(crate) const COLUMNS: &[Spec] = &[
    spec(Column::Node, "node", (14, 32), 0, false),
    spec(Column::Rack, "rack", (6, 12), 8, false),
    spec(Column::State, "state", (10, 10), 1, false),
    spec(Column::Service, "service", (10, 10), 4, false),
    spec(Column::Worst, "worst metric", (20, 34), 2, false),
    spec(Column::Similarity, "similar", (7, 7), 5, true),
    spec(Column::Deviation, "vs peers", (8, 8), 3, true),
    spec(Column::Work, "now", (13, 20), 7, false),
    spec(Column::Done, "done", (5, 5), 6, true),
    spec(Column::Link, "link", (10, 20), 9, false),
    spec(Column::Seen, "seen", (6, 6), 4, true),
];

/// A column in its place.
pub(crate) struct Placed {
    pub(crate) spec: &'static Spec,
    /// Cells from the left edge of the table.
    pub(crate) x: u16,
    pub(crate) width: u16,
}

/// The column of hands where these only repeat the verdicts: what fails is defective, what warns is suspect.
const REPEATING: Spec = spec(Column::Service, "service", (10, 10), 8, false);

/// The columns that have something to say: the one of hands does only where some node is not simply in service.
pub(crate) fn telling(snapshot: &Snapshot) -> impl Iterator<Item = &'static Spec> {
    let by_people = |state: Service| matches!(state, Service::InRepair | Service::HotBuffer);
    let own = snapshot.hands.iter().any(|(state, _)| by_people(*state));
    let hands = !snapshot.hands.is_empty();
    COLUMNS.iter().filter_map(move |spec| match spec.column {
        Column::Service if own => Some(spec),
        Column::Service => hands.then_some(&REPEATING),
        _ => Some(spec),
    })
}

/// The columns of `all` that fit `room` cells, in their places; one cell between any two.
pub(crate) fn fit(all: impl Iterator<Item = &'static Spec>, room: u16) -> Vec<Placed> {
    let all: Vec<&'static Spec> = all.collect();
    let mut by_rank = all.clone();
    by_rank.sort_by_key(|s| s.rank);
    let mut left = room + 1;
    let mut kept = Vec::new();
    for spec in by_rank {
        if spec.min < left {
            left -= spec.min + 1;
            kept.push(spec.column);
        }
    }
    let mut widths: Vec<(&'static Spec, u16)> =
        all.into_iter().filter(|s| kept.contains(&s.column)).map(|s| (s, s.min)).collect();
    // What is left is dealt out cell by cell, so that no column is starved by the ones before it.
    while left > 0 && widths.iter().any(|(s, w)| *w < s.max) {
        for (spec, width) in &mut widths {
            if *width < spec.max && left > 0 {
                *width += 1;
                left -= 1;
            }
        }
    }
    let mut next = 0;
    let place = |(spec, width): (&'static Spec, u16)| {
        let placed = Placed { spec, x: next + spec.indent, width: width - spec.indent };
        next += width + 1;
        placed
    };
    widths.into_iter().map(place).collect()
}

/// What a cell shows.
pub(crate) fn cell(column: Column, node: &NodeRow, snapshot: &Snapshot, ui: &Ui) -> (String, Role) {
    let absent = || (ui.theme.absent().to_owned(), Role::Dim);
    let worst = node.worst.as_ref();
    match column {
        Column::Node => (node.name.clone(), Role::Text),
        Column::Rack if node.rack.is_empty() => absent(),
        Column::Rack => (node.rack.clone(), Role::Dim),
        // Nothing is said of it yet, and something will be.
        Column::State if node.state == State::NotRun && node.work.is_some() => ("measuring".to_owned(), Role::Text),
        Column::State if snapshot.awaited(node.state).is_some() => {
            (snapshot.awaited(node.state).unwrap_or_default().to_owned(), Role::Dim)
        }
        Column::State => {
            let (text, role) = Stale::now(ui, snapshot).cell(&ui.theme, node.state, node.result_ms);
            (if node.provisional { text + PROVISIONAL } else { text }, role)
        }
        Column::Service => (node.hands().title().to_owned(), Theme::service_role(node.hands())),
        Column::Worst => worst.map_or_else(absent, |w| (w.metric.path(), Theme::state_role(node.state))),
        Column::Similarity => {
            worst.and_then(|w| w.similarity).map_or_else(absent, |s| (similarity(s), Theme::state_role(node.state)))
        }
        Column::Deviation => {
            worst.and_then(|w| w.deviation).map_or_else(absent, |d| (percent(d), Theme::state_role(node.state)))
        }
        Column::Work => node.work.as_ref().map_or_else(absent, |w| (w.name.clone(), Role::Text)),
        Column::Done if node.done == 0.0 && Ui::going(snapshot).is_none() => absent(),
        Column::Done => (format!("{:.0} %", node.done * 100.0), Role::Dim),
        Column::Link => {
            // The reason itself has the room of the columns that are empty then.
            let text = match node.link.kind {
                LinkKind::Failed => "failed",
                LinkKind::Waiting => "waiting",
                _ => &node.link.text,
            };
            (text.to_owned(), Theme::link_role(node.link.kind))
        }
        Column::Seen => node.seen_ms.map_or_else(absent, |seen| {
            let age = ui.data_ms(snapshot).saturating_sub(seen);
            (whole_age(age), if age > snapshot.stale_after_ms { Role::Dim } else { Role::Text })
        }),
    }
}

/// Compares two nodes by a column; the one that needs attention comes first.
pub(crate) fn compare(column: Column, stale: Stale, a: &NodeRow, b: &NodeRow) -> Ordering {
    let worst = |n: &NodeRow| n.worst.as_ref().and_then(|w| w.similarity);
    let deviation = |n: &NodeRow| n.worst.as_ref().and_then(|w| w.deviation).map(f64::abs);
    match column {
        Column::Node => natural(&a.name, &b.name),
        Column::Rack => natural(&a.rack, &b.rack),
        Column::State => severity(a.state)
            .cmp(&severity(b.state))
            .then_with(|| stale.is(b.result_ms).cmp(&stale.is(a.result_ms)))
            .then_with(|| present(worst(a), worst(b))),
        Column::Service => attention(a.hands()).cmp(&attention(b.hands())),
        Column::Worst => a.worst.as_ref().map(|w| &w.metric).cmp(&b.worst.as_ref().map(|w| &w.metric)),
        Column::Similarity => present(worst(a), worst(b)),
        Column::Deviation => present(deviation(a).map(|d| -d), deviation(b).map(|d| -d)),
        Column::Work => a.work.as_ref().map(|w| &w.name).cmp(&b.work.as_ref().map(|w| &w.name)),
        Column::Done => a.done.total_cmp(&b.done),
        Column::Link => a.link.kind.cmp(&b.link.kind).then_with(|| a.link.text.cmp(&b.link.text)),
        Column::Seen => a.seen_ms.cmp(&b.seen_ms),
    }
}

/// Whom somebody has to look after comes first.
const fn attention(service: Service) -> u8 {
    match service {
        Service::Defective => 0,
        Service::Suspect => 1,
        Service::InRepair => 2,
        Service::HotBuffer => 3,
        Service::InService => 4,
    }
}

/// Smallest first; what is missing comes last.
fn present(a: Option<f64>, b: Option<f64>) -> Ordering {
    match (a, b) {
        (Some(a), Some(b)) => a.total_cmp(&b),
        (Some(_), None) => Ordering::Less,
        (None, Some(_)) => Ordering::Greater,
        (None, None) => Ordering::Equal,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn narrow_tables_keep_what_names_and_judges() {
        let all = || COLUMNS.iter().filter(|spec| spec.column != Column::Service);
        let shown = |room| fit(all(), room).iter().map(|p| p.spec.column).collect::<Vec<_>>();
        use Column::*;
        assert_eq!(shown(56), [Node, State, Worst, Deviation]);
        assert_eq!(shown(76), [Node, State, Worst, Similarity, Deviation, Done, Seen]);
        assert_eq!(shown(116).len(), COLUMNS.len() - 1);
        let with_hands = |room| fit(COLUMNS.iter(), room).iter().map(|p| p.spec.column).collect::<Vec<_>>();
        assert_eq!(with_hands(56), [Node, State, Worst, Deviation]);
        assert_eq!(with_hands(76), [Node, State, Service, Worst, Deviation, Seen]);
        assert_eq!(with_hands(127).len(), COLUMNS.len());
        let of = |hands: &[(muster_analysis::service::Service, usize)], room| {
            let snapshot = Snapshot { hands: hands.into(), ..Snapshot::default() };
            fit(telling(&snapshot), room).iter().map(|p| p.spec.column).collect::<Vec<_>>()
        };
        let failed = [(muster_analysis::service::Service::Defective, 1)];
        assert_eq!(of(&failed, 76), shown(76), "what the state says already goes first");
        assert!(of(&failed, 116).contains(&Service));
        assert_eq!(of(&[(muster_analysis::service::Service::InRepair, 1)], 76), with_hands(76));
    }

    #[test]
    fn widths_never_exceed_the_room() {
        for room in 20..250 {
            let placed = fit(COLUMNS.iter(), room);
            assert!(placed.windows(2).all(|p| p[0].x + p[0].width < p[1].x), "{room}");
            assert!(placed.last().is_none_or(|p| p.x + p.width <= room), "{room}");
        }
    }
}
