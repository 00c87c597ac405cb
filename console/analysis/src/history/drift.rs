//! Whether a node has become slower than it was, and whether the fleet has moved away from a frozen criterion.
//!
//! The same distance and the same alpha decide as between nodes. A node can be as good as its fleet and worse than
//! itself (it was the best one), and a fleet can be in agreement and slower than last month: neither shows in a
//! criterion that is learned anew every time.

use muster_wire::Direction;
use serde::{Deserialize, Serialize};

use crate::medoid::medoid;
use crate::{Criterion, Params, Sample, is_defect, one_sided, repeatability, similarity};

/// One earlier measurement of a node.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Past {
    /// When, seconds since the epoch; only order and differences matter.
    pub at: i64,
    /// What.
    pub sample: Sample,
}

/// What can be said of a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Drift {
    /// As before, within alpha.
    Steady,
    /// Better than before by more than alpha allows.
    Improved,
    /// Worse than before by more than alpha allows.
    Worse,
    /// The past itself scatters by more than alpha allows, or there is too little of it.
    Undecided,
}

/// A change and its evidence.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Trend {
    /// The answer.
    pub drift: Drift,
    /// Median of what it was, in the metric's unit; `None` without a past.
    pub was: Option<f64>,
    /// Median of what it is.
    pub is: f64,
    /// One-sided similarity to what it was; `None` without a past.
    pub similarity: Option<f64>,
    /// Mean similarity of the earlier measurements among each other; `None` with fewer than two.
    pub repeatability: Option<f64>,
    /// Loss of the median per day over past and present (Theil and Sen), as a share of what it was: 0.001 is a
    /// thousandth a day. Negative where it gets better; `None` with fewer than three points a day apart from each other.
    pub per_day: Option<f64>,
}

/// Measurements of its past a node needs before it can be worse than itself.
const ENOUGH: usize = 3;
/// Points in time that are closer together than this, in seconds, tell an hour from another and no trend.
const DAY: i64 = 86_400;

/// Compares a node with itself. The reference is the medoid of its `past` measurements, so one bad day among them
/// moves nothing; `now` is the new one. Alpha and tau of `params` decide.
#[must_use]
pub fn node_drift(past: &[Past], now: &Past, dir: Direction, params: &Params) -> Trend {
    let samples: Vec<&Sample> = past.iter().map(|p| &p.sample).collect();
    let repeatability = repeatability(&samples, dir, params.tau);
    let centre = medoid(&samples, dir, params.tau).map(|m| samples[m.index]);
    let is = now.sample.median();
    let Some(centre) = centre else {
        return Trend { drift: Drift::Undecided, was: None, is, similarity: None, repeatability, per_day: None };
    };
    let trusted = past.len() >= ENOUGH && repeatability.is_some_and(|r| r >= params.alpha);
    let mut points: Vec<(i64, f64)> = past.iter().chain([now]).map(|p| (p.at, p.sample.median())).collect();
    points.sort_unstable_by(|a, b| a.0.cmp(&b.0).then(a.1.total_cmp(&b.1)));
    Trend {
        drift: if trusted { compare(&now.sample, centre, dir, params) } else { Drift::Undecided },
        was: Some(centre.median()),
        is,
        similarity: Some(one_sided(&now.sample, centre, dir, params.tau)),
        repeatability,
        per_day: slope(&points, centre.median(), dir),
    }
}

/// Compares a fleet with a frozen criterion: not node by node, but its centre. `None` without a valid sample, or
/// where the criterion has none.
///
/// The centre of today's healthy nodes is the criterion that [`crate::learn`] finds today; the two are compared with
/// the frozen criterion's alpha and tau.
#[must_use]
pub fn fleet_drift(frozen: &Criterion, today: &Criterion) -> Option<Trend> {
    let same = frozen.metric == today.metric && frozen.unit == today.unit && frozen.direction == today.direction;
    let (was, is) = frozen.sample.as_ref().zip(today.sample.as_ref()).filter(|_| same)?;
    let params = Params { alpha: frozen.alpha, tau: frozen.tau, ..Params::default() };
    let trusted = [frozen, today].iter().all(|c| c.status == crate::Status::Ok);
    Some(Trend {
        drift: if trusted { compare(is, was, frozen.direction, &params) } else { Drift::Undecided },
        was: Some(was.median()),
        is: is.median(),
        similarity: Some(one_sided(is, was, frozen.direction, frozen.tau)),
        repeatability: frozen.repeatability,
        per_day: None,
    })
}

fn compare(now: &Sample, was: &Sample, dir: Direction, params: &Params) -> Drift {
    match () {
        () if is_defect(one_sided(now, was, dir, params.tau), params.alpha) => Drift::Worse,
        () if is_defect(one_sided(was, now, dir, params.tau), params.alpha) => Drift::Improved,
        // Each is worse than the other in part of its steps, and together that is too much.
        () if is_defect(similarity(now, was, dir, params.tau), params.alpha) => Drift::Undecided,
        () => Drift::Steady,
    }
}

/// Median of the slopes between all pairs of points a day or more apart (Theil 1950, Sen 1968): a fifth of the points may be wild.
fn slope(points: &[(i64, f64)], was: f64, dir: Direction) -> Option<f64> {
    let mut slopes = Vec::new();
    for (i, a) in points.iter().enumerate() {
        let later = points[i + 1..].iter().filter(|b| b.0 - a.0 >= DAY);
        slopes.extend(later.map(|b| (b.1 - a.1) / ((b.0 - a.0) as f64 / DAY as f64)));
    }
    if days(points) < 3 || was <= 0.0 {
        return None;
    }
    slopes.sort_unstable_by(f64::total_cmp);
    let gain = crate::sample::median_of_sorted(&slopes) / was;
    Some(if dir == Direction::HigherIsBetter { -gain } else { gain })
}

/// How many of the points, which are in order of time, lie a day or more after the one counted before.
fn days(points: &[(i64, f64)]) -> usize {
    let (mut last, mut count) = (None, 0);
    for (at, _) in points {
        if last.is_none_or(|last| at - last >= DAY) {
            (last, count) = (Some(*at), count + 1);
        }
    }
    count
}
