//! The frame: status, tabs, body, message, hints.

use muster_wire::Level;
use ratatui::Frame;
use ratatui::buffer::Buffer;
use ratatui::layout::{Rect, Size};
use ratatui::text::Span;

use crate::freeze;
use crate::judgement::word;
use crate::keymap::{Action, Binding, DIGITS, REPLAY, bindings};
use crate::popups::{self, Popup};
use crate::screens::Screen;
use crate::snapshot::{Load, Mode, Replay, Snapshot};
use crate::stale;
use crate::text::{age, counted, cut, whole_age, width};
use crate::theme::{Role, Theme};
use crate::ui::Ui;
use crate::widgets::{put, put_right, put_spans};

/// How long a message stays under the body; errors stay four times as long.
const MESSAGE_MS: u64 = 15_000;
/// Hints shown at most.
const HINTS: usize = 7;

/// Where the screens are named.
pub(crate) const TABS_ROW: u16 = 1;

/// Where the screen's own part is, of a terminal of this size.
pub(crate) fn body(size: Size) -> Rect {
    Rect { x: 0, y: TABS_ROW + 1, width: size.width, height: size.height.saturating_sub(4) }
}

/// Draws `snapshot` as `ui` wants it seen. [`crate::update`] must have seen the snapshot and the frame's size before.
pub fn draw(ui: &Ui, snapshot: &Snapshot, frame: &mut Frame<'_>) {
    let seen = freeze::seen(ui.frozen.as_ref(), snapshot);
    let snapshot = seen.as_ref();
    let area = frame.area();
    let buffer = frame.buffer_mut();
    if area.width < 60 || area.height < 16 {
        let text = format!("need 60x16, have {}x{}; q quits", area.width, area.height);
        put(buffer, (0, 0), area.width, &text, ui.theme.style(Role::Text));
        return;
    }
    let body = body(area.as_size());
    status(ui, snapshot, buffer, Rect { height: 1, ..area });
    let says_filter = tabs(ui, buffer, Rect { y: TABS_ROW, height: 1, ..area });
    (ui.screen.view().draw)(ui, snapshot, buffer, body);
    popups::draw(ui, snapshot, buffer, body);
    let words = Rect { y: area.height - 2, height: 1, ..area };
    let words = if says_filter { words } else { filter(ui, buffer, words) };
    message(ui, snapshot, buffer, words);
    hints(ui, snapshot, buffer, Rect { y: area.height - 1, height: 1, ..area });
}

fn status(ui: &Ui, snapshot: &Snapshot, buffer: &mut Buffer, row: Rect) {
    let [left, right] = ends(ui, snapshot, row.width.into());
    let right_width = u16::try_from(cells(&right)).unwrap_or(row.width).min(row.width);
    put_spans(buffer, (row.x, row.y), row.width.saturating_sub(right_width + 1), &left);
    put_spans(buffer, (row.right() - right_width, row.y), right_width, &right);
}

/// Cells that `spans` take.
fn cells(spans: &[Span<'_>]) -> usize {
    spans.iter().map(Span::width).sum()
}

/// How much is said at the left end of the status line.
#[derive(Clone, Copy, Debug)]
struct Brevity {
    /// Cells of the title at most.
    title: usize,
    /// Whether all nodes are counted, also where those in each state are.
    total: bool,
    /// Whether a state has its word behind the glyph.
    words: bool,
}

/// From all there is to what no count can be left out of.
const BREVITIES: [Brevity; 4] = [
    Brevity { title: 24, total: true, words: true },
    Brevity { title: 12, total: true, words: true },
    Brevity { title: 12, total: false, words: true },
    Brevity { title: 6, total: false, words: false },
];

/// Both ends of the status line in `room` cells. The counts of nodes are never cut: the mode, the title, and last the words of the
/// states get shorter instead.
fn ends(ui: &Ui, snapshot: &Snapshot, room: usize) -> [Vec<Span<'static>>; 2] {
    let both = |brevity: Brevity| {
        let left = left(ui, snapshot, brevity);
        let right = fitting(ui, snapshot, room.saturating_sub(cells(&left) + 2));
        [left, right]
    };
    let [.., shortest] = BREVITIES;
    let mut all = BREVITIES.into_iter().map(both);
    all.find(|[left, right]| cells(left) + 2 + cells(right) <= room).unwrap_or_else(|| both(shortest))
}

/// What is shown, how many nodes it has in which state, and how many are marked.
fn left(ui: &Ui, snapshot: &Snapshot, Brevity { title, total, words }: Brevity) -> Vec<Span<'static>> {
    let theme = &ui.theme;
    let counts = counts(theme, snapshot, words);
    let title = cut(&snapshot.title, title, theme.is_ascii());
    let mut spans = vec![Span::styled(format!(" {title}"), theme.style(Role::Head))];
    if total || counts.is_empty() {
        spans.push(Span::raw(format!("  {}", counted(nodes(snapshot), "node", "nodes"))));
    }
    spans.extend(counts);
    if !ui.marks.is_empty() {
        spans.push(Span::styled(format!("  {} marked", ui.marks.len()), theme.style(Role::Key)));
    }
    spans
}

