//! The console on the pairs of a file or a stored run, without a fleet: `muster pairs --show`.

use std::sync::Arc;

use muster_tui::{Intent, Screen};
use muster_wire::Level;
use tokio::sync::mpsc;

use crate::app::screen;
use crate::config::Config;
use crate::exit::{Code, Ended, IO, PASS};
use crate::judge::Pairs;
use crate::options::Common;
use crate::views::Board;

/// Shows `pairs` until the user leaves.
///
/// # Errors
/// When the terminal cannot be used.
pub async fn show(pairs: Pairs, config: &Config, common: &Common) -> Ended {
    let board = Board::new(&pairs.origin, &[], &[]);
    board.pairs(Arc::new(pairs));
    board.publish();
    let (sender, mut intents) = mpsc::unbounded_channel();
    let options = screen::options(config, common.ascii, Screen::Network);
    let drawn = board.clone();
    let screen = std::thread::spawn(move || {
        muster_tui::run(options, &|| Some(drawn.snapshot()), &|intent| drop(sender.send(intent)))
    });
    while let Some(intent) = intents.recv().await {
        match intent {
            Intent::Quit => break,
            Intent::Pair { src, dst } => board.pair(&src, &dst),
            Intent::PairMetric(name) => board.pair_metric(&name),
            Intent::Copy(_) | Intent::Focus { .. } => {}
            _ => board.say(Level::Info, "only pairs are shown here; `muster` alone shows the fleet"),
        }
        board.publish();
    }
    screen.join().map_err(|_| anyhow::anyhow!("the screen ended in a panic"))?.code(IO)?;
    Ok(PASS)
}
