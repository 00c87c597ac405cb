//! What broke, from the words of a log?

use crate::risk::Category;

/// First match wins: the special words stand before the general ones.
const WORDS: &[(&str, Category)] = &[
    ("nvlink", Category::NvLink),
    ("nvswitch", Category::NvLink),
    ("nvls", Category::NvLink),
    ("xgmi", Category::NvLink),
    ("power", Category::PowerThermal),
    ("psu", Category::PowerThermal),
    ("thermal", Category::PowerThermal),
    ("temperature", Category::PowerThermal),
    ("overheat", Category::PowerThermal),
    ("fan", Category::PowerThermal),
    ("pcie", Category::Pcie),
    ("fallen off", Category::Pcie),
    ("xid 79", Category::Pcie),
    ("gpu", Category::Gpu),
    ("hbm", Category::Gpu),
    ("xid", Category::Gpu),
    ("ecc", Category::Gpu),
    ("cuda", Category::Gpu),
    ("nic", Category::Network),
    ("infiniband", Category::Network),
    ("roce", Category::Network),
    ("ib_", Category::Network),
    ("link", Category::Network),
    ("cable", Category::Network),
    ("network", Category::Network),
    ("transceiver", Category::Network),
    ("not responding", Category::Network),
    ("dimm", Category::CpuMemory),
    ("memory", Category::CpuMemory),
    ("cpu", Category::CpuMemory),
    ("mce", Category::CpuMemory),
    ("disk", Category::Disk),
    ("nvme", Category::Disk),
    ("ssd", Category::Disk),
    ("filesystem", Category::Disk),
    ("software", Category::Software),
    ("driver", Category::Software),
    ("kernel", Category::Software),
    ("prolog", Category::Software),
    ("epilog", Category::Software),
    ("kill task failed", Category::Software),
];

impl Category {
    /// The category's own name, else what the words of a free text point at, else [`Category::Unknown`].
    #[must_use]
    pub fn guess(text: &str) -> Self {
        let lower = text.to_lowercase();
        let named = Self::ALL.into_iter().find(|c| c.name() == lower);
        let hinted = || WORDS.iter().find(|(word, _)| lower.contains(word)).map(|(_, c)| *c);
        named.or_else(hinted).unwrap_or(Self::Unknown)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_point_at_categories() {
        for (text, category) in [
            ("gpu", Category::Gpu),
            ("nvlink", Category::NvLink),
            ("GPU NVLink error", Category::NvLink),
            ("Parameter Plane Cable", Category::Network),
            ("GPU DBE(Double Bit ECC) > Threshold", Category::Gpu),
            ("Power Supply", Category::PowerThermal),
            ("Not responding [slurm@2024]", Category::Network),
            ("Kill task failed", Category::Software),
            ("Unknown Error", Category::Unknown),
            ("", Category::Unknown),
        ] {
            assert_eq!(Category::guess(text), category, "{text}");
        }
    }
}
