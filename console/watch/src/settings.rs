//! What the detector goes by. Definitions and figures: docs/WATCH.md.

/// Seconds of a block.
pub(super) const BLOCK: usize = 10;
/// Seconds after its end that a block waits for late rows; and how long it waits at most for nodes that were late before.
pub(super) const GRACE: f64 = 5.0;
pub(super) const LONGEST_GRACE: f64 = 30.0;
/// Blocks that may be open at once, with one to spare: those that wait, the one that lasts, and the next.
pub(super) const OPEN: usize = LONGEST_GRACE as usize / BLOCK + 3;
/// Blocks whose seconds are remembered after they closed, to tell who moved first.
pub(super) const HISTORY: usize = 24;
/// Blocks whose seconds are kept.
pub(super) const KEPT: usize = HISTORY + OPEN;
/// Blocks of a cell that say what is usual, and levels of a metric.
pub(super) const RING: usize = 60;
/// Blocks that must be learned before a cell can be judged.
pub(super) const MIN: usize = 15;
/// Blocks that are learned directly; later ones pass through the quarantine, and weak evidence is looked for.
pub(super) const DIRECT: usize = 24;
/// Blocks that a value waits in quarantine.
pub(super) const QUARANTINE: usize = 18;
/// Blocks that weak evidence is averaged over.
pub(super) const RECENT: usize = 6;
/// Blocks without a value after which a cell counts as not deviating.
pub(super) const MISSING: u32 = 6;
/// Others that must have a value: with fewer, nobody can say which of two is odd.
pub(super) const PEERS: usize = 3;

/// Most nodes: a name past it is refused and its rows are counted.
pub const NODES: usize = 16_384;
/// Most metrics.
pub const METRICS: usize = 1_024;
/// Most cells, which is what takes memory: about 2 KiB each.
pub const CELLS: usize = 1 << 18;

/// What a person may choose.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Settings {
    /// Seconds of full evidence until a machine is named. Shorter is quicker and names more healthy machines.
    pub evidence_s: f64,
    /// Healthy machines that may be named, per machine and day: evidence is then what keeps that budget, by the job's own
    /// excursions.
    pub false_alarms: Option<f64>,
}

impl Default for Settings {
    fn default() -> Self {
        Self { evidence_s: 130.0, false_alarms: None }
    }
}
