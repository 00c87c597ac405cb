//! What counts as one node's measurement: a non-empty set of finite, non-negative values, kept sorted.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

/// Why values are not a measurement.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum BadSample {
    /// No values at all.
    #[error("no values were measured")]
    Empty,
    /// A NaN or an infinity, which only a broken measurement gives.
    #[error("value {position} is {value}, not a number that can be measured")]
    NotFinite {
        /// Index in the order measured.
        position: usize,
        /// What was there.
        value: f64,
    },
    /// A rate or a time cannot be negative.
    #[error("value {position} is {value}, and a rate or a time cannot be negative")]
    Negative {
        /// Index in the order measured.
        position: usize,
        /// What was there.
        value: f64,
    },
}

/// Steps from which on their order says whether a node was slow for a while only.
const ORDERED: usize = 12;

/// Values of one metric on one node, ascending: criteria compare distributions. Cheap to clone. One made by
/// [`Sample::in_steps`] also keeps the order measured, which is not stored and plays no part when samples are compared.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(try_from = "Vec<f64>", into = "Vec<f64>")]
pub struct Sample {
    values: Arc<[f64]>,
    /// The same, step after step.
    order: Option<Arc<[f64]>>,
}

impl PartialEq for Sample {
    fn eq(&self, other: &Self) -> bool {
        self.values == other.values
    }
}

impl Sample {
    /// Checks and sorts `values`.
    ///
    /// # Errors
    /// When there are none, or one is NaN, infinite or negative: such a run failed, it is not slow.
    pub fn new(values: &[f64]) -> Result<Self, BadSample> {
        if values.is_empty() {
            return Err(BadSample::Empty);
        }
        for (position, &value) in values.iter().enumerate() {
            if !value.is_finite() {
                return Err(BadSample::NotFinite { position, value });
            }
            if value < 0.0 {
                return Err(BadSample::Negative { position, value });
            }
        }
        // Adding zero turns -0.0 into 0.0, so that bit patterns order like values.
        let mut values: Arc<[f64]> = values.iter().map(|v| v + 0.0).collect();
        if let Some(values) = Arc::get_mut(&mut values) {
            values.sort_unstable_by(f64::total_cmp);
        }
        Ok(Self { values, order: None })
    }

    /// As [`Sample::new`], of the steps of one visit in the order measured, which is kept from twelve steps on.
    ///
    /// # Errors
    /// As [`Sample::new`].
    pub fn in_steps(steps: &[f64]) -> Result<Self, BadSample> {
        let order = || steps.iter().map(|v| v + 0.0).collect();
        Self::new(steps).map(|sample| Self { order: (steps.len() >= ORDERED).then(order), ..sample })
    }

    /// The values step after step; `None` where their order is not known, or they are fewer than twelve.
    #[must_use]
    pub fn in_order(&self) -> Option<&[f64]> {
        self.order.as_deref()
    }

    /// All values, ascending.
    #[must_use]
    pub fn values(&self) -> &[f64] {
        &self.values
    }

    /// The middle value, or the mean of the two middle ones.
    #[must_use]
    pub fn median(&self) -> f64 {
        median_of_sorted(&self.values)
    }

    /// Value below which the share `q` (0 to 1) of the steps lies: linear between order statistics.
    #[must_use]
    pub fn quantile(&self, q: f64) -> f64 {
        quantile_of_sorted(&self.values, q)
    }

    /// 95 % interval of the median, by order statistics: the values between which it lies whatever their distribution
    /// (Conover, Practical Nonparametric Statistics, section 3.2). All of them where there are fewer than six.
    #[must_use]
    pub fn median_interval(&self) -> [f64; 2] {
        let (n, last) = (self.values.len() as f64, self.values.len() - 1);
        let low = (n / 2.0 - 0.98 * n.sqrt()).floor().max(0.0) as usize;
        [self.values[low.min(last)], self.values[last - low.min(last)]]
    }

    /// Mean of the values.
    #[must_use]
    pub fn mean(&self) -> f64 {
        self.values.iter().sum::<f64>() / self.values.len() as f64
    }

