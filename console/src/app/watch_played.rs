//! A recording played through the whole application, with made-up rows and a made-up user.

use std::io::{self, Write};
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use clap::Parser;
use muster_fleet::Settings;
use muster_import::telemetry::Recording;
use muster_playbook::find_builtin;
use muster_store::Db;
use muster_tui::snapshot::Watching;
use muster_tui::{Event, Input, Screen, Snapshot, rehearse};

use super::App;
use crate::config::{Raw, resolve};
use crate::options::Common;
use crate::session::Job;
use crate::work::ticks::{Player, Source};

/// How long anything may take before the test gives up.
const PATIENCE: Duration = Duration::from_secs(60);
/// One machine is at 60 % of its power from this second on.
const HURT: u32 = 400;
const SECONDS: u32 = 900;
const NODES: [&str; 6] = ["n0", "n1", "n2", "n3", "n4", "n5"];

/// A command line without words.
#[derive(Parser)]
struct Line {
    #[command(flatten)]
    common: Common,
}

fn recording() -> Recording {
    let mut recording = Recording::default();
    for second in 0..SECONDS {
        for (at, node) in NODES.iter().enumerate() {
            let hurt = if at == 3 && second >= HURT { 0.6 } else { 1.0 };
            let noise = ((second * 7 + 3 * at as u32) % 11) as f32 / 10.0;
            let at_s = 1_760_000_000.0 + f64::from(second);
            recording.push(node, "gpu_power_w", at_s, (500.0 + noise) * hurt).unwrap();
            recording.push(node, "sm_active", at_s, (0.8 + noise / 100.0) * hurt).unwrap();
        }
    }
    recording.sort();
    recording
}

/// What the user sees on the way, and waits for.
type Shown = Arc<Mutex<Option<Arc<Snapshot>>>>;

/// What must be on the screen before a key is pressed.
type Wanted = fn(&Watching) -> bool;

/// Presses one key after the other, each when what it waits for is on the screen.
struct User {
    shown: Shown,
    keys: Vec<(char, Wanted)>,
    begun: Instant,
}

impl Input for User {
    fn wait(&mut self, _most: Duration) -> io::Result<()> {
        std::thread::sleep(Duration::from_millis(5));
        if self.begun.elapsed() > PATIENCE {
            return Err(io::Error::other("what the user waits for never came"));
        }
        Ok(())
    }

    fn next(&mut self) -> io::Result<Option<Event>> {
        let snapshot = self.shown.lock().unwrap().clone();
        let watch = snapshot.and_then(|snapshot| snapshot.watch.data.clone());
        let is_due = |wanted: &Wanted| watch.as_deref().is_some_and(wanted);
        if !self.keys.first().is_some_and(|(_, wanted)| is_due(wanted)) {
            return Ok(None);
        }
        Ok(Some(Event::from(self.keys.remove(0).0)))
    }
}

/// A terminal that keeps what was written to it.
#[derive(Clone, Default)]
struct Paper(Arc<Mutex<Vec<u8>>>);

impl Write for Paper {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn a_played_recording_ends_with_the_alert_on_the_screen_and_keys_work_meanwhile() {
    let dir = tempfile::tempdir().unwrap();
    let raw = Raw { db: Some(dir.path().to_owned()), ..Raw::default() };
    let config = resolve(raw, Raw::default(), Path::new("none.toml")).unwrap();
    let names: Vec<String> = NODES.iter().map(|name| (*name).to_owned()).collect();
    let job = Job::new(find_builtin("cbd-light").unwrap(), Vec::new(), Arc::new(Settings::default()));
    let store = Db::open(dir.path(), &muster_store::Options::default()).unwrap();
    let metrics = ["gpu_power_w".to_owned(), "sm_active".to_owned()];
    let player = Player::new(("made.csv".to_owned(), recording()), 60.0, (&names, &metrics), &[]);
    let (shown, paper) = (Shown::default(), Paper::default());
    let (seen, out) = (shown.clone(), paper.clone());
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    let ended = runtime.block_on(async {
        let mut app = App::on(names, job, Ok(store), (config, &Line::parse_from(["muster"]).common), "made");
        app.watch(Source::Recording(Box::new(player)), muster_analysis::watch::Settings::default());
        let options = muster_tui::Options { ascii: true, color: false, first: Screen::Watch };
        app.serve(None, move |newest, wish| {
            let any: Wanted = |watch| !watch.frames.is_empty();
            let alert: Wanted = |watch| !watch.alerts.is_empty();
            let over: Wanted = |watch| watch.over;
            // On by half a screen until the fault is told, then back to see it, to the node, to the
            // question about the check, and away.
            let mut keys = vec![('>', any); 8];
            keys.extend([
                ('n', alert),
                ('>', alert),
                ('>', alert),
                ('>', alert),
                ('n', over),
                ('h', over),
                ('\r', over),
            ]);
            keys.extend([('\x1b', over), ('f', over), ('L', over), ('n', over), ('q', over)]);
            let mut user = User { shown: seen.clone(), keys, begun: Instant::now() };
            let newest = || {
                let newest = newest()?;
                *seen.lock().unwrap() = Some(newest.clone());
                Some(newest)
            };
            rehearse((out, 120, 40), options, &mut user, (&newest, wish))
        })
        .await
    });
    ended.map_err(|problem| problem.error).unwrap();
    let last = shown.lock().unwrap().clone().unwrap();
    let watch = last.watch.data.as_deref().unwrap();
    assert!(watch.over && watch.alerts.len() == 1, "{:?}", watch.alerts);
    assert_eq!((watch.alerts[0].node.as_str(), watch.alerts[0].until_s), ("n3", None));
    assert!((f64::from(HURT)..f64::from(SECONDS)).contains(&(watch.alerts[0].alerted_s - 1_760_000_000.0)));
    assert!(watch.frames.len() >= 88, "all of it can be gone back through: {}", watch.frames.len());
    let written = String::from_utf8(paper.0.lock().unwrap().clone()).unwrap();
    for word in ["Metrics", "Alerts", "OVER"] {
        assert!(written.contains(word), "{word}");
    }
}
