//! What share of the defects that occur would a set of benchmarks find? Estimated from the defects that occurred,
//! with more weight on the recent ones, by category, and never surer than their number allows.

use serde::{Deserialize, Serialize};

use super::beta::lower_quantile;
use super::{Instance, Set};
use crate::risk::Category;

/// Most benchmarks a selection chooses from.
pub const MAX_BENCHMARKS: usize = 64;

/// One defect of the past and who found it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Defect {
    /// What was broken.
    pub category: Category,
    /// Hours ago.
    pub age_h: f64,
    /// Positions of the benchmarks that show it; empty when none did and an incident revealed it.
    pub found_by: Vec<usize>,
}

/// How coverage is estimated.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CoverageSettings {
    /// Age at which a defect counts half, in hours; infinite: all count alike.
    pub half_life_h: f64,
    /// Defects by which a category is drawn towards all categories.
    pub shrinkage: f64,
    /// Quantile of the posterior that is taken for the coverage; none takes the plain share.
    pub quantile: Option<f64>,
    /// Effective number of defects below which no subset is trusted.
    pub enough: f64,
}

impl Default for CoverageSettings {
    fn default() -> Self {
        Self { half_life_h: 90.0 * 24.0, shrinkage: 5.0, quantile: Some(0.2), enough: 20.0 }
    }
}

impl CoverageSettings {
    /// The plain share of all defects, as SuperBench's paper has it.
    #[must_use]
    pub fn plain() -> Self {
        Self { half_life_h: f64::INFINITY, shrinkage: 0.0, quantile: None, enough: 0.0 }
    }
}

/// Coverage estimates for every set of benchmarks.
#[derive(Clone, Debug, PartialEq)]
pub struct Coverage {
    weights: Vec<(Set, f64, Category)>,
    effective: f64,
    settings: CoverageSettings,
}

impl Coverage {
    /// Coverage from `defects`. Within a category `c` of weight `M_c` the share found is
    /// `(k_c + s k / M) / (M_c + s)`: `s` further defects found like those of all categories; categories weigh as
    /// often as they occur. All of it is linear in what is found, so each defect has one weight, they add up to 1,
    /// and the coverage of sets stays monotone and submodular.
    #[must_use]
    pub fn new(defects: &[Defect], settings: &CoverageSettings) -> Self {
        let age_weight = |d: &Defect| (-std::f64::consts::LN_2 * d.age_h.max(0.0) / settings.half_life_h).exp();
        let own: Vec<f64> = defects.iter().map(age_weight).collect();
        let total: f64 = own.iter().sum();
        let mass =
            |c: Category| -> f64 { defects.iter().zip(&own).filter(|(d, _)| d.category == c).map(|(_, w)| w).sum() };
        let masses: Vec<(Category, f64)> = Category::ALL.into_iter().map(|c| (c, mass(c))).collect();
        let s = settings.shrinkage.max(0.0);
        let shared: f64 =
            masses.iter().map(|(_, m)| if *m > 0.0 { m / total * s / ((m + s) * total) } else { 0.0 }).sum();
        let weight = |d: &Defect, w: f64| {
            let m = masses.iter().find(|(c, _)| *c == d.category).map_or(0.0, |(_, m)| *m);
            w * (m / total / (m + s) + shared)
        };
        let weights = defects.iter().zip(&own).filter(|(_, w)| **w > 0.0).map(|(d, w)| {
            let finders = d.found_by.iter().copied().filter(|b| *b < MAX_BENCHMARKS).collect();
            (finders, weight(d, *w), d.category)
        });
        let squares: f64 = own.iter().map(|w| w * w).sum();
        let effective = if squares > 0.0 { total * total / squares } else { 0.0 };
        Self { weights: weights.collect(), effective, settings: settings.clone() }
    }

    /// Number of equally weighted defects that would tell as much (Kish 1965).
    #[must_use]
    pub fn effective(&self) -> f64 {
        self.effective
    }

    /// Whether a subset may be trusted.
    #[must_use]
    pub fn is_enough(&self) -> bool {
        self.effective >= self.settings.enough && self.effective > 0.0
    }

    /// Weighted share of defects that `set` finds, 0 to 1.
    #[must_use]
    pub fn share(&self, set: Set) -> f64 {
        self.weights.iter().filter(|(finders, ..)| finders.meets(set)).map(|(_, w, _)| w).sum()
    }

    /// What the share may be counted on for: its lower quantile, or itself without one.
    #[must_use]
    pub fn trusted(&self, share: f64) -> f64 {
        match self.settings.quantile {
            Some(q) => lower_quantile(share.clamp(0.0, 1.0) * self.effective, self.effective, q),
            None => share.clamp(0.0, 1.0),
        }
    }

