//! How far each rank is in each communicator, failures first.

use muster_triage::counters::Movement;
use muster_triage::matrix::{Cell, Column, Line};
use muster_triage::report::Source;
use muster_triage::waits::Behind;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use crate::screens::triage::layout::Layout;
use crate::screens::triage::state::{Pane, inside};
use crate::screens::triage::words::ranges;
use crate::snapshot::Triaged;
use crate::text::{counted, elide, thousands, wrap};
use crate::theme::{Role, Theme};
use crate::ui::Ui;
use crate::widgets::{put, put_right};

/// Rows above the lines: names of communicators, and what they are.
const HEAD: u16 = 2;
/// Rows of the sentence below the lines, in a pane that has room for it.
const SAID: u16 = 2;
/// Cells of a communicator.
const CELL: u16 = 14;
/// Cells for ranks, and for their nodes.
const RANKS: u16 = 18;
const NODES: u16 = 14;

/// Words in Megatron's names of groups, and what people say for them.
const SHORT: [(&str, &str); 9] = [
    ("_PARALLEL_GROUP", ""),
    ("_MODEL", ""),
    ("_AND_", "+"),
    ("_WITH_", "+"),
    ("TENSOR", "TP"),
    ("DATA", "DP"),
    ("PIPELINE", "PP"),
    ("EXPERT", "EP"),
    ("CONTEXT", "CP"),
];

/// Lines that a pane shows.
pub(crate) fn page(area: Rect) -> usize {
    usize::from(table(inside(area)).height).max(1)
}

fn table(inside: Rect) -> Rect {
    let said = if inside.height >= 9 { SAID } else { 0 };
    Rect { y: inside.y + HEAD, height: inside.height.saturating_sub(HEAD + said), ..inside }
}

fn lines<'t>(ui: &Ui, triaged: &'t Triaged, page: usize) -> &'t [Line] {
    let matrix = &triaged.overview.matrix;
    if ui.states.triage.is_folded(triaged, page) { &matrix.folded } else { &matrix.ranks }
}

/// The places of the lines that the filter keeps: by node, or by rank.
pub(crate) fn kept(ui: &Ui, triaged: &Triaged, parts: &Layout) -> Vec<usize> {
    let page = parts.of(Pane::Matrix).map_or(1, page);
    let lines = lines(ui, triaged, page);
    if ui.filter.is_empty() {
        return (0..lines.len()).collect();
    }
    let keeps = |(_, line): &(usize, &Line)| {
        let rank = |rank: &u32| ui.filter.keeps_line("", &format!("rank {rank}"));
        line.nodes.iter().any(|node| ui.filter.keeps_line(node, node)) || line.ranks.iter().any(rank)
    };
    lines.iter().enumerate().filter(keeps).map(|(at, _)| at).collect()
}

/// The line under the cursor.
pub(crate) fn chosen<'t>(ui: &Ui, triaged: &'t Triaged, parts: &Layout) -> Option<&'t Line> {
    let page = parts.of(Pane::Matrix).map_or(1, page);
    lines(ui, triaged, page).get(*ui.states.triage.lines.get(ui.states.triage.matrix.at)?)
}

/// What stands at the right end of the border.
pub(crate) fn note(ui: &Ui, triaged: &Triaged) -> String {
    let matrix = &triaged.overview.matrix;
    let mut said = vec![counted(matrix.ranks.len(), "rank", "ranks")];
    let shown = ui.states.triage.lines.len();
    if shown != matrix.ranks.len() {
        said.push(counted(shown, "line", "lines"));
    }
    if matrix.level > 0 {
        let what = if matrix.level == 1 { "level communicator" } else { "level communicators" };
        said.push(format!("{} {what} not shown", thousands(matrix.level)));
    }
    if matrix.left_out > 0 {
        said.push(format!("{} more not shown", thousands(matrix.left_out)));
    }
    match triaged.overview.movement {
        Movement::Still => said.push("RAS: no count moved".to_owned()),
        Movement::Moved => said.push("RAS: counts moved".to_owned()),
        Movement::Unknown => {}
    }
    said.join(", ")
}