    /// A sample of one value that another sample gave.
    pub(crate) fn single(value: f64) -> Self {
        Self { values: Arc::from([value]), order: None }
    }

    /// How many values; never zero.
    #[must_use]
    #[expect(clippy::len_without_is_empty, reason = "a sample is never empty")]
    pub fn len(&self) -> usize {
        self.values.len()
    }
}

impl TryFrom<Vec<f64>> for Sample {
    type Error = BadSample;

    fn try_from(values: Vec<f64>) -> Result<Self, BadSample> {
        Self::new(&values)
    }
}

impl From<Sample> for Vec<f64> {
    fn from(sample: Sample) -> Self {
        sample.values.to_vec()
    }
}

/// Median of ascending values; NaN when there are none.
pub(crate) fn median_of_sorted(sorted: &[f64]) -> f64 {
    let n = sorted.len();
    match n {
        0 => f64::NAN,
        n if n % 2 == 1 => sorted[n / 2],
        n => f64::midpoint(sorted[n / 2 - 1], sorted[n / 2]),
    }
}

/// Linear quantile of ascending values; NaN when there are none.
pub(crate) fn quantile_of_sorted(sorted: &[f64], q: f64) -> f64 {
    let Some(last) = sorted.len().checked_sub(1) else {
        return f64::NAN;
    };
    let at = q.clamp(0.0, 1.0) * last as f64;
    let low = at.floor() as usize;
    let high = (low + 1).min(last);
    (sorted[high] - sorted[low]).mul_add(at - low as f64, sorted[low])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_sorted_and_the_median_is_the_middle() {
        let sample = Sample::new(&[3.0, -0.0, 1.0, 2.0]).unwrap();
        assert_eq!(sample.values(), [0.0, 1.0, 2.0, 3.0]);
        assert!(sample.values()[0].is_sign_positive());
        assert_eq!(sample.median(), 1.5);
        assert_eq!(sample.quantile(0.25), 0.75);
        assert_eq!(sample.quantile(1.0), 3.0);
        assert_eq!(Sample::new(&[7.0]).unwrap().median(), 7.0);
    }

    #[test]
    fn the_interval_of_the_median_is_all_of_a_few_values_and_narrows_with_more() {
        let of = |n: u32| Sample::new(&(0..n).map(f64::from).collect::<Vec<_>>()).unwrap().median_interval();
        assert_eq!([of(1), of(3), of(5)], [[0.0, 0.0], [0.0, 2.0], [0.0, 4.0]]);
        // Binomial table: with 100 values ranks 41 to 60 hold the median in 95 % of cases.
        assert_eq!(of(100), [40.0, 59.0]);
    }

    #[test]
    fn the_order_of_steps_is_kept_from_twelve_on_and_plays_no_part_in_comparisons() {
        let steps: Vec<f64> = (0..12).rev().map(f64::from).collect();
        let sample = Sample::in_steps(&steps).unwrap();
        assert_eq!(sample.in_order(), Some(&steps[..]));
        assert_eq!((Sample::new(&steps).unwrap().in_order(), &sample), (None, &Sample::new(&steps).unwrap()));
        assert_eq!(Sample::in_steps(&steps[1..]).unwrap().in_order(), None);
        assert!(Sample::in_steps(&[f64::NAN; 12]).is_err());
    }

    #[test]
    fn what_cannot_be_measured_is_refused_with_its_place() {
        assert_eq!(Sample::new(&[]), Err(BadSample::Empty));
        assert_eq!(Sample::new(&[1.0, -2.0]), Err(BadSample::Negative { position: 1, value: -2.0 }));
        let error = Sample::new(&[1.0, 1.0, f64::NAN]).unwrap_err();
        assert!(error.to_string().contains("value 2 is NaN"), "{error}");
        assert!(Sample::new(&[f64::INFINITY]).is_err());
    }

    #[test]
    fn a_stored_sample_with_a_negative_value_is_refused() {
        assert!(Sample::try_from(vec![1.0, -1.0]).is_err());
        let sample = Sample::new(&[2.0, 1.0]).unwrap();
        assert_eq!(Sample::try_from(Vec::from(sample.clone())), Ok(sample));
    }
}
