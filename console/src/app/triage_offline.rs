//! The nodes of the open case, tested without the job from the screen.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use muster_fleet::Node;
use muster_triage::offline::{Answer, Offline};
use muster_tui::snapshot::Testing;
use muster_wire::{Level, clean};
use tokio::runtime::Handle;
use tokio_util::sync::CancellationToken;

use super::App;
use super::run::{Going, Returned};
use super::triage::{Desk, Open};
use crate::cases;
use crate::clock::now_ms;
use crate::exit::Problem;
use crate::offline::{Order, diagnosed, folded};
use crate::views::Board;
use crate::work::job;

impl App {
    /// Tests the nodes called `names` as `muster triage offline` does, and adds what they show to the open case.
    pub(super) fn triage_offline(&mut self, names: &[String]) {
        let Some(open) = self.case.open() else { return };
        if self.read_only {
            return self.board.say(Level::Warn, "--read-only forbids testing nodes");
        }
        let nodes = self.reachable(names);
        if nodes.len() < 2 {
            return self.board.say(Level::Warn, "a reference job needs two nodes that can be reached from here");
        }
        let Some(mut store) = self.store.take() else { return self.busy() };
        let list: Vec<&str> = nodes.iter().map(|node| node.name.as_str()).collect();
        let testing =
            Testing { nodes: folded(&list), step: "beginning".to_owned(), began_ms: now_ms(), cancelling: false };
        self.board.testing(Some(testing));
        let (board, config, settings) = (self.board.clone(), self.config.clone(), self.job.settings.clone());
        let (cancel, runtime) = (CancellationToken::new(), Handle::current());
        let token = cancel.clone();
        let home =
            Home { desk: self.case.clone(), board: board.clone(), kept: self.kept_by_asking(&open), before: open };
        let work = tokio::task::spawn_blocking(move || {
            let say = |step: &str| board.testing_step(step.trim());
            let asked = (nodes, settings);
            let order = Order::default();
            let told = runtime.block_on(diagnosed(&order, asked, (&mut store, &config), (&say, &token)));
            Returned { store: Some(store), said: Some(home.take(told, token.is_cancelled())) }
        });
        let board = self.board.clone();
        let ends = Box::pin(async move {
            let returned = work.await.unwrap_or(Returned { store: None, said: None });
            board.testing(None);
            returned
        });
        self.going = Some(Going::test(ends, cancel));
    }

    /// Those of the nodes called `names` that the case was asked of, or else that the inventory knows.
    fn reachable(&self, names: &[String]) -> Vec<Node> {
        let asked = self.asking.iter().flat_map(|asking| &asking.nodes);
        let all: Vec<&Node> = asked.chain(&self.job.nodes).collect();
        names.iter().filter_map(|name| all.iter().find(|node| node.name == *name)).map(|node| (*node).clone()).collect()
    }

    /// Where the first answers of the case's nodes are kept, if `open` is made of such.
    fn kept_by_asking(&self, open: &Open) -> Option<PathBuf> {
        let kept = self.asking.as_ref().map(|asking| asking.kept.clone());
        kept.filter(|kept| job::is_of(kept, open.from()))
    }
}

/// Where the findings belong.
struct Home {
    desk: Desk,
    board: Board,
    /// The case as it was when the test began.
    before: Arc<Open>,
    /// Where its nodes' first answers are, if they were asked; later answers are of the same case.
    kept: Option<PathBuf>,
}

impl Home {
    /// Keeps what was found, shows it where its case is still open, and gives what to say of it.
    fn take(self, told: Result<Offline, Problem>, cancelled: bool) -> (Level, String) {
        let tested = match told {
            Ok(tested) => tested,
            Err(_) if cancelled => {
                let said = "the offline diagnosis was cancelled; what was measured stays among the runs";
                return (Level::Info, said.to_owned());
            }
            Err(problem) => {
                let why = clean(&format!("{:#}", problem.error), 400);
                return (Level::Error, format!("the offline diagnosis ended early: {why}"));
            }
        };
        let verdict = match tested.verdict {
            Answer::Named => "names what is at fault",
            Answer::NothingFound => "found nothing",
            Answer::Undecided => "decided nothing",
        };
        let now = self.desk.open().filter(|now| self.is_same(now.from()));
        let open = now.clone().unwrap_or_else(|| self.before.clone());
        let kept = cases::keep_tested(&tested, open.from());
        let file = cases::tested_of(open.from());
        if now.is_some() {
            let wanted = self.desk.ask();
            self.desk.show(Arc::new(open.with_tested(tested)), &self.board, &wanted);
        }
        match kept {
            Ok(()) => (Level::Info, format!("the offline diagnosis {verdict}; kept in {}", file.display())),
            Err(why) => (Level::Warn, format!("the offline diagnosis {verdict}, and cannot be kept: {why:#}")),
        }
    }

    fn is_same(&self, now: &Path) -> bool {
        now == self.before.from() || self.kept.as_ref().is_some_and(|kept| job::is_of(kept, now))
    }
}
