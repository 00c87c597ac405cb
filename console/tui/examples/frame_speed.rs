//! How long one frame of 10,000 nodes takes at 120x40, and how long one key press.

#[path = "../tests/console/synthetic.rs"]
#[expect(dead_code, reason = "one of its fleets is enough here")]
mod synthetic;

use std::time::{Duration, Instant};

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use muster_tui::{Event, Theme, Ui, draw, update};
use ratatui::Terminal;
use ratatui::backend::TestBackend;
use synthetic::Fleet;

const ROUNDS: u32 = 500;

fn main() {
    let mut snapshot = synthetic::snapshot(Fleet { nodes: 10_000, slow: 12, lost_each: 50, running: true });
    let mut terminal = Terminal::new(TestBackend::new(120, 40)).expect("a buffer in memory");
    for (digit, name) in [('1', "Fleet"), ('2', "Node"), ('3', "Benchmarks"), ('4', "Playbooks")] {
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
        println!("{name:<11} 10000 nodes 120x40: frame {frame:?}, key {keys:?}, new snapshot {order:?}");
    }
}

fn press(ui: &mut Ui, code: KeyCode, snapshot: &muster_tui::Snapshot) {
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
