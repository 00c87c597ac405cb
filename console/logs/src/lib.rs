//! What do the lines of a log mean, and which of them is the cause? Pure: no files, no clock.
//!
//! Rules are data: `assets/log-rules/*.toml`, one file a family (kernel, NCCL, PyTorch, Slurm …), built in and read by
//! [`Rules::built_in`]; [`Rules::read`] takes further text. [`Scan`] goes once over a log of any size and hands out a [`Hit`] per rule
//! and line; [`Tally`] keeps them in bounded memory; [`order`] says which of them are causes and which only follow.
//!
//! **How a rule is added:** one entry in the file of its family, and nothing else. Its examples are its test.
//!
//! ```toml
//! [[rule]]
//! id = "nccl-peer-closed"                      # unique; told in reports
//! match = 'socketProgress: Connection closed by remote peer (?P<peer>[^\s<]+)'   # names of groups: `Field`
//! kind = "distributed"                         # critical, error, distributed, consequence, notice, benign, progress: `Kind`
//! part = "network"                             # what the line speaks of: `Part`
//! category = "distributed-error"               # optional: what it speaks for
//! meaning = "A peer closed its connection: that process ended or was cut off, and this rank only noticed."
//! action = "Look at the peer that is named."
//! source = "NVIDIA/nccl src/misc/socket.cc"
//! examples = ["h1:12:34 [0] misc/socket.cc:503 NCCL WARN socketProgress: Connection closed by remote peer h2<41825>",
//!             "h1:12:34 [1] socket.cc:49 NCCL WARN socketProgress: Connection closed by remote peer h3<41826>"]
//! ```
//!
//! Optional too: `fault` (what exactly is wrong, where that decides what is done: `Fault`), `unless` (an expression; a line that matches it is not meant), `where = "kernel" | "job"` (in which logs it holds),
//! `since`, `until` (versions of the program), `follows` (ids of rules whose line, when it is there, is the cause of this one),
//! `not` (lines that look alike and are not meant). What differs by a number only (Xid, SXid, exit codes) is a `[[table]]` whose
//! expression captures `code`, with `[[table.row]]`s; a row with `when` holds only for lines that contain that text. An expression
//! must contain at least one piece of text that every match has, three bytes or more: by it the scan finds the few lines worth a look.

mod bad;
mod built_in;
pub mod category;
mod clean;
pub mod fault;
mod field;
mod hit;
mod kind;
mod need;
mod order;
mod origin;
mod part;
mod pattern;
mod read;
mod rule;
mod scan;
mod set;
pub mod stamp;
mod tally;

pub use bad::BadRule;
pub use category::Category;
pub use field::{Field, Fields};
pub use hit::Hit;
pub use kind::{Kind, Stream};
pub use order::{Event, Ordered, order};
pub use origin::Origin;
pub use part::Part;
pub use rule::{Rule, RuleId};
pub use scan::{LONGEST_LINE, Scan, Scanned};
pub use set::Rules;
pub use tally::{Limits, Seen, Tally};
