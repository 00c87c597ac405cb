//! What earlier watches learned of the same nodes, kept beside their recordings.

use std::path::Path;

use muster_store::telemetry::{keep_learned, learned};
use muster_watch::{Gains, Unlike, Watch, unlike_before};

use crate::out;

/// Keeps what `watch` learned beside its recording. What fails is said: the recording itself does not need it.
pub(super) fn keep(recording: &Path, watch: &Watch) {
    let Some(gains) = watch.gains() else { return };
    let kept = serde_json::to_vec(&gains).map_err(anyhow::Error::from);
    if let Err(why) = kept.and_then(|bytes| Ok(keep_learned(recording, &bytes)?)) {
        out::note(format_args!("what was learned of the nodes is not kept: {why:#}"));
    }
}

/// What is worth a note of nodes that have been unlike their own past since the start, by what the database at `db` keeps.
pub(super) fn notes(watch: &Watch, db: &Path) -> Vec<String> {
    let Some(now) = watch.gains() else { return Vec::new() };
    let before: Vec<Gains> = learned(db).into_iter().filter_map(|(path, bytes)| read(&path, bytes)).collect();
    unlike_before(&now, &before).iter().map(Unlike::note).collect()
}

fn read(path: &Path, bytes: Option<Vec<u8>>) -> Option<Gains> {
    let gains = bytes.and_then(|bytes| serde_json::from_slice(&bytes).ok());
    if gains.is_none() {
        out::note(format_args!("{} is not read: no gains of a watch", path.display()));
    }
    gains
}

#[cfg(test)]
mod tests {
    use std::fs;

    use muster_watch::Settings;

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
        let folder = dir.path().join("telemetry");
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
}
