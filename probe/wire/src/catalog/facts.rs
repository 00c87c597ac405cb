//! Which component a fact is of.

use crate::Component;

use super::collectors::HELD_CPU;

/// Facts whose key begins so are of one GPU; its number and the name of the fact follow.
const OF_GPUS: [&str; 2] = ["gpu.", "nvml."];
/// Facts whose key begins so are of one core; its number follows.
const OF_CORES: [&str; 3] = [HELD_CPU, "throttled.core.", "throttled.package."];

/// The component that a fact is of, and the name of the fact without it: `power.limit` of GPU 3 for `nvml.3.power.limit`.
/// `None` where the key names no component.
#[must_use]
pub fn fact_of(key: &str) -> Option<(Component, &str)> {
    let gpu = OF_GPUS.into_iter().find_map(|start| key.strip_prefix(start)?.split_once('.'));
    if let Some((number, name)) = gpu {
        return Some((Component::Gpu(number.parse().ok()?), name));
    }
    let (start, number) = OF_CORES.into_iter().find_map(|start| Some((start, key.strip_prefix(start)?)))?;
    Some((Component::Core(number.parse().ok()?), start.trim_end_matches('.')))
}

/// The key of a fact that a benchmark leaves of one GPU, such as `gpu.3.health`.
#[must_use]
pub fn gpu_fact(index: u32, name: &str) -> String {
    format!("{}{index}.{name}", OF_GPUS[0])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fact_is_of_its_component() {
        for (key, expected) in [
            ("gpu.3.company", Some((Component::Gpu(3), "company"))),
            ("nvml.0.power.limit", Some((Component::Gpu(0), "power.limit"))),
            ("held.core5", Some((Component::Core(5), "held.core"))),
            ("throttled.package.12", Some((Component::Core(12), "throttled.package"))),
            ("gpu.x.company", None),
            ("nvml", None),
            ("held.core", None),
            ("foreign.cpu", None),
        ] {
            assert_eq!(fact_of(key), expected, "{key}");
        }
        assert_eq!(fact_of(&gpu_fact(3, "health")), Some((Component::Gpu(3), "health")));
    }
}
