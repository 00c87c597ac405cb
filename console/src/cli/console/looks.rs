//! What the screen asks of the desk while it only looks: a node's past, other terms, versions of criteria.

use std::sync::Arc;

use muster_analysis::Criterion;
use muster_store::Store;
use muster_tui::snapshot::{Load, Part, Terms};
use muster_wire::Level;

use super::Desk;
use crate::{engine, session};

impl Desk {
    pub(super) fn focus(&self, node: &str) {
        self.board.focus(node);
        self.past.ask(node);
    }

    /// What other terms would say of the run that is shown; judged aside, so that frames go on.
    pub(super) async fn what_if(&self, terms: Option<Terms>) {
        let snapshot = self.board.snapshot();
        let (Some(terms), Some(shown)) = (terms, snapshot.run.as_deref()) else { return self.board.what_if(None) };
        let asked = self.store.run(&shown.id).map_err(anyhow::Error::from).and_then(|run| {
            let run = run.ok_or_else(|| anyhow::anyhow!("run {} is not in the database", shown.id))?;
            let judging = engine::Judging::of(&self.store, &run, session::params(&self.config))?;
            let Some(id) = &terms.version else { return Ok((run, judging)) };
            let Terms { alpha, tau, .. } = terms;
            let criterion = engine::find(&self.store, id)?.criterion;
            Ok((run, judging.instead(Criterion { alpha, tau, ..criterion })))
        });
        let (run, judging) = match asked {
            Ok(asked) => asked,
            Err(why) => return self.board.say(Level::Error, format!("{why:#}")),
        };
        let records = self.board.records();
        let answer = tokio::task::spawn_blocking(move || {
            engine::what_if(&run, records.iter().map(Arc::as_ref), &judging, &snapshot.nodes, &terms)
        });
        if let Ok(answer) = answer.await {
            self.board.what_if(Some(answer));
        }
    }

    pub(super) fn criteria(&self) {
        self.board.criteria(match engine::shelf(&self.store) {
            Ok(criteria) => Part::ready(criteria),
            Err(why) => {
                let (what, why) = ("reading the criteria".to_owned(), format!("{why:#}"));
                let next = "`muster db check` looks for damage.".to_owned();
                Part { load: Load::Failed { what, why, since_ms: engine::now_ms(), next }, data: None }
            }
        });
    }
}