/// How many nodes are shown. A matrix from a file and a case have nodes, but no rows of them.
fn nodes(snapshot: &Snapshot) -> usize {
    let ends = snapshot.network.data.as_ref().map_or(0, |network| network.endpoints.len());
    let case = || snapshot.triage.data.as_ref().map_or(0, |triaged| triaged.overview.nodes.len());
    match (snapshot.nodes.len(), ends) {
        (0, 0) => case(),
        (0, ends) => ends,
        (rows, _) => rows,
    }
}

/// How much is said of the run that goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Detail {
    Share,
    ShareAndLeft,
    Playbook,
}

/// The mode in `room` cells. Where not everything fits, counts are worth more than the age of the last frame, as the rows have ages of
/// their own, and the time left more than either that or the playbook's name.
fn fitting(ui: &Ui, snapshot: &Snapshot, room: usize) -> Vec<Span<'static>> {
    let fits = |spans: &[Span<'_>]| cells(spans) <= room;
    let all = [
        (Detail::Playbook, true),
        (Detail::ShareAndLeft, true),
        (Detail::Playbook, false),
        (Detail::ShareAndLeft, false),
        (Detail::Share, true),
        (Detail::Share, false),
    ];
    let mut right = Vec::new();
    for what in all {
        right = mode(ui, snapshot, what);
        if fits(&right) {
            break;
        }
    }
    right
}

/// Number of nodes in each state, with the state's word or its glyph alone; a stale pass counts as stale.
fn counts(theme: &Theme, snapshot: &Snapshot, words: bool) -> Vec<Span<'static>> {
    let with = |word: &str| if words { format!(" {word}") } else { String::new() };
    let hidden = |state| if stale::hides(state) { snapshot.stale.get(state) } else { 0 };
    let (mut spans, mut old) = (Vec::new(), 0);
    for (state, all) in snapshot.counts.present() {
        let n = all.saturating_sub(hidden(state));
        old += all - n;
        if n > 0 {
            let word = snapshot.awaited(state).unwrap_or_else(|| word(state));
            let text = format!("{} {n}{}", theme.glyph(state), with(word));
            spans.extend([Span::raw("  "), Span::styled(text, theme.style(Theme::state_role(state)))]);
        }
    }
    if old > 0 {
        let text = format!("  {} {old}{}", stale::glyph(theme), with(stale::WORD));
        spans.push(Span::styled(text, theme.style(Role::Dim)));
    }
    spans
}

