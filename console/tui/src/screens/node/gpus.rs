//! The GPUs of a node: how each is and what it gave, and of the chosen one what was found and its multiprocessors.

use muster_wire::Unit;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::text::Span;

use crate::judgement::word;
use crate::screens::node::Pane;
use crate::screens::node::panes::select;
use crate::snapshot::{GpuRow, NodeRow, Sm, Snapshot};
use crate::text::{cut, wrap};
use crate::theme::{Role, Theme};
use crate::ui::Ui;
use crate::widgets::{put, put_spans};

/// Rows below the list: one of what was found, three of multiprocessors.
pub(super) const EXTRA: u16 = 4;
const STATE: u16 = 10;
const NUMBER: u16 = 7;
/// Benchmark and metric that have a place in the list, and what they are called there.
const SHOWN: [(&str, &str, &str); 3] =
    [("gemm-flops", "bf16", "bf16"), ("gpu-stream", "copy", "copy"), ("gpu-copy-bw", "host-to-device", "from host")];

/// Draws the list and the chosen GPU's map.
pub(super) fn draw(ui: &Ui, snapshot: &Snapshot, node: &NodeRow, (buffer, inner): (&mut Buffer, Rect)) {
    let cursor = ui.node.cursor(Pane::Gpus);
    let height = inner.height.saturating_sub(EXTRA);
    for (y, row) in (inner.y..inner.y + height).zip(cursor.window(node.gpus.len(), height.into())) {
        let line = Rect { y, height: 1, ..inner };
        gpu(ui, snapshot, node, &node.gpus[row], (buffer, line));
        select(ui, Pane::Gpus, cursor, row, (buffer, line));
    }
    if let Some(chosen) = node.gpus.get(cursor.at) {
        let below = Rect { y: inner.y + height, height: inner.height - height, ..inner };
        let said = chosen.said.first().map_or_else(|| chosen.name.clone(), Clone::clone);
        let role = if chosen.said.is_empty() { Role::Dim } else { Role::Text };
        let said = wrap(&said, inner.width.into());
        put(buffer, (below.x, below.y), below.width, said.first().map_or("", String::as_str), ui.theme.style(role));
        map(ui, chosen, (buffer, Rect { y: below.y + 1, height: below.height.saturating_sub(1), ..below }));
    }
}

fn gpu(ui: &Ui, snapshot: &Snapshot, node: &NodeRow, row: &GpuRow, (buffer, line): (&mut Buffer, Rect)) {
    let theme = &ui.theme;
    let state = format!("{} {}", theme.glyph(row.state), word(row.state));
    put(buffer, (line.x, line.y), STATE, &state, theme.style(Theme::state_role(row.state)));
    put(buffer, (line.x + STATE, line.y), NUMBER, &format!("GPU {}", row.index), theme.style(Role::Text));
    let x = line.x + STATE + NUMBER;
    let room = line.right().saturating_sub(x);
    let cells = cells(snapshot, node, row).join("  ");
    put(buffer, (x, line.y), room, &cut(&cells, room.into(), theme.is_ascii()), theme.style(Role::Dim));
}

/// What is known of a GPU, most telling first.
fn cells(snapshot: &Snapshot, node: &NodeRow, row: &GpuRow) -> Vec<String> {
    let mut cells = Vec::new();
    cells.extend(row.temperature.map(|degrees| format!("{degrees:3.0} °C")));
    cells.extend(row.power.map(|watts| format!("{watts:4.0} W")));
    cells.extend(row.clock.map(|clock| Unit::Hertz.show(clock)));
    cells.extend(row.errors.map(|errors| format!("ecc {errors:.0}")));
    cells.extend(row.links.map(|(up, all)| format!("links {up:.0}/{all:.0}")));
    for (benchmark, name, label) in SHOWN {
        let of = format!("{name}:{}", row.index);
        let verdict = node.verdicts.iter().find_map(|verdict| {
            let metric = snapshot.metrics.get(verdict.metric)?;
            let fits = metric.id.benchmark == benchmark && metric.id.name == of;
            fits.then_some((metric.unit, verdict.value?))
        });
        cells.extend(verdict.map(|(unit, value)| format!("{label} {}", unit.show(value))));
    }
    cells.extend(row.pcie.map(|(generation, lanes)| format!("PCIe {generation:.0}x{lanes:.0}")));
    cells
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
