//! How long one frame of 10,000 nodes takes at 120x40, and how long one key press; the Network screen has 3,000 x 3,000
//! pairs. The first frame after new pairs gathers all of them into blocks: that is `new snapshot`.

#[path = "../tests/console/synthetic.rs"]
#[expect(dead_code, reason = "one of its fleets is enough here")]
mod synthetic;

use std::time::{Duration, Instant};

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use muster_tui::{Event, Screen, Snapshot, Theme, Ui, draw, update};
use ratatui::Terminal;
use ratatui::backend::TestBackend;
use synthetic::Fleet;

/// Fewer where the compiler does not optimise.
const ROUNDS: u32 = if cfg!(debug_assertions) { 10 } else { 500 };

fn main() {
    let mut snapshot = synthetic::snapshot(Fleet { nodes: 10_000, slow: 12, lost_each: 50, running: true });
    let mut terminal = Terminal::new(TestBackend::new(120, 40)).expect("a buffer in memory");
    for (digit, screen) in ('1'..).zip(Screen::ALL) {
        let mut ui = Ui::new(Theme::new(true, false), 120, 40);
        let order = timed(1, || {
            update(&mut ui, Event::Snapshot, &snapshot);
        });
        press(&mut ui, KeyCode::Char(digit), &snapshot);
        let keys = timed(ROUNDS, || press(&mut ui, KeyCode::Char('j'), &snapshot));
        let frame = timed(ROUNDS, || {
            terminal.draw(|f| draw(&ui, &snapshot, f)).expect("a buffer in memory");
        });
        snapshot.generation += 1;
        println!("{:<11} 10000 nodes 120x40: frame {frame:?}, key {keys:?}, new snapshot {order:?}", screen.title());
    }
    for (width, height) in [(120, 40), (200, 60)] {
        zoomed(&mut Terminal::new(TestBackend::new(width, height)).expect("a buffer in memory"), &snapshot);
    }
}

/// Every zoom of the matrix, by the worst pair of a block and by the middle one.
fn zoomed(terminal: &mut Terminal<TestBackend>, snapshot: &Snapshot) {
    let size = terminal.size().expect("a buffer in memory");
    let mut ui = Ui::new(Theme::new(true, false), size.width, size.height);
    let place = Screen::ALL.iter().position(|s| *s == Screen::Network).unwrap_or(0);
    update(&mut ui, Event::Snapshot, snapshot);
    press(&mut ui, KeyCode::Char(char::from(b'1' + place as u8)), snapshot);
    for how in ["median", "worst"] {
        // `b` changes how blocks are gathered, so all pairs are gathered anew.
        let gather = timed(1, || press(&mut ui, KeyCode::Char('b'), snapshot));
        let frame = timed(ROUNDS, || {
            terminal.draw(|f| draw(&ui, snapshot, f)).expect("a buffer in memory");
        });
        println!("Network     3000 x 3000 on {size}, {how} of a block: gather {gather:?}, frame {frame:?}");
    }
    for zoom in 1..8 {
        let key = timed(1, || press(&mut ui, KeyCode::Char('+'), snapshot));
        println!("Network     3000 x 3000 on {size}, zoom {zoom}: key {key:?}");
    }
}

fn press(ui: &mut Ui, code: KeyCode, snapshot: &Snapshot) {
    update(ui, Event::Key(KeyEvent::new(code, KeyModifiers::NONE)), snapshot);
}

/// Mean time of `rounds` calls.
fn timed(rounds: u32, mut call: impl FnMut()) -> Duration {
    let start = Instant::now();
    for _ in 0..rounds {
        call();
    }
    start.elapsed() / rounds
}