/// Draws the pane inside its border.
pub(crate) fn draw(ui: &Ui, triaged: &Triaged, buffer: &mut Buffer, inside: Rect, parts: &Layout) {
    let (theme, state, matrix) = (&ui.theme, &ui.states.triage, &triaged.overview.matrix);
    let say = |buffer: &mut Buffer, text: &str| {
        for (y, line) in (inside.y..inside.bottom()).zip(wrap(text, inside.width.into())) {
            put(buffer, (inside.x, y), inside.width, &line, theme.style(Role::Dim));
        }
    };
    if matrix.ranks.is_empty() {
        return say(
            buffer,
            "Nothing tells how far ranks got: no counts of RAS, no flight recorder, no numbers of watchdogs.",
        );
    }
    if state.lines.is_empty() {
        return say(buffer, &format!("No rank or node matches `{}`; esc clears the filter.", ui.filter.text()));
    }
    let table = table(inside);
    let shown = usize::from(inside.width.saturating_sub(RANKS + NODES) / CELL);
    head(ui, triaged, buffer, (inside, shown));
    let lines = lines(ui, triaged, usize::from(table.height).max(1));
    let window = state.matrix.window(state.lines.len(), table.height.into());
    let has_keys = state.pane == Pane::Matrix;
    for (y, row) in (table.y..table.bottom()).zip(window) {
        let Some(line) = state.lines.get(row).and_then(|at| lines.get(*at)) else { continue };
        let chosen = has_keys && row == state.matrix.at;
        gutter(theme, buffer, Rect { y, height: 1, ..table }, (line, chosen));
        for (x, (place, column)) in columns(ui, triaged, (inside, shown)) {
            let (text, role) = cell(theme, line.cell(place), (column, line.root.is_some()));
            put_right(buffer, (x, y), CELL - 1, &text, theme.style(role));
        }
    }
    if table.bottom() < inside.bottom()
        && let Some(line) = chosen(ui, triaged, parts)
    {
        let area = Rect { y: table.bottom(), height: inside.bottom() - table.bottom(), ..inside };
        for (y, text) in (area.y..area.bottom()).zip(wrap(&sentence(line, &matrix.columns), area.width.into())) {
            put(buffer, (area.x, y), area.width, &text, theme.style(Role::Text));
        }
    }
}

