//! What the nodes of a watch told, kept in the database.

use std::time::Duration;

use muster_fleet::Node;
use muster_store::telemetry::{Recorder, thin_out};
use muster_watch::Watch;
use muster_wire::CLOCK_ERROR;

use super::past;
use crate::clock::now_ms;
use crate::config::Config;
use crate::exit::{Code, IO, Problem};
use crate::{out, service, session};

/// Most that all recordings together take, and how long they stay.
const MOST: u64 = 10 << 30;
/// Seconds from one note of a clock's error to the next.
const CLOCKS_S: f64 = 60.0;
const AGE: Duration = Duration::from_secs(30 * 24 * 3600);

/// A recording that goes on while it can.
pub(super) struct Tape {
    recorder: Recorder,
    /// When the error of each node's clock was last kept, epoch seconds.
    clocks: Vec<f64>,
    /// It is full, or could not be written: that was said.
    stopped: bool,
}

impl Tape {
    /// Makes room, and begins.
    pub(super) fn begin(nodes: &[Node], config: &Config) -> Result<Self, Problem> {
        let dir = &config.db.value;
        for id in thin_out(dir, MOST / 2, AGE).code(IO)? {
            out::note(format_args!("recording {id} was removed to make room"));
        }
        let names = nodes.iter().map(|node| node.name.clone()).collect();
        let recorder = Recorder::create(dir, &session::named(now_ms(), "watch"), names, MOST / 2).code(IO)?;
        out::note(format_args!("recording to {}", recorder.path().display()));
        Ok(Self { recorder, clocks: vec![f64::NEG_INFINITY; nodes.len()], stopped: false })
    }

    /// Takes one look at a node, whose times may be off by `clock_error_s`. What cannot be kept is said once, and the watch goes on without.
    pub(super) fn take(&mut self, node: usize, at_s: f64, values: &[(&'static str, f64)], clock_error_s: Option<f64>) {
        let kept = self.clocks.get_mut(node).filter(|kept| at_s - **kept >= CLOCKS_S);
        if let Some((kept, error_s)) = kept.zip(clock_error_s) {
            *kept = at_s;
            self.push(node, at_s, &[(CLOCK_ERROR, error_s)]);
        }
        self.push(node, at_s, values);
    }

    fn push(&mut self, node: usize, at_s: f64, values: &[(&'static str, f64)]) {
        if self.stopped {
            return;
        }
        let node = u32::try_from(node).unwrap_or(u32::MAX);
        // A chunk in half a minute waits for the disk.
        let taken = tokio::task::block_in_place(|| self.recorder.push(node, at_s, values));
        match taken {
            Ok(true) => return,
            Ok(false) => out::note("the recording is full and ends here; the watch goes on"),
            Err(why) => out::note(format_args!("{why}; the recording ends here, the watch goes on")),
        }
        self.stopped = true;
    }

    /// Writes the rest, and keeps what was learned of the nodes beside it.
    pub(super) fn end(mut self, watch: &Watch) {
        past::keep(self.recorder.path(), watch);
        if let Err(why) = self.recorder.commit() {
            out::note(why);
        }
        let path = service::argument(&self.recorder.path().display().to_string());
        let bytes = self.recorder.bytes();
        out::note(format_args!(
            "recorded {} kB; go through it again with `muster watch --from {path}`",
            bytes.div_ceil(1_000)
        ));
    }
}
