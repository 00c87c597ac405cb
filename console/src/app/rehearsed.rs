//! The whole application with a made-up user, for tests: each key is pressed when what it waits for is on the screen.

use std::io::{self, Write};
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use clap::Parser;
use muster_fleet::Settings;
use muster_playbook::find_builtin;
use muster_store::Db;
use muster_tui::{Event, Input, Screen, Snapshot, rehearse};

use super::App;
use crate::config::{Raw, resolve};
use crate::options::Common;
use crate::session::Job;

/// How long anything may take before the test gives up.
const PATIENCE: Duration = Duration::from_secs(60);

/// What must be on the screen before a key is pressed.
pub(super) type Wanted = fn(&Snapshot) -> bool;

type Shown = Arc<Mutex<Option<Arc<Snapshot>>>>;

/// A terminal that keeps what was written to it.
#[derive(Clone, Default)]
pub(super) struct Paper(Arc<Mutex<Vec<u8>>>);

impl Paper {
    /// All that was written.
    pub(super) fn text(&self) -> String {
        String::from_utf8(self.0.lock().unwrap().clone()).unwrap()
    }
}

impl Write for Paper {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// A command line without words of a subcommand.
#[derive(Parser)]
struct Line {
    #[command(flatten)]
    common: Common,
}

/// Presses one key after the other.
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
        let is_due = snapshot.as_deref().zip(self.keys.first()).is_some_and(|(shown, (_, wanted))| wanted(shown));
        Ok(is_due.then(|| Event::from(self.keys.remove(0).0)))
    }
}

/// The application on the database `db`, with nodes called `names` and the global options `words`; `begin` does the first thing on it.
/// Gives what was on the screen at the end, all of which was written to `out`.
pub(super) fn rehearsed(
    (names, db, words): (&[&str], &Path, &[&str]),
    begin: impl FnOnce(&mut App),
    (first, out): (Screen, impl Write + Send + 'static),
    keys: Vec<(char, Wanted)>,
) -> Arc<Snapshot> {
    let raw = Raw { db: Some(db.to_owned()), ..Raw::default() };
    let config = resolve(raw, Raw::default(), Path::new("none.toml")).unwrap();
    let job = Job::new(find_builtin("cbd-light").unwrap(), Vec::new(), Arc::new(Settings::default()));
    let store = Db::open(db, &muster_store::Options::default()).unwrap();
    let names = names.iter().map(|name| (*name).to_owned()).collect();
    let shown = Shown::default();
    let seen = shown.clone();
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    let ended = runtime.block_on(async {
        let common = Line::parse_from(["muster"].iter().chain(words)).common;
        let mut app = App::on(names, job, Ok(store), (config, &common), "made");
        begin(&mut app);
        let options = muster_tui::Options { ascii: true, color: false, first };
        app.serve(None, move |newest, wish| {
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
    let last = shown.lock().unwrap().clone();
    last.unwrap()
}
