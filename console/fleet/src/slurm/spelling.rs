//! How do Slurm's versions spell what we read of a node? One row for each thing; another version is another word in its row.

/// Names of one thing: members of a node in JSON, the first that is there, and the key of the one-line text form.
#[derive(Clone, Copy, Debug)]
pub(super) struct Spelling {
    pub(super) json: &'static [&'static str],
    pub(super) text: &'static str,
}

/// `name` and `NodeName` in 22.05 (`sinfo --json`, data parser v0.0.38) as in 25.05 (`scontrol show nodes --json`, v0.0.43).
pub(super) const NAME: Spelling = Spelling { json: &["name"], text: "NodeName" };
pub(super) const ADDRESS: Spelling = Spelling { json: &["address"], text: "NodeAddr" };
/// A word in 22.05, a list since 23.02.
pub(super) const STATE: Spelling = Spelling { json: &["state"], text: "State" };
/// Beside the state until 22.05, part of it since 23.02 and in the text form.
pub(super) const FLAGS: Spelling = Spelling { json: &["state_flags"], text: "" };
pub(super) const PARTITIONS: Spelling = Spelling { json: &["partitions"], text: "Partitions" };
/// Text with commas in 22.05, a list since 23.02.
pub(super) const FEATURES: Spelling = Spelling { json: &["active_features", "features"], text: "ActiveFeatures" };
pub(super) const GRES: Spelling = Spelling { json: &["gres"], text: "Gres" };
pub(super) const REASON: Spelling = Spelling { json: &["reason"], text: "Reason" };
pub(super) const REASON_BY: Spelling = Spelling { json: &["reason_set_by_user"], text: "" };
pub(super) const VERSION: Spelling = Spelling { json: &["version"], text: "Version" };

/// Lists of nodes in a document.
pub(super) const NODES: &[&str] = &["nodes"];

/// What a mark behind a state of the text form stands for (sinfo(1), "NODE STATE CODES").
pub(super) const MARKS: &[(char, &str)] = &[
    ('*', "NOT_RESPONDING"),
    ('~', "POWERED_DOWN"),
    ('#', "POWERING_UP"),
    ('!', "POWER_DOWN"),
    ('%', "POWERING_DOWN"),
    ('$', "MAINTENANCE"),
    ('@', "REBOOT_REQUESTED"),
    ('^', "REBOOT_ISSUED"),
    ('-', "PLANNED"),
];

/// Words that are said of one state in several ways.
pub(super) const SAME: &[(&str, &str)] = &[
    ("DRAINED", "DRAIN"),
    ("DRAINING", "DRAIN"),
    ("NO_RESPOND", "NOT_RESPONDING"),
    ("MAINT", "MAINTENANCE"),
    ("ALLOC", "ALLOCATED"),
    ("MIX", "MIXED"),
    ("FAILING", "FAIL"),
];

/// States in which Slurm gives a node to no job, or to none but those of a reservation.
pub(super) const OUT: &[&str] = &["DOWN", "DRAIN", "FAIL", "NOT_RESPONDING", "FUTURE", "UNKNOWN", "ERROR"];
