//! Which part of a GPU is at fault: the multiprocessor that computes other bits than its peers, the one that takes
//! longer for the same instructions, the page that does not keep what is written.
//!
//! Multiprocessors of one GPU are each other's peers: the same program on the same operands gives the same bits and the
//! same cycles on all of them, so no reference from outside is needed. Where all of them are wrong alike, the fleet is.

mod distance;
mod finding;
mod golden;
mod pages;
mod row;
mod sm;

pub use distance::{Map, Moved};
pub use finding::Finding;
pub use golden::{Golden, NODES, Odd, golden};
pub use pages::bad_page;
pub use row::{Row, Share};
pub use sm::{SLOW, slow, wrong};

/// Everything that the facts of one node's GPU benchmark prove, by GPU. Keys are those of the probe's GPU worker; what
/// is not understood proves nothing.
pub fn findings<'a>(facts: impl IntoIterator<Item = (&'a str, &'a str)>) -> Vec<Finding> {
    let (mut rows, mut found) = (Vec::new(), Vec::new());
    for (key, text) in facts {
        rows.extend(Row::parse(key, text));
        found.extend(bad_page(key, text));
    }
    found.extend(wrong(&rows));
    found.extend(slow(&rows));
    found.sort_by_key(Finding::gpu);
    found
}
