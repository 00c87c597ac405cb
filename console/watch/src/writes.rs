//! Which nodes write while the job stands still: what a machine sends or writes to its disk, such as a checkpoint, is what the others
//! wait for by design.

use muster_wire::SaysOfJob;

use super::cell::Cell;
use super::column::{Column, Work};
use super::settings::PEERS;

/// Metrics of bytes that leave a node or reach its disk.
const BYTES: [&str; 4] = ["net_tx_gbs", "rdma_tx_gbs", "disk_write_gbs", "job_write_gbs"];
/// Those of them that a disk counts; without any, a busy disk is all that may be known of writing.
const DISK: [&str; 2] = ["disk_write_gbs", "job_write_gbs"];
const BUSY: &str = "disk_busy_pct";
/// Times what the others show from which a node writes and the others do not.
const FAR: f64 = 4.0;
/// Times its own usual level from which a disk does more than it always does.
const UNUSUAL: f64 = 2.0;
/// Bytes a second below which it is logs, metrics and heartbeats: a checkpoint of a few gigabytes is written within minutes.
const LEAST: f64 = 1e7;
/// Share of the ceiling that a busy disk must be above the others.
const BUSIER: f64 = 0.5;

/// For each node the metric that shows it writing, where one does.
pub(super) fn writers(nodes: usize, columns: &[Column], work: &mut Work) -> Vec<Option<usize>> {
    let mut found = vec![None; nodes];
    for (metric, column) in columns.iter().enumerate().filter(|(_, column)| tells(column)) {
        column.beside_peers(work);
        for (node, (cell, &peers)) in column.cells.iter().zip(&work.medians).enumerate() {
            let better = column.about.name == BUSY && knows_bytes(node, columns);
            if found[node].is_none() && !better && writes(column, cell, peers) {
                found[node] = Some(metric);
            }
        }
    }
    found
}

fn tells(column: &Column) -> bool {
    BYTES.contains(&column.about.name) || column.about.name == BUSY
}

/// Whether the bytes that the disks of a node take are known: a disk that is busy without them reads, or is broken.
fn knows_bytes(node: usize, columns: &[Column]) -> bool {
    let mut disks = columns.iter().filter(|column| DISK.contains(&column.about.name));
    disks.any(|column| column.cells[node].now.value.is_finite())
}

fn writes(column: &Column, cell: &Cell, peers: f64) -> bool {
    let (about, value) = (&column.about, cell.now.value);
    let enough =
        if about.name == BUSY { value - peers > BUSIER * about.ceiling } else { value * about.factor >= LEAST };
    // What a node usually sends is the job's own traffic, which has stopped, so that it says nothing of what it sends now.
    let unusual = about.job == SaysOfJob::Moves || value > UNUSUAL * cell.level.max(0.0);
    enough && unusual && value > FAR * peers
}

impl Column {
    /// Writes the values of the closed block and, for each node, the median of the others to `work`.
    pub(super) fn beside_peers(&self, work: &mut Work) {
        work.values.clear();
        work.values.extend(self.cells.iter().map(|cell| cell.now.value));
        work.others.medians(&work.values, PEERS, &mut work.medians);
    }
}

#[cfg(test)]
mod tests {
    use muster_wire::telemetry;

    use super::*;

    /// A metric in which node 0 shows `own` beside five others, and usually all show `usual`.
    fn column(name: &str, own: f64, others: f64, usual: f64) -> Column {
        let mut column = Column::new(name.to_owned(), *telemetry(name).unwrap(), 6, 0);
        for (node, cell) in column.cells.iter_mut().enumerate() {
            (cell.now.value, cell.level) = (if node == 0 { own } else { others }, usual);
        }
        column
    }

    fn writer(columns: &[Column]) -> Option<usize> {
        let found = writers(6, columns, &mut Work::default());
        assert!(found[1..].iter().all(Option::is_none), "{found:?}");
        found[0]
    }

    #[test]
    fn a_node_writes_where_it_sends_or_writes_far_more_than_the_others() {
        assert_eq!(writer(&[column("net_tx_gbs", 11.0, 0.0, 18.0)]), Some(0), "its usual traffic is the job's");
        assert_eq!(writer(&[column("disk_write_gbs", 0.8, 0.001, 0.002)]), Some(0));
        assert_eq!(writer(&[column("net_tx_gbs", 0.001, 0.0, 18.0)]), None, "a megabyte a second is logs");
        assert_eq!(writer(&[column("net_tx_gbs", 3.0, 2.0, 18.0)]), None, "the others do, too");
        assert_eq!(writer(&[column("disk_write_gbs", 0.8, 0.001, 0.7)]), None, "it always writes so much");
        assert_eq!(writer(&[column("gpu_power_w", 600.0, 90.0, 90.0)]), None);
    }

    #[test]
    fn a_busy_disk_is_writing_only_where_nobody_says_how_many_bytes_it_takes() {
        let busy = || column("disk_busy_pct", 98.0, 3.0, 3.0);
        assert_eq!(writer(&[busy()]), Some(0));
        assert_eq!(writer(&[busy(), column("disk_write_gbs", 0.0, 0.0, 0.002)]), None, "it reads, or is broken");
        assert_eq!(writer(&[busy(), column("disk_write_gbs", 0.5, 0.0, 0.002)]), Some(1));
        assert_eq!(writer(&[column("disk_busy_pct", 40.0, 3.0, 3.0)]), None);
    }

    #[test]
    fn a_writer_is_far_above_the_others_and_above_its_own_usual_level() {
        let sends = |own: f64, others: f64| writer(&[column("net_tx_gbs", own, others, 18.0)]).is_some();
        assert!(sends(0.01, 0.0) && !sends(0.0099, 0.0), "10 MB a second");
        assert!(sends(4.1, 1.0) && !sends(4.0, 1.0), "more than four times the others");
        let disk = |own: f64, usual: f64| writer(&[column("disk_write_gbs", own, 0.0, usual)]).is_some();
        assert!(disk(0.81, 0.4) && !disk(0.8, 0.4) && disk(0.02, -1.0), "more than twice its usual level");
        let busy = |own: f64, others: f64| writer(&[column("disk_busy_pct", own, others, 3.0)]).is_some();
        assert!(busy(53.1, 3.0) && !busy(53.0, 3.0), "half of the time more than the others");
        assert!(!busy(90.0, 30.0) && writer(&[column("disk_busy_pct", 98.0, 3.0, 50.0)]).is_none());
    }
}
