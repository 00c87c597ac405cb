//! What earlier watches learned of the same nodes, kept beside their recordings.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Context;
use muster_analysis::watch::{Gains, Unlike, Watch, unlike_before};

use crate::out;

/// How the files end, in the folder of the recordings.
const ENDING: &str = "gains.json";
const FOLDER: &str = "telemetry";
/// Files that are kept, and bytes past which one is none of ours.
const KEPT: usize = 32;
const LARGEST: u64 = 64 << 20;

/// Keeps what `watch` learned beside its recording, and removes the oldest of such files. What fails is said: the recording itself
/// does not need it.
pub(super) fn keep(recording: &Path, watch: &Watch) {
    if let Err(why) = watch.gains().map_or(Ok(()), |gains| write(recording, &gains)) {
        eprintln!("what was learned of the nodes is not kept: {why:#}");
    }
}

fn write(recording: &Path, gains: &Gains) -> anyhow::Result<()> {
    let path = recording.with_extension(ENDING);
    let name = || path.display().to_string();
    out::replace(&path, &serde_json::to_vec(gains)?, out::PRIVATE)?;
    let mut all = files(path.parent().unwrap_or(Path::new(".")));
    let old = all.len().saturating_sub(KEPT);
    all.drain(..old).try_for_each(fs::remove_file).with_context(name)
}

/// Such files in `folder`, the oldest first: their names begin with the time.
fn files(folder: &Path) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(folder) else { return Vec::new() };
    let mut found: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    found.retain(|path| path.to_string_lossy().ends_with(&format!(".{ENDING}")));
    found.sort_unstable();
    found
}

/// What is worth a note of nodes that have been unlike their own past since the start, by what the database at `db` keeps.
pub(super) fn notes(watch: &Watch, db: &Path) -> Vec<String> {
    let Some(now) = watch.gains() else { return Vec::new() };
    let before: Vec<Gains> = files(&db.join(FOLDER)).iter().filter_map(|path| read(path)).collect();
    unlike_before(&now, &before).iter().map(Unlike::note).collect()
}

fn read(path: &Path) -> Option<Gains> {
    let small = fs::metadata(path).is_ok_and(|about| about.is_file() && about.len() <= LARGEST);
    let gains = small.then(|| fs::read(path).ok()).flatten().and_then(|text| serde_json::from_slice(&text).ok());
    if gains.is_none() {
        eprintln!("{} is not read: no gains of a watch", path.display());
    }
    gains
}

#[cfg(test)]
mod tests {
    use muster_analysis::watch::Settings;

    use super::*;

    /// Six nodes for seven minutes from `start` on; node 2 at `share` of its peers.
    fn watched(start: f64, share: f64) -> Watch {
        let mut watch = Watch::new(Settings::default());
        let nodes: Vec<_> = (0..6).map(|n| watch.node(&format!("n{n}")).unwrap()).collect();
        let metrics = ["gpu_power_w", "tensor_active"].map(|name| watch.metric(name).unwrap());
        for second in 0..420 {
            for (at, &node) in nodes.iter().enumerate() {
                let level =
                    if at == 2 { share } else { 1.0 } * (1.0 + f64::from((second * 7 + at as i32 * 3) % 11) / 500.0);
                watch.push(start + f64::from(second), node, metrics[0], 400.0 * level);
                watch.push(start + f64::from(second), node, metrics[1], 0.5 * level);
            }
        }
        watch.finish();
        watch
    }

    #[test]
    fn a_node_unlike_its_kept_past_is_noted_and_what_is_damaged_is_left_out() {
        let dir = tempfile::tempdir().unwrap();
        let folder = dir.path().join(FOLDER);
        fs::create_dir(&folder).unwrap();
        assert!(notes(&watched(9e5, 0.7), dir.path()).is_empty(), "nothing is known of before");
        for day in 1..=3 {
            keep(&folder.join(format!("2026-11-0{day}-watch.tel")), &watched(f64::from(day) * 86_400.0, 1.0));
        }
        fs::write(folder.join("2026-11-04-watch.gains.json"), "{").unwrap();
        let said = notes(&watched(9e5, 0.7), dir.path());
        assert!(said.len() == 1 && said[0].starts_with("n2 has been unlike its own past since the start"), "{said:?}");
        assert!(notes(&watched(9e5, 1.0), dir.path()).is_empty());
    }

    #[test]
    fn the_oldest_go_first() {
        let dir = tempfile::tempdir().unwrap();
        let watch = watched(1e6, 1.0);
        (0..40).for_each(|n| keep(&dir.path().join(format!("2026-{n:02}.tel")), &watch));
        let left = files(dir.path());
        assert!(left.len() == KEPT && left[0].ends_with("2026-08.gains.json"), "{left:?}");
    }
}