/// The communicators in view with where each begins.
fn columns<'t>(
    ui: &Ui,
    triaged: &'t Triaged,
    (inside, shown): (Rect, usize),
) -> impl Iterator<Item = (u16, (usize, &'t Column))> {
    let all = triaged.overview.matrix.columns.iter().enumerate().skip(ui.states.triage.column);
    (inside.x + RANKS + NODES..).step_by(usize::from(CELL)).zip(all.take(shown))
}

/// Names of the communicators, and how many are out of view.
fn head(ui: &Ui, triaged: &Triaged, buffer: &mut Buffer, (inside, shown): (Rect, usize)) {
    let theme = &ui.theme;
    put(buffer, (inside.x, inside.y), RANKS, "ranks", theme.style(Role::Head));
    put(buffer, (inside.x + RANKS, inside.y), NODES, "node", theme.style(Role::Head));
    for (x, (_, column)) in columns(ui, triaged, (inside, shown)) {
        let (name, about) = label(column, theme.is_ascii());
        let role = if column.tells && !column.p2p { Role::Head } else { Role::Dim };
        put_right(buffer, (x, inside.y), CELL - 1, &name, theme.style(role));
        put_right(buffer, (x, inside.y + 1), CELL - 1, &about, theme.style(Role::Dim));
    }
    let left = ui.states.triage.column;
    let text = match (left, triaged.overview.matrix.columns.len().saturating_sub(left + shown)) {
        (0, 0) => return,
        (0, right) => format!("{right} more right"),
        (left, 0) => format!("{left} more left"),
        (left, right) => format!("{left} left, {right} right"),
    };
    put(buffer, (inside.x, inside.y + 1), RANKS + NODES - 1, &text, theme.style(Role::Key));
}

fn gutter(theme: &Theme, buffer: &mut Buffer, area: Rect, (line, chosen): (&Line, bool)) {
    let ascii = theme.is_ascii();
    let role = if line.root.is_some() { Role::Act } else { Role::Text };
    let paint = |role: Role| theme.style(if chosen { Role::Selected } else { role });
    put(buffer, (area.x, area.y), RANKS + NODES - 1, &" ".repeat(usize::from(RANKS + NODES)), paint(Role::Text));
    let mark = if line.root.is_some() { theme.pick("✗ ", "x ") } else { "  " };
    let ranks = ranges(&line.ranks, usize::from(RANKS - 3), ascii);
    put(buffer, (area.x, area.y), RANKS - 1, &format!("{mark}{ranks}"), paint(role));
    let nodes = match line.nodes.as_slice() {
        [] => theme.absent().to_owned(),
        [one] => elide(one, usize::from(NODES - 1), ascii),
        many => format!("{} nodes", many.len()),
    };
    put(buffer, (area.x + RANKS, area.y), NODES - 1, &nodes, paint(Role::Text));
}

/// Name of a communicator in a cell, and what it is: `0 default_pg`, `FR of 16`.
fn label(column: &Column, ascii: bool) -> (String, String) {
    let bare = ["communicator ", "process group ", "group "]
        .iter()
        .find_map(|word| column.name.strip_prefix(word))
        .unwrap_or(&column.name);
    let (id, what) = bare.split_once('(').map_or((bare, ""), |(id, what)| (id.trim(), what.trim_end_matches(')')));
    let room = usize::from(CELL - 1);
    let what = SHORT.iter().fold(what.to_owned(), |name, (long, short)| name.replace(long, short));
    // A number alone tells less than what the group is for; a hash has its operation below it.
    let named = id.parse::<u64>().is_ok() && !what.is_empty();
    // Of a hash the end tells as much as all of it.
    let end = id.trim_start_matches("0x").trim_start_matches('0');
    let name = match column.source {
        _ if named => format!("{id} {what}"),
        Source::Ras if !end.is_empty() => end.to_owned(),
        _ => id.to_owned(),
    };
    let about = match column.source {
        Source::Ras => what,
        Source::FlightRecorder => format!("FR of {}", column.size),
        _ => format!("log of {}", column.size),
    };
    (elide(&name, room, ascii), elide(&about, room, ascii))
}

/// How a rank stands: operations that it lags, `waits`, or nothing to say.
fn cell(theme: &Theme, cell: Option<Cell>, (column, root): (&Column, bool)) -> (String, Role) {
    let grave = |role: Role| if column.p2p { Role::Dim } else { role };
    let lags = if root { Role::Act } else { Role::Attention };
    match cell {
        None => (String::new(), Role::Dim),
        Some(Cell::Absent) => ("silent".to_owned(), grave(lags)),
        Some(Cell::Behind(by)) => (format!("-{by}"), grave(lags)),
        Some(Cell::Gpu(by)) => (format!("GPU -{by}"), grave(lags)),
        Some(Cell::Waits(_)) => ("waits".to_owned(), grave(Role::Text)),
        Some(Cell::Level) => (theme.pick("·", ".").to_owned(), Role::Dim),
    }
}

/// The line in words, by the communicator in which it stands worst.
pub(crate) fn sentence(line: &Line, columns: &[Column]) -> String {
    let who = match (line.ranks.as_slice(), line.nodes.as_slice()) {
        ([rank], [node]) => {
            format!("Rank {rank} on {node}{}", line.gpu.map_or(String::new(), |gpu| format!(" (GPU {gpu})")))
        }
        ([rank], _) => format!("Rank {rank}"),
        (ranks, _) => format!("{} ranks", thousands(ranks.len())),
    };
    let root = match line.root {
        Some(Behind::Absent) => " told nothing, and the others wait for it",
        Some(Behind::NotLaunched) => " is behind and waits for nobody: the others wait for it",
        Some(Behind::NotStarted) => " enqueued what the others did, and its GPU did not run it",
        None => "",
    };
    let worst = line.cells.iter().filter(|(at, _)| !columns[*at].p2p).min_by_key(|(_, cell)| *cell);
    let where_ = worst.map_or_else(String::new, |(at, cell)| {
        let (name, most) = (&columns[*at].name, columns[*at].most);
        match cell {
            Cell::Absent => format!("nothing from it in {name}, where others are at {most}"),
            Cell::Behind(by) => format!("{} behind in {name}, others enqueued {most}", operations(*by)),
            Cell::Gpu(by) => format!("{} not done by its GPU in {name} that others' did", operations(*by)),
            Cell::Waits(_) => format!("waits in {name} at {most}"),
            Cell::Level => "level with the others wherever anything is told".to_owned(),
        }
    });
    if root.is_empty() { format!("{who}: {where_}.") } else { format!("{who}{root}; {where_}.") }
}

fn operations(n: u64) -> String {
    format!("{n} {}", if n == 1 { "operation" } else { "operations" })
}
