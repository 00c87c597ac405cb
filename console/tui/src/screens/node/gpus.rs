//! The GPUs of a node: how each is and what it gave, and of the chosen one what was found and its multiprocessors.

use std::collections::HashMap;

use muster_wire::{Component, Unit, describe};
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::text::Span;

use crate::judgement::word;
use crate::screens::node::Pane;
use crate::screens::node::panes::select;
use crate::snapshot::{GpuRow, NodeRow, Sm, Snapshot};
use crate::text::cut;
use crate::theme::{Role, Theme};
use crate::ui::Ui;
use crate::widgets::{put, put_right, put_spans};

/// Rows that are not GPUs: the column heads, what was found of the chosen one, what it is, its multiprocessors.
pub(super) const EXTRA: u16 = 5;
/// Rows for multiprocessors at most.
const MAP: u16 = 4;
const STATE: u16 = 10;
const NUMBER: u16 = 7;
/// Benchmark and metric that have a column, as the catalogue has them; its head and its width.
const SHOWN: [(&str, &str, &str, u16); 5] = [
    ("gemm-flops", "bf16:{gpu}", "bf16 gemm", 13),
    ("gpu-stream", "copy:{gpu}", "copy", 10),
    ("gpu-copy-bw", "host-to-device:{gpu}", "from host", 10),
    ("gpu-burn", "bf16-mma:{gpu}", "burn", 13),
    ("kernel-launch", "event:{gpu}", "launch", 8),
];

/// Draws the list and the chosen GPU's map.
pub(super) fn draw(ui: &Ui, snapshot: &Snapshot, node: &NodeRow, (buffer, inner): (&mut Buffer, Rect)) {
    let theme = &ui.theme;
    let cursor = ui.states.node.cursor(Pane::Gpus);
    let columns = columns(snapshot, node, inner.width.saturating_sub(STATE + NUMBER));
    put(buffer, (inner.x, inner.y), STATE, "state", theme.style(Role::Head));
    let mut x = inner.x + STATE + NUMBER;
    for column in &columns {
        put_right(buffer, (x, inner.y), column.width, column.head, theme.style(Role::Head));
        x += column.width + 1;
    }
    let chosen = node.gpus.get(cursor.at);
    let below = chosen.map_or(0, |gpu| 2 + map_rows(gpu, inner.width));
    let height = inner.height.saturating_sub(1 + below);
    for (y, row) in (inner.y + 1..inner.y + 1 + height).zip(cursor.window(node.gpus.len(), height.into())) {
        let line = Rect { y, height: 1, ..inner };
        gpu(ui, &node.gpus[row], (&columns, row), (buffer, line));
        select(ui, Pane::Gpus, cursor, row, (buffer, line));
    }
    let Some(chosen) = chosen.filter(|_| inner.height > below) else { return };
    let y = inner.bottom() - below;
    let said = chosen.said.first().map_or("nothing was found of it", String::as_str);
    let role = if chosen.said.is_empty() { Role::Dim } else { Role::Text };
    put(buffer, (inner.x, y), inner.width, &cut(said, inner.width.into(), theme.is_ascii()), theme.style(role));
    let about: Vec<&str> = [chosen.name.as_str()].into_iter().chain(chosen.about.iter().map(String::as_str)).collect();
    let about = cut(&about.join("  "), inner.width.into(), theme.is_ascii());
    put(buffer, (inner.x, y + 1), inner.width, &about, theme.style(Role::Dim));
    map(ui, chosen, (buffer, Rect { y: y + 2, height: below - 2, ..inner }));
}

/// One column of the list.
struct Column {
    head: &'static str,
    width: u16,
    cells: Vec<String>,
}

