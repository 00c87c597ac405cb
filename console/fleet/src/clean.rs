//! Are any probes left on the nodes? Removes them and says what was removed.

use std::sync::Arc;
use std::time::Duration;

use crate::inventory::Node;
use crate::link::{Failure, FailureKind, Phase};
use crate::route::Route;
use crate::run::each;
use crate::script::{self, Answer};
use crate::settings::Settings;

/// What was removed from a node, and what could not be.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Cleaned {
    /// Directories removed.
    pub removed: Vec<String>,
    /// Why others remain.
    pub kept: Vec<String>,
}

/// Removes our probe directories from every node; in the order of `nodes`.
pub async fn clean(nodes: &[Node], settings: Arc<Settings>) -> Vec<(String, Result<Cleaned, Failure>)> {
    each(nodes, settings, |node, shared| async move {
        let link = Route::to(&node, &shared).await?;
        let word = script::word();
        let command = script::clean(&word, &shared.settings.scratch);
        let output = link.run(&node.name, &command, Duration::from_secs(60)).await?;
        let mut cleaned = Cleaned::default();
        let mut ended = false;
        for line in output.stdout.split(|b| *b == b'\n') {
            match script::answer(line, &word) {
                Some(Answer::Gone(dir)) => cleaned.removed.push(dir),
                Some(Answer::Kept(why)) => cleaned.kept.push(why),
                Some(Answer::End) => ended = true,
                _ => {}
            }
        }
        if !ended {
            let what = "commands do not run (nologin or a broken shell?)";
            return Err(Failure::new(&node.name, Phase::Start, FailureKind::NoShell, what));
        }
        Ok(cleaned)
    })
    .await
}