/// LIVE, FROZEN, REPLAY or IDLE, what runs, and how old the picture is.
fn mode(ui: &Ui, snapshot: &Snapshot, (detail, with_age): (Detail, bool)) -> Vec<Span<'static>> {
    let theme = &ui.theme;
    let now = ui.now_ms(snapshot);
    let mut spans = Vec::new();
    if let Some(run) = Ui::going(snapshot) {
        let progress = &snapshot.progress;
        let share = (progress.done * 100).checked_div(progress.total).unwrap_or(0);
        let left = progress.left.map_or(String::new(), |left| format!(", {}", left.words()));
        let text = match detail {
            Detail::Playbook => format!("{} {share} %{left}  ", run.playbook),
            Detail::ShareAndLeft => format!("{share} %{left}  "),
            Detail::Share => format!("{share} %  "),
        };
        spans.push(Span::raw(text));
    }
    // A screen that cannot be held, as the log, goes on.
    let can_be_held = || ui.screen.view().keys.iter().any(|b| b.action == Action::Freeze);
    if let Some(frozen) = ui.frozen.as_ref().filter(|_| can_be_held()) {
        let since = whole_age(now.saturating_sub(frozen.since_ms));
        spans.push(Span::styled(format!("FROZEN for {since} "), theme.style(Role::Mode)));
        return spans;
    }
    let frame_age = snapshot.last_frame_ms.map(|at| now.saturating_sub(at));
    match snapshot.mode {
        Mode::Live { .. } => {
            let stale = frame_age.is_none_or(|a| a > snapshot.stale_after_ms);
            spans.push(Span::styled("LIVE", theme.style(Role::Head)));
            let text = frame_age.map_or("  no frame yet ".to_owned(), |a| format!("  frame {} ago ", age(a)));
            let text = if with_age { text } else { " ".to_owned() };
            spans.push(Span::styled(text, theme.style(if stale { Role::Attention } else { Role::Dim })));
        }
        Mode::Replay(replay) => spans.push(Span::styled(played(&replay, detail), theme.style(Role::Mode))),
        Mode::Idle => {
            let run = snapshot.alone.as_ref().filter(|_| ui.size.width >= 100);
            let text = match (run, &snapshot.alone) {
                _ if snapshot.reading.is_some() => snapshot.reading.iter().map(|r| r.words() + " ").collect(),
                (Some(run), _) => format!("RUN {} ", cut(run, 40, theme.is_ascii())),
                (None, Some(_)) => "ONE RUN ".to_owned(),
                (None, None) => "IDLE ".to_owned(),
            };
            spans.push(Span::styled(text, theme.style(Role::Mode)));
        }
    }
    spans
}

/// The moment of a replay, how far and how fast it is, and whether it stands.
fn played(replay: &Replay, detail: Detail) -> String {
    if replay.is_moment() {
        return "REPLAY  one moment ".to_owned();
    }
    let [day, time] = replay.moment();
    let when = match detail {
        Detail::Playbook => format!("{day} {time} UTC, "),
        Detail::ShareAndLeft => format!("{time}, "),
        Detail::Share => String::new(),
    };
    let word = replay.word().map_or(String::new(), |word| format!(", {word}"));
    format!("REPLAY  {when}{}, {}{word} ", replay.far(), replay.fast())
}

/// Number and name of every screen as they stand in the row of tabs.
fn titles(ui: &Ui, room: u16) -> [(Screen, String, String); Screen::ALL.len()] {
    let long: usize = Screen::ALL.iter().map(|s| s.view().title.len() + 4).sum();
    let is_long = long < room.into();
    // Short names stand closer, but for the one that is shown.
    let short: usize = 1 + Screen::ALL.iter().map(|s| s.view().short.len() + 3).sum::<usize>();
    // The screen that is shown has its whole name where the others leave room for it.
    let shown = ui.screen.view();
    let fits = short + shown.title.len() - shown.short.len() <= room.into();
    let mut digits = DIGITS.into_iter();
    Screen::ALL.map(|screen| {
        let here = screen == ui.screen;
        let name = if is_long || (here && fits) { screen.view().title } else { screen.view().short };
        let title = match here {
            true if ui.theme.is_ascii() => format!("[{name}]"),
            false if !is_long => format!(" {name}"),
            _ => format!(" {name} "),
        };
        (screen, format!(" {}", digits.next().unwrap_or_default()), title)
    })
}

/// The screen whose tab is in column `x`.
pub(crate) fn tab_at(ui: &Ui, x: u16) -> Option<Screen> {
    let mut end = 0;
    let mut titles = titles(ui, ui.size.width).into_iter();
    titles.find_map(|(screen, number, title)| {
        end += width(&number) + width(&title);
        (usize::from(x) < end).then_some(screen)
    })
}

/// Draws the names of the screens, and the filter behind them where there is room; gives whether nothing else has to say the filter.
fn tabs(ui: &Ui, buffer: &mut Buffer, row: Rect) -> bool {
    let theme = &ui.theme;
    let mut spans = Vec::new();
    for (screen, number, title) in titles(ui, row.width) {
        let role = if screen == ui.screen { Role::Selected } else { Role::Text };
        spans.extend([Span::styled(number, theme.style(Role::Key)), Span::styled(title, theme.style(role))]);
    }
    let used = put_spans(buffer, (row.x, row.y), row.width, &spans);
    // The line in which it is typed shows it, too.
    if ui.filter.is_empty() || matches!(ui.popups.last(), Some(Popup::Filter(_))) {
        return true;
    }
    let text = format!("filter: {} ", ui.filter.text());
    let room = row.width.saturating_sub(used + 2);
    let fits = width(&text) <= room.into();
    if fits {
        put_right(buffer, (row.right() - room, row.y), room, &text, theme.style(Role::Key));
    }
    // The list of nodes has it in its title.
    fits || ui.screen == Screen::Fleet
}

