//! The nodes of the open case, asked again from the screen.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::{Context, ensure};
use muster_fleet::{Node, Settings};
use muster_logs::Rules;
use muster_wire::{JobOrder, Level};
use tokio_util::sync::CancellationToken;

use super::App;
use super::triage::Open;
use crate::work::job::{self, Progress};
use crate::{out, work};

/// How the nodes of a case were asked, and can be again.
#[derive(Debug)]
pub struct Asking {
    /// Who.
    pub nodes: Vec<Node>,
    /// How they are reached.
    pub settings: Arc<Settings>,
    /// For what.
    pub order: JobOrder,
    /// The job, where the scheduler has a number for it.
    pub job: Option<String>,
    /// Where the first answers are kept; the next ones are kept beside them.
    pub kept: PathBuf,
    /// Whether they are being asked now.
    going: AtomicBool,
}

impl Asking {
    /// Ready to ask `nodes`.
    #[must_use]
    pub fn new(
        (nodes, settings): (Vec<Node>, Arc<Settings>),
        order: JobOrder,
        (job, kept): (Option<String>, PathBuf),
    ) -> Self {
        Self { nodes, settings, order, job, kept, going: AtomicBool::new(false) }
    }
}

impl App {
    /// Lets the user ask the nodes of the case again.
    #[must_use]
    pub fn asking(self, asking: Asking) -> Self {
        let case = self.case.clone().and_knowing(&asking.nodes);
        Self { asking: Some(Arc::new(asking)), case, ..self }
    }

    /// Asks the nodes of the case again and shows what they tell now; with `dumps`, the job writes flight-recorder dumps first.
    pub(super) fn triage_again(&self, dumps: bool) {
        let Some(before) = self.case.open() else { return };
        let Some(asking) = self.asking.clone().filter(|asking| job::is_of(&asking.kept, before.from())) else {
            let why = "this case is a bundle; `muster triage -w NODES --show` asks nodes";
            return self.board.say(Level::Warn, why);
        };
        if dumps && self.read_only {
            return self.board.say(Level::Warn, "--read-only forbids making the job write dumps");
        }
        // Answering costs the job something: nobody asks twice at once.
        if asking.going.swap(true, Ordering::Relaxed) {
            return self.board.say(Level::Info, "the nodes are being asked already");
        }
        let nodes = out::counted(asking.nodes.len(), "node", "nodes");
        self.board.say(Level::Info, format!("asking {nodes} again; their answers take about 15 s"));
        let (desk, board) = (self.case.clone(), self.board.clone());
        tokio::spawn(async move {
            let got = asking.again(dumps).await;
            asking.going.store(false, Ordering::Relaxed);
            // Judging takes as long as the case is large.
            tokio::task::spawn_blocking(move || match got {
                Ok((open, _)) if desk.open().is_none_or(|now| now.from() != before.from()) => {
                    let kept = open.from().display();
                    board.say(
                        Level::Info,
                        format!("{nodes} were asked again; kept as {kept}, which `:triage {kept}` opens"),
                    );
                }
                Ok((open, lost)) => {
                    if let Err(why) = open.take_marks(&before) {
                        board.say(Level::Warn, format!("the marks are not carried over: {why:#}"));
                    }
                    let open = open.take_tested(&before, &board);
                    let wanted = desk.ask();
                    desk.show(Arc::new(open), &board, &wanted);
                    let lost =
                        if lost == 0 { String::new() } else { format!("; {lost} of them did not tell everything") };
                    board.say(Level::Info, format!("{nodes} were asked again, and this is what they tell now{lost}"));
                }
                Err(why) => board
                    .say(Level::Error, format!("the nodes could not be asked again: {why:#}; the case is unchanged")),
            });
        });
    }
}

impl Asking {
    /// Asks once more and keeps the answers beside the earlier ones. Also gives how many nodes did not tell everything.
    async fn again(&self, dumps: bool) -> anyhow::Result<(Open, usize)> {
        let order = JobOrder { ask_for_dumps: dumps, ..self.order.clone() };
        let mut lost = 0;
        let mut say = |progress: Progress<'_>| lost += usize::from(matches!(progress, Progress::Lost(..)));
        let ways = (work::embedded(), self.settings.clone(), CancellationToken::new());
        let (told, at_ms) = job::collect(&self.nodes, &order, ways, &mut say).await;
        ensure!(told.iter().any(|told| !told.files.is_empty()), "no node told anything");
        let (mut files, kept) = (job::bundle(told, self.job.as_deref(), at_ms), job::next_to(&self.kept));
        let alerts = std::fs::read(self.kept.join(job::ALERTS)).ok();
        files.extend(alerts.map(|alerts| (job::ALERTS.to_owned(), alerts)));
        let open = tokio::task::spawn_blocking(move || -> anyhow::Result<Open> {
            job::make_room(&kept)?;
            job::keep(&kept, &files)?;
            let rules = Rules::built_in()?;
            let case = work::bundle::held(&files, &rules);
            Ok(Open::new(&kept, case, rules))
        });
        Ok((open.await.context("keeping the answers")??, lost))
    }
}
