//! What runs before a job, and what does it find?

use serde::{Deserialize, Serialize};

use crate::selector::{Instance, Set, algorithm1};

/// When nodes are validated.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Policy {
    /// Never; an incident takes all nodes of its job away.
    Absence,
    /// All benchmarks before each job and after each incident.
    Full,
    /// The subset that Algorithm 1 picks for the joint risk.
    Selector,
    /// There are no incidents: what the jobs alone would use.
    Ideal,
    /// Never; after an incident only its node is swapped, as the policies that validate do. Shows how much of their gain
    /// is that of the repair rule.
    RepairOnly,
}

impl Policy {
    /// All, in the order reported.
    pub const ALL: [Self; 5] = [Self::Absence, Self::Full, Self::Selector, Self::Ideal, Self::RepairOnly];

    /// Name in reports.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Absence => "absence",
            Self::Full => "full",
            Self::Selector => "selector",
            Self::Ideal => "ideal",
            Self::RepairOnly => "repair_only",
        }
    }
}

/// Benchmarks a validation chooses from.
#[derive(Clone, Debug, PartialEq)]
pub struct ValidationPlan {
    instance: Instance,
    all: Set,
    total: f64,
}

impl ValidationPlan {
    /// Benchmarks with what they find, see [`Instance`]; the whole set is taken to find every defect, as
    /// SuperBench's simulation does.
    #[must_use]
    pub fn new(instance: Instance) -> Self {
        let all = Set::first(instance.len());
        let total = instance.found(all);
        Self { instance, all, total }
    }

    /// A set like that of SuperBench's Table 6 (a few cheap network tests find most defects), scaled to take
    /// `full_h` hours in all. Chosen to give the table's picks; not the paper's data.
    #[must_use]
    pub fn like_published(full_h: f64) -> Self {
        let rows = [
            (3.0, 0.45),
            (3.0, 0.30),
            (5.0, 0.08),
            (12.0, 0.03),
            (14.0, 0.032),
            (25.0, 0.045),
            (35.0, 0.042),
            (23.0, 0.021),
        ];
        let sum: f64 = rows.iter().map(|r| r.0).sum();
        let minutes: Vec<f64> = rows.iter().map(|r| r.0 / sum * full_h * 60.0).collect();
        let found = rows.iter().enumerate().map(|(k, r)| (Set(1 << k), r.1));
        Self::new(Instance::new(&minutes, found))
    }

    /// Coverage and hours of a validation under `policy`, at joint risk `risk`.
    pub(super) fn validation(&self, policy: Policy, risk: f64, p0: f64) -> (f64, f64) {
        let set = match policy {
            Policy::Absence | Policy::RepairOnly | Policy::Ideal => return (0.0, 0.0),
            Policy::Full => self.all,
            Policy::Selector if risk <= p0 => return (0.0, 0.0),
            Policy::Selector => algorithm1(&self.instance, self.total * (1.0 - p0 / risk), Set::default()).set(),
        };
        let coverage = if self.total > 0.0 { self.instance.found(set) / self.total } else { 0.0 };
        (coverage, self.instance.cost(set) / 60.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_published_picks_come_out() {
        // With 120 minutes in all: risk 0.9 and p0 0.632, 0.3, 0.1 need 3, 6 and 37 minutes.
        let plan = ValidationPlan::like_published(2.0);
        for (p0, minutes) in [(0.95, 0.0), (0.632, 3.0), (0.3, 6.0), (0.1, 37.0), (0.0, 120.0)] {
            let (coverage, hours) = plan.validation(Policy::Selector, 0.9, p0);
            assert!((hours * 60.0 - minutes).abs() < 1e-9, "{p0}: {hours}");
            assert!(0.9 * (1.0 - coverage) <= p0.max(1e-9) || minutes == 0.0);
        }
        assert_eq!(plan.validation(Policy::Full, 0.0, 1.0), (1.0, 2.0));
        assert_eq!(plan.validation(Policy::Absence, 1.0, 0.0), (0.0, 0.0));
    }
}