/// Writes the filter at the end of `row`, into half of it at most; gives what is left of the row.
fn filter(ui: &Ui, buffer: &mut Buffer, row: Rect) -> Rect {
    let text = cut(&format!("/{} ", ui.filter.text()), usize::from(row.width / 2), ui.theme.is_ascii());
    put_right(buffer, (row.x, row.y), row.width, &text, ui.theme.style(Role::Key));
    let used = u16::try_from(width(&text)).unwrap_or(row.width);
    Rect { width: row.width.saturating_sub(used), ..row }
}

/// What is typed, else what we say, else what the engine says while it is fresh.
fn message(ui: &Ui, snapshot: &Snapshot, buffer: &mut Buffer, row: Rect) {
    let theme = &ui.theme;
    let (text, role) = if let Some(Popup::Filter(filter)) = ui.popups.last() {
        (format!("/{}{}  enter keeps, esc undoes", filter.input.text(), theme.pick("▏", "_")), Role::Key)
    } else if let Some((notice, _)) = &ui.notice {
        (notice.clone(), Role::Text)
    } else if let Load::Failed { what, why, .. } = &snapshot.load
        && !snapshot.nodes.is_empty()
    {
        (format!("{what} failed: {why}; what is shown is older"), Role::Act)
    } else {
        Some(fresh(ui, snapshot))
            .filter(|(text, _)| !text.is_empty())
            .unwrap_or_else(|| (ui.screen.view().message)(ui, snapshot))
    };
    let text = cut(&text, usize::from(row.width.saturating_sub(2)), theme.is_ascii());
    put(buffer, (row.x + 1, row.y), row.width.saturating_sub(2), &text, theme.style(role));
}

fn fresh(ui: &Ui, snapshot: &Snapshot) -> (String, Role) {
    let Some(last) = snapshot.messages.last() else { return (String::new(), Role::Text) };
    let (stays, role) = match last.level {
        Level::Error => (4 * MESSAGE_MS, Role::Act),
        Level::Warn => (MESSAGE_MS, Role::Attention),
        Level::Info | Level::Debug => (MESSAGE_MS, Role::Text),
    };
    let text = if ui.now_ms(snapshot).saturating_sub(last.at_ms) < stays { last.text.clone() } else { String::new() };
    (text, role)
}

fn hints(ui: &Ui, snapshot: &Snapshot, buffer: &mut Buffer, row: Rect) {
    let replay = REPLAY.iter().copied().filter(|_| snapshot.plays());
    let mut shown: Vec<Binding> = replay.chain(bindings(ui.screen)).filter(|b| !b.hint.is_empty()).collect();
    shown.retain(|b| b.action != Action::Cancel || Ui::busy(snapshot).is_some());
    shown.sort_by_key(|b| b.rank);
    shown.truncate(HINTS);
    // Help has the best rank and stays, but stands at the end, where eyes look for it.
    while shown.len() > 1 && total(&shown) > usize::from(row.width.saturating_sub(2)) {
        shown.pop();
    }
    shown.rotate_left(1);
    let mut spans = Vec::new();
    for binding in shown {
        let off = !ui.works(binding.action, snapshot);
        let (key, word) = if off { (Role::Dim, Role::Dim) } else { (Role::Key, Role::Text) };
        spans.push(Span::styled(binding.shown, ui.theme.style(key)));
        spans.push(Span::styled(format!(" {}  ", binding.hint), ui.theme.style(word)));
    }
    put_spans(buffer, (row.x + 1, row.y), row.width.saturating_sub(1), &spans);
}

fn total(bindings: &[Binding]) -> usize {
    bindings.iter().map(|b| width(b.shown) + width(b.hint) + 3).sum()
}

impl Ui {
    /// Whether `action` would do anything now; what would not is dim in the hints.
    fn works(&self, action: Action, snapshot: &Snapshot) -> bool {
        match action {
            Action::Open
            | Action::Mark
            | Action::MarkAll
            | Action::Sort
            | Action::NextNode
            | Action::Changed
            | Action::Map => (self.screen.view().ready)(snapshot),
            Action::Export => self.screen.view().exports,
            Action::Run => !snapshot.playbooks.is_empty() && Self::going(snapshot).is_none(),
            _ => true,
        }
    }
}