    /// Smallest share whose trusted coverage is `coverage`; none when no share is.
    #[must_use]
    pub fn needed(&self, coverage: f64) -> Option<f64> {
        if coverage <= 0.0 {
            return Some(0.0);
        }
        if self.trusted(1.0) < coverage {
            return None;
        }
        let (mut low, mut high) = (0.0, 1.0);
        for _ in 0..60 {
            let middle = 0.5 * (low + high);
            if self.trusted(middle) < coverage { low = middle } else { high = middle }
        }
        Some(high)
    }

    /// The cover problem for benchmarks of these minutes.
    #[must_use]
    pub fn instance(&self, minutes: &[f64]) -> Instance {
        Instance::new(minutes, self.weights.iter().map(|(finders, w, _)| (*finders, *w)))
    }

    /// Share of the defects of `category` that benchmark `b` finds, for the coverage table; none without a defect.
    #[must_use]
    pub fn cell(&self, category: Category, b: usize) -> Option<f64> {
        let of = |f: &dyn Fn(&Set) -> bool| -> f64 {
            self.weights.iter().filter(|(s, _, c)| *c == category && f(s)).map(|(_, w, _)| w).sum()
        };
        let all = of(&|_| true);
        (all > 0.0).then(|| of(&|s| s.has(b)) / all)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn defect(category: Category, found_by: &[usize]) -> Defect {
        Defect { category, age_h: 0.0, found_by: found_by.to_vec() }
    }

    fn fleet() -> Vec<Defect> {
        let mut all = vec![defect(Category::Gpu, &[0]); 30];
        all.extend(vec![defect(Category::Gpu, &[0, 1]); 10]);
        all.extend(vec![defect(Category::Network, &[2]); 9]);
        all.push(defect(Category::Disk, &[]));
        all
    }

    #[test]
    fn plain_coverage_is_the_share_found() {
        let c = Coverage::new(&fleet(), &CoverageSettings::plain());
        for (set, share) in [(0b001, 0.8), (0b010, 0.2), (0b011, 0.8), (0b111, 0.98), (0, 0.0)] {
            assert!((c.share(Set(set)) - share).abs() < 1e-12, "{set:b}");
            assert_eq!(c.trusted(c.share(Set(set))), c.share(Set(set)));
        }
        assert!((c.cell(Category::Gpu, 1).unwrap() - 0.25).abs() < 1e-12);
        assert_eq!(c.cell(Category::Pcie, 1), None);
    }

    #[test]
    fn shrinkage_follows_its_formula_and_keeps_the_total() {
        let settings = CoverageSettings { shrinkage: 5.0, ..CoverageSettings::plain() };
        let c = Coverage::new(&fleet(), &settings);
        let all: f64 = c.weights.iter().map(|w| w.1).sum();
        assert!((all - 1.0).abs() < 1e-12);
        // By hand for benchmark 0: it finds all 40 of GPU, none of 9 and 1, 40 of 50 in all.
        let by_category = [(40.0, 40.0), (0.0, 9.0), (0.0, 1.0)];
        let expected: f64 = by_category.iter().map(|(k, m)| m / 50.0 * (k + 5.0 * 0.8) / (m + 5.0)).sum();
        assert!((c.share(Set(1)) - expected).abs() < 1e-12);
    }

    #[test]
    fn few_or_old_defects_are_trusted_less() {
        let many = Coverage::new(&fleet(), &CoverageSettings::default());
        let few = Coverage::new(&fleet()[25..], &CoverageSettings::default());
        assert!(many.trusted(0.9) > few.trusted(0.9) && many.trusted(0.9) < 0.9);
        assert!(many.is_enough() && !Coverage::new(&fleet()[..19], &CoverageSettings::default()).is_enough());
        let mut aged = fleet();
        aged.iter_mut().take(30).for_each(|d| d.age_h = 1e5);
        let aged = Coverage::new(&aged, &CoverageSettings::default());
        assert!(aged.effective() < 21.0);
        assert!(!Coverage::new(&[], &CoverageSettings::default()).is_enough());
    }

    #[test]
    fn the_needed_share_is_the_inverse_of_trust() {
        let c = Coverage::new(&fleet(), &CoverageSettings::default());
        for coverage in [0.1, 0.5, 0.9] {
            assert!((c.trusted(c.needed(coverage).unwrap()) - coverage).abs() < 1e-9);
        }
        assert_eq!(c.needed(0.9999), None);
        assert_eq!(c.needed(0.0), Some(0.0));
    }
}