/// Columns that somebody has a value for and that `room` has a place for, most telling first.
fn columns(snapshot: &Snapshot, node: &NodeRow, room: u16) -> Vec<Column> {
    let of = |head, width, cell: &dyn Fn(&GpuRow) -> Option<String>| Column {
        head,
        width,
        cells: node.gpus.iter().map(|row| cell(row).unwrap_or_default()).collect(),
    };
    let mut all = vec![
        of("°C", 3, &|row| row.temperature.map(|degrees| format!("{degrees:.0}"))),
        of("W", 4, &|row| row.power.map(|watts| format!("{watts:.0}"))),
        of("clock", 8, &|row| row.clock.map(|clock| Unit::Hertz.show(clock))),
        of("ecc", 4, &|row| row.errors.map(|errors| format!("{errors:.0}"))),
        of("links", 5, &|row| row.links.map(|(up, all)| format!("{up:.0}/{all:.0}"))),
        of("PCIe", 5, &|row| row.pcie.map(|(generation, lanes)| format!("{generation:.0}x{lanes:.0}"))),
    ];
    let measured = measured(snapshot, node);
    for (at, (_, _, head, width)) in SHOWN.into_iter().enumerate() {
        all.push(of(head, width, &|row| measured.get(&(at, row.index)).cloned()));
    }
    let mut used = 0;
    all.retain(|column| {
        let told = column.cells.iter().any(|cell| !cell.is_empty());
        let fits = told && used + column.width <= room;
        used += if fits { column.width + 1 } else { 0 };
        fits
    });
    all
}

/// What each GPU gave in each of [`SHOWN`], by its place there and the GPU's number.
fn measured(snapshot: &Snapshot, node: &NodeRow) -> HashMap<(usize, u32), String> {
    let mut found = HashMap::new();
    for verdict in node.verdicts.iter() {
        let Some((metric, value)) = snapshot.metrics.of(&verdict.metric).zip(verdict.value) else { continue };
        for (at, _) in SHOWN.iter().enumerate().filter(|(_, (benchmark, ..))| metric.id.benchmark == *benchmark) {
            let described = describe(&metric.id);
            if let (Component::Gpu(index), true) = (&described.component, described.kind == SHOWN[at].1) {
                found.entry((at, *index)).or_insert_with(|| described.show(metric.unit, value));
            }
        }
    }
    found
}

fn gpu(ui: &Ui, row: &GpuRow, (columns, at): (&[Column], usize), (buffer, line): (&mut Buffer, Rect)) {
    let theme = &ui.theme;
    let state = format!("{} {}", theme.glyph(row.state), word(row.state));
    put(buffer, (line.x, line.y), STATE, &state, theme.style(Theme::state_role(row.state)));
    put(buffer, (line.x + STATE, line.y), NUMBER, &format!("GPU {}", row.index), theme.style(Role::Text));
    let mut x = line.x + STATE + NUMBER;
    for column in columns {
        put_right(buffer, (x, line.y), column.width, &column.cells[at], theme.style(Role::Dim));
        x += column.width + 1;
    }
}

fn map_rows(row: &GpuRow, width: u16) -> u16 {
    let rows = row.sms.len().div_ceil(usize::from(width.max(1)));
    u16::try_from(rows).unwrap_or(MAP).min(MAP)
}

/// One cell per multiprocessor, in order.
fn map(ui: &Ui, row: &GpuRow, (buffer, area): (&mut Buffer, Rect)) {
    let theme = &ui.theme;
    if area.width == 0 {
        return;
    }
    for (y, sms) in (area.y..area.bottom()).zip(row.sms.chunks(area.width.into())) {
        let spans: Vec<Span<'_>> = sms
            .iter()
            .map(|sm| match sm {
                Sm::Good => Span::styled(theme.pick("▪", "."), theme.style(Role::Dim)),
                Sm::Slow => Span::styled(theme.pick("▲", "s"), theme.style(Role::Attention)),
                Sm::Wrong => Span::styled(theme.pick("✗", "x"), theme.style(Role::Act)),
            })
            .collect();
        put_spans(buffer, (area.x, y), area.width, &spans);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_column_is_of_a_metric_that_exists() {
        for (benchmark, kind, head, width) in SHOWN {
            let entry = muster_wire::benchmark(benchmark).unwrap();
            assert!(entry.metrics.iter().any(|metric| metric.pattern == kind), "{benchmark}/{kind}");
            assert!(head.len() <= usize::from(width));
        }
    }
}
