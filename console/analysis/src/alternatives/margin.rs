//! How wide the gap is between the defects a method found and the nodes it left: SuperBench's margin ratio.

use super::{Fleet, Split};
use crate::similarity;

/// Smallest distance of a defect to the centre over the largest of a healthy node, by the method's own split and
/// SuperBench's two-sided distance (eq. 2) with tail floor `tau`. Above 1 the split is a threshold on distance, as
/// it is by construction for Algorithm 2 on fleets without nodes that are too fast. `None` without a defect, and
/// infinite when all healthy nodes equal the centre.
#[must_use]
pub fn margin_ratio(fleet: &Fleet, split: &Split, tau: f64) -> Option<f64> {
    let distance = |i: usize| 1.0 - similarity(&fleet.samples()[i], &split.centre, fleet.direction(), tau);
    let nearest = split.defects.iter().map(|&i| distance(i)).min_by(f64::total_cmp)?;
    let healthy = (0..fleet.samples().len()).filter(|i| !split.defects.contains(i));
    let farthest = healthy.map(distance).max_by(f64::total_cmp)?;
    Some(if farthest > 0.0 { nearest / farthest } else { f64::INFINITY })
}
