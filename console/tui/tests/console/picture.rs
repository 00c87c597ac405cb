//! A frame as text: its glyphs and a map of its styles, compared with a stored one.

use std::fmt::Write as _;
use std::path::Path;

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use muster_tui::{Event, Screen, Snapshot, Theme, Ui, draw, update};
use ratatui::Terminal;
use ratatui::backend::TestBackend;
use ratatui::buffer::Buffer;
use ratatui::style::{Color, Modifier};

/// Sizes at which every picture is taken.
pub(crate) const SIZES: [(u16, u16); 3] = [(80, 24), (120, 40), (200, 60)];

/// A console that has seen `snapshot`.
pub(crate) fn console(snapshot: &Snapshot, theme: Theme, (width, height): (u16, u16)) -> Ui {
    let mut ui = Ui::new(theme, width, height);
    update(&mut ui, Event::Snapshot, snapshot);
    ui
}

/// The key that shows `screen`.
pub(crate) fn digit(screen: Screen) -> KeyCode {
    let place = Screen::ALL.iter().position(|s| *s == screen).expect("every screen has a place");
    KeyCode::Char(match place {
        0..10 => char::from_digit((place as u32 + 1) % 10, 10).expect("a digit"),
        _ => 'T',
    })
}

/// Presses `code`.
pub(crate) fn press(ui: &mut Ui, code: KeyCode, snapshot: &Snapshot) {
    update(ui, Event::Key(KeyEvent::new(code, KeyModifiers::NONE)), snapshot);
}

/// Types `keys`, of which a line break is Enter.
pub(crate) fn typed(ui: &mut Ui, keys: &str, snapshot: &Snapshot) {
    for c in keys.chars() {
        let code = match c {
            '\n' => KeyCode::Enter,
            '\t' => KeyCode::Tab,
            c => KeyCode::Char(c),
        };
        press(ui, code, snapshot);
    }
}

/// The cells that `draw` fills.
pub(crate) fn frame(ui: &Ui, snapshot: &Snapshot, (width, height): (u16, u16)) -> Buffer {
    let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
    terminal.draw(|frame| draw(ui, snapshot, frame)).unwrap();
    terminal.backend().buffer().clone()
}

/// The glyphs of a frame, a line each.
pub(crate) fn glyphs(buffer: &Buffer) -> String {
    let mut text = String::new();
    for y in 0..buffer.area.height {
        let line: String = (0..buffer.area.width).map(|x| buffer[(x, y)].symbol()).collect();
        let _ = writeln!(text, "{}", line.trim_end());
    }
    text
}

/// The glyphs, then a letter per cell for its style, then what the letters mean.
pub(crate) fn picture(buffer: &Buffer) -> String {
    let mut styles: Vec<(Color, Color, Modifier)> = vec![(Color::Reset, Color::Reset, Modifier::empty())];
    let mut map = String::new();
    for y in 0..buffer.area.height {
        let line: String = (0..buffer.area.width)
            .map(|x| {
                let cell = &buffer[(x, y)];
                let style = (cell.fg, cell.bg, cell.modifier);
                let at = styles.iter().position(|s| *s == style).unwrap_or_else(|| {
                    styles.push(style);
                    styles.len() - 1
                });
                letter(at)
            })
            .collect();
        let _ = writeln!(map, "{}", line.trim_end_matches('.'));
    }
    let mut legend = String::new();
    for (at, (fg, bg, modifier)) in styles.iter().enumerate() {
        let _ = writeln!(legend, "{} {fg} on {bg} {modifier:?}", letter(at));
    }
    format!("{}--- styles\n{map}--- legend\n{legend}", glyphs(buffer))
}

fn letter(at: usize) -> char {
    ".abcdefghijklmnopqrstuvwxyz".chars().nth(at).unwrap_or('#')
}

/// Compares with `tests/snapshots/NAME.txt`; with `MUSTER_BLESS=1` writes it instead.
pub(crate) fn compare(name: &str, text: &str) {
    muster_golden::hold(&Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/snapshots/{name}.txt")), text);
}
