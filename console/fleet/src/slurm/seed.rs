//! How does the probe get onto the nodes of a job? It is sent once for all of them, and not at all where every node has it.

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::time::Duration;

use tokio::time::timeout;

use super::step::{on_all, program};
use crate::probe::{Build, Probe};
use crate::script::{self, Seed};
use crate::tell::Tell;

/// Longest that nodes which are ready may take to say whether they have the probe.
const ASKED: Duration = Duration::from_secs(5);
/// Longest that a broadcast of the probe may take; what did not get it then has it sent.
const BROADCAST: Duration = Duration::from_secs(120);

/// What is to be started on nodes.
pub(crate) struct Starting<'a> {
    /// None where only commands are run.
    pub(crate) probe: Option<&'a Probe>,
    /// Directories of nodes that are tried first.
    pub(crate) scratch: &'a [String],
    pub(crate) tell: &'a Tell,
}

impl Starting<'_> {
    /// Waits until the nodes of a job are `ready`, and puts the probe where they find it: into `shared`, a directory that all see, or by
    /// a broadcast. None where no node needs it, or where that fails and each has it sent.
    pub(super) async fn seed(
        &self,
        (job, nodes): (&str, &[String]),
        shared: Option<&str>,
        ready: impl Future<Output = Result<(), String>>,
    ) -> Result<Option<Seed>, String> {
        let Some(probe) = self.probe else {
            return ready.await.map(|()| None);
        };
        let holders = holders((job, nodes), (probe, self.scratch), ready).await?;
        if nodes.iter().all(|node| holders.contains(node)) {
            return Ok(None);
        }
        let put = match shared {
            Some(folder) => {
                let one =
                    |build: &Build| put(&PathBuf::from(folder).join(format!("muster-{}", build.file_name())), build);
                probe.builds().try_for_each(one).map(|()| Seed::Shared(folder.to_owned()))
            }
            None => broadcast(job, probe).await,
        };
        let warn = |why: &String| log::warn!("Slurm job {job}: the probe is sent to each node by itself: {why}");
        Ok(put.inspect_err(warn).ok())
    }
}

/// Those of `nodes` that have the probe, once all are ready. They are asked by a step on all of them together: Slurm starts it when the
/// last one is ready, while salloc looks ever more seldom.
async fn holders(
    (job, nodes): (&str, &[String]),
    (probe, scratch): (&Probe, &[String]),
    ready: impl Future<Output = Result<(), String>>,
) -> Result<HashSet<String>, String> {
    let word = script::word();
    let names: Vec<&str> = nodes.iter().map(String::as_str).collect();
    let command = script::find(&word, probe, scratch);
    let mut said = Vec::new();
    let mut ready = std::pin::pin!(ready);
    let ended = {
        let mut asked = std::pin::pin!(on_all(job, &names, &command, &mut said));
        tokio::select! {
            ended = &mut asked => {
                let _ = ended.inspect_err(|why| log::warn!("Slurm job {job}: srun cannot start: {why}"));
                true
            }
            ready = &mut ready => {
                ready?;
                let _ = timeout(ASKED, asked).await;
                false
            }
        }
    };
    let answers: HashMap<&str, bool> = said.iter().filter_map(|line| script::found(line, &word)).collect();
    if ended && names.iter().any(|name| !answers.contains_key(name)) {
        ready.await?;
    }
    Ok(answers.into_iter().filter(|(_, has)| *has).map(|(node, _)| node.to_owned()).collect())
}

/// Writes the probe as `file`, unless it lies there already; nodes check what they take.
fn put(file: &Path, build: &Build) -> Result<(), String> {
    let wrong = |why: std::io::Error| format!("{}: {why}", file.display());
    if !std::fs::metadata(file).is_ok_and(|there| there.len() == build.size() as u64) {
        let new = file.with_extension(script::word());
        let written = create(&new, build).and_then(|()| std::fs::rename(&new, file));
        if written.is_err() {
            let _ = std::fs::remove_file(&new);
        }
        written.map_err(wrong)?;
    }
    Ok(())
}

fn create(file: &Path, build: &Build) -> std::io::Result<()> {
    use std::io::Write;
    use std::os::unix::fs::OpenOptionsExt;
    let mut new = std::fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(file)?;
    new.write_all(&build.bytes())
}

/// Sends the probe to all nodes of `job` through Slurm's own tree: the main build, and nodes of another architecture have theirs sent.
async fn broadcast(job: &str, probe: &Probe) -> Result<Seed, String> {
    let name = format!("{}.seed", script::word());
    let (from, to) = (std::env::temp_dir().join(&name), format!("/tmp/{name}"));
    create(&from, probe.main()).map_err(|why| format!("{}: {why}", from.display()))?;
    let mut sbcast = program("sbcast");
    sbcast.arg(format!("--jobid={job}")).arg(&from).arg(&to).kill_on_drop(true).stdin(std::process::Stdio::null());
    let ended = timeout(BROADCAST, sbcast.output()).await;
    let _ = std::fs::remove_file(&from);
    match ended {
        Ok(Ok(output)) if output.status.success() => Ok(Seed::Broadcast(to)),
        // Some nodes may have it.
        Ok(Ok(output)) => {
            let words = muster_wire::clean(String::from_utf8_lossy(&output.stderr).trim(), 200);
            log::warn!("Slurm job {job}: sbcast did not reach all nodes, which have the probe sent: {words}");
            Ok(Seed::Broadcast(to))
        }
        Ok(Err(why)) => Err(format!("sbcast: {why}")),
        Err(_) => Err(format!("sbcast took longer than {} s", BROADCAST.as_secs())),
    }
}
