//! Where does a watch stand now, for node_exporter's textfile directory?

use std::collections::BTreeSet;
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use muster_watch::Watch;

use crate::cli::export::escape;
use crate::out;

/// A file is written again after this time: a block of the detector.
const EVERY: Duration = Duration::from_secs(10);

/// A file with the current scores, and when it was last written.
pub(super) struct Scores {
    file: PathBuf,
    next: Instant,
    failed: bool,
}

impl Scores {
    pub(super) fn to(file: &Path) -> Self {
        Self { file: file.to_owned(), next: Instant::now(), failed: false }
    }

    /// Writes the file if it is time, or `now`; what cannot be written is said once. `nodes` are those that told something.
    pub(super) fn take<'n>(&mut self, watch: &Watch, nodes: impl Iterator<Item = &'n str>, now: bool) {
        if !now && Instant::now() < self.next {
            return;
        }
        self.next = Instant::now() + EVERY;
        // Who reads it meanwhile sees the old one or the new one, never half of it.
        if let Err(why) = out::replace(&self.file, text(watch, nodes).as_bytes(), out::PUBLIC)
            && !std::mem::replace(&mut self.failed, true)
        {
            out::note(format_args!("{why:#}"));
        }
    }
}

/// Open alerts of each of `nodes`, and scores by part. A node that never told anything has no line, nor a part that cannot be judged yet:
/// that is not zero.
fn text<'n>(watch: &Watch, nodes: impl Iterator<Item = &'n str>) -> String {
    let mut out = String::from(
        "# TYPE muster_watch_alert gauge\n# HELP muster_watch_alert Whether the node is named as unlike its peers now.\n",
    );
    let open = watch.alerts().iter().filter(|alert| alert.until_s.is_none() && alert.group.is_none());
    let named: BTreeSet<&str> = open.map(|alert| alert.node.as_str()).collect();
    for node in nodes {
        let _ = writeln!(out, "muster_watch_alert{{node=\"{}\"}} {}", escape(node), u8::from(named.contains(node)));
    }
    out.push_str("# TYPE muster_watch_score gauge\n# HELP muster_watch_score Largest deviation from the peers of any metric of a part, in standard deviations.\n");
    for score in watch.scores() {
        let (node, part) = (escape(score.node), score.component);
        let _ = writeln!(out, "muster_watch_score{{node=\"{node}\",component=\"{part}\"}} {:.2}", score.z);
    }
    out.push_str("# EOF\n");
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use muster_watch::Settings;

    #[test]
    fn the_file_is_whole_and_the_named_node_stands_in_it() {
        let mut watch = Watch::new(Settings::default());
        let nodes: Vec<_> = (0..5).filter_map(|n| watch.node(&format!("n{n}"))).collect();
        let metric = watch.metric("gpu_power_w").unwrap();
        for second in 0..900 {
            for (at, &node) in nodes.iter().enumerate() {
                let level = if at == 3 && second > 400 { 300.0 } else { 500.0 };
                watch.push(f64::from(second), node, metric, level + f64::from(second % 7));
            }
        }
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("muster.prom");
        let mut scores = Scores::to(&file);
        scores.take(&watch, ["n0", "n3"].into_iter(), false);
        let text = std::fs::read_to_string(&file).unwrap();
        assert!(
            text.contains("muster_watch_alert{node=\"n3\"} 1\n")
                && text.contains("muster_watch_alert{node=\"n0\"} 0\n"),
            "{text}"
        );
        assert!(text.contains("muster_watch_score{node=\"n3\",component=\"gpus\"} "), "{text}");
        assert!(!text.contains("muster_watch_alert{node=\"n1\"}"), "it is not among those that told something: {text}");
        assert!(text.ends_with("# EOF\n"));
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 1, "nothing is left beside it");
        std::fs::remove_file(&file).unwrap();
        scores.take(&watch, ["n0"].into_iter(), false);
        assert!(!file.exists(), "not yet time");
        scores.take(&watch, ["n0"].into_iter(), true);
        assert!(file.exists());
    }
}
