//! What broke, guessed from the words of somebody else's incident log. Never asked of muster's own findings, whose category
//! the metric catalogue knows.

use muster_wire::Category;

/// What words point at; the first match wins, so the special ones stand first.
const WORDS: &[(Category, &[&str])] = &[
    (Category::NvLink, &["nvlink", "nvswitch", "nvls", "xgmi"]),
    (
        Category::PowerThermal,
        &["power", "psu", "thermal", "temperature", "overheat", "overheating", "overheated", "fan"],
    ),
    (Category::Pcie, &["pcie", "fallen off", "xid 79"]),
    (Category::Gpu, &["gpu", "hbm", "xid", "ecc", "cuda"]),
    (
        Category::Network,
        &["nic", "infiniband", "roce", "ib", "link", "cable", "network", "transceiver", "not responding"],
    ),
    (Category::CpuMemory, &["dimm", "memory", "cpu", "mce"]),
    (Category::Disk, &["disk", "nvme", "ssd", "filesystem", "file system"]),
    (Category::Software, &["software", "driver", "kernel", "prolog", "epilog", "kill task failed"]),
];

/// The category whose own name `text` is, else what its words point at, else [`Category::Unknown`].
#[must_use]
pub fn guess_category(text: &str) -> Category {
    let lower = text.to_lowercase();
    let hinted = || WORDS.iter().find(|(_, words)| words.iter().any(|word| has_word(&lower, word)));
    Category::named(&lower).or_else(|| hinted().map(|(category, _)| *category)).unwrap_or(Category::Unknown)
}

/// Whether `word` stands in `text` by itself, maybe in the plural or with a number behind it: `fan`, `fans`, `fan3`, not
/// `fantastic`.
fn has_word(text: &str, word: &str) -> bool {
    let letter = |c: Option<char>| c.is_some_and(char::is_alphabetic);
    text.match_indices(word).any(|(at, _)| {
        let after = &text[at + word.len()..];
        let after = after.strip_prefix('s').unwrap_or(after);
        !text[..at].ends_with(char::is_alphanumeric) && !letter(after.chars().next())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_point_at_categories() {
        for (text, category) in [
            ("gpu", Category::Gpu),
            ("GPU3 lost", Category::Gpu),
            ("nvlink", Category::NvLink),
            ("GPU NVLink error", Category::NvLink),
            ("Parameter Plane Cable", Category::Network),
            ("GPU DBE(Double Bit ECC) > Threshold", Category::Gpu),
            ("Power Supply", Category::PowerThermal),
            ("two fans stopped", Category::PowerThermal),
            ("Not responding [slurm@2024]", Category::Network),
            ("ib_write_bw low", Category::Network),
            ("Kill task failed", Category::Software),
            ("Unknown Error", Category::Unknown),
            ("", Category::Unknown),
        ] {
            assert_eq!(guess_category(text), category, "{text}");
        }
    }

    #[test]
    fn a_word_inside_another_points_at_nothing() {
        for (text, category) in [
            ("fantastic", Category::Unknown),
            ("mechanical", Category::Unknown),
            ("kernel panic", Category::Software),
            ("blinking led", Category::Unknown),
            ("powerful", Category::Unknown),
            ("tribe", Category::Unknown),
        ] {
            assert_eq!(guess_category(text), category, "{text}");
        }
    }
}
