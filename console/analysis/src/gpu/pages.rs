//! Pages of GPU memory that were found wrong, as the worker writes them.

use super::Finding;

/// Reads `gpu.3.page.17` and `passes=4 bits=00000010 first=44 words=1`; nothing when it is something else.
#[must_use]
pub fn bad_page(key: &str, text: &str) -> Option<Finding> {
    let words: Vec<&str> = key.split('.').collect();
    let ["gpu", gpu, "page", page] = words[..] else { return None };
    let field = |name: &str| text.split_whitespace().find_map(|word| word.strip_prefix(name)?.strip_prefix('='));
    Some(Finding::BadPage {
        gpu: gpu.parse().ok()?,
        page: page.parse().ok()?,
        bits: u32::from_str_radix(field("bits")?, 16).ok()?,
        first: field("first")?.parse().ok()?,
        passes: field("passes")?.parse().ok()?,
    })
}
