//! How long requests took: counts by length, from which any percentile can be read to within two percent.

/// Buckets per doubling.
const FINE: usize = 32;
const FINE_BITS: u32 = FINE.trailing_zeros();

/// A log-linear histogram of nanoseconds (as HdrHistogram's): constant memory however many requests there are.
#[derive(Clone, Debug)]
pub(super) struct Histogram {
    counts: Vec<u32>,
    total: u64,
}

impl Default for Histogram {
    fn default() -> Self {
        Self { counts: vec![0; FINE * 64], total: 0 }
    }
}

impl Histogram {
    pub(super) fn add(&mut self, nanos: u64) {
        self.counts[bucket(nanos)] += 1;
        self.total += 1;
    }

    /// Takes over everything that `other` counted.
    pub(super) fn take(&mut self, other: &mut Self) {
        self.counts.iter_mut().zip(&mut other.counts).for_each(|(own, more)| *own += std::mem::take(more));
        self.total += std::mem::take(&mut other.total);
    }

    /// Nanoseconds that the share `q` of the requests did not exceed; `None` when there were none.
    pub(super) fn quantile(&self, q: f64) -> Option<f64> {
        let wanted = ((q * self.total as f64).ceil() as u64).max(1);
        let mut seen = 0;
        let at = self.counts.iter().position(|count| {
            seen += u64::from(*count);
            seen >= wanted
        })?;
        Some(middle(at))
    }
}

fn bucket(nanos: u64) -> usize {
    let Some(doublings) = nanos.checked_ilog2().filter(|log| *log >= FINE_BITS) else { return nanos as usize };
    let fine = (nanos >> (doublings - FINE_BITS)) as usize % FINE;
    (doublings - FINE_BITS + 1) as usize * FINE + fine
}

/// The middle of a bucket; half a nanosecond for the first.
fn middle(bucket: usize) -> f64 {
    if bucket < FINE {
        return bucket as f64 + 0.5;
    }
    let width = (1u64 << (bucket / FINE - 1)) as f64;
    ((FINE + bucket % FINE) as f64 + 0.5) * width
}

/// Latencies of one step.
#[derive(Clone, Debug, Default)]
pub(super) struct Latencies {
    /// Of requests that began and ended in the step.
    pub(super) inside: Histogram,
    /// Of requests that were in flight when it began: the pause between two steps is part of theirs.
    pub(super) across: Histogram,
}

impl Latencies {
    /// As [`Histogram::take`].
    pub(super) fn take(&mut self, other: &mut Self) {
        self.inside.take(&mut other.inside);
        self.across.take(&mut other.across);
    }

    /// As [`Histogram::quantile`]. A disk so slow that no request fits a step is told by those that span several.
    pub(super) fn quantile(&self, q: f64) -> Option<f64> {
        self.inside.quantile(q).or_else(|| self.across.quantile(q))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_within_two_percent_over_nine_decades() {
        for scale in [1u64, 37, 1_000, 1_000_000, 1_000_000_000] {
            let mut histogram = Histogram::default();
            (1..=10_000).for_each(|i| histogram.add(i * scale));
            for (q, exact) in [(0.5, 5_000.0), (0.95, 9_500.0), (0.99, 9_900.0), (0.999, 9_990.0), (1.0, 10_000.0)] {
                let exact = exact * scale as f64;
                let seen = histogram.quantile(q).unwrap();
                assert!((seen / exact - 1.0).abs() < 0.02, "{q} of {scale}: {seen} for {exact}");
            }
        }
        assert_eq!(Histogram::default().quantile(0.5), None);
    }

    #[test]
    fn every_length_has_a_bucket_and_buckets_follow_each_other() {
        let mut last = 0;
        for nanos in (0..100_000).chain((17..64).flat_map(|bit| [(1u64 << bit) - 1, 1 << bit])) {
            let at = bucket(nanos);
            assert!(at >= last && at < FINE * 64, "{nanos}");
            last = at;
        }
        assert!(bucket(u64::MAX) < FINE * 64);
    }

    #[test]
    fn requests_that_span_steps_count_only_where_no_other_ended() {
        let (mut all, mut one) = (Latencies::default(), Latencies::default());
        one.across.add(1 << 30);
        all.take(&mut one);
        assert!(all.quantile(0.5).unwrap() > 1e9 && one.quantile(0.5).is_none());
        one.inside.add(1_000);
        all.take(&mut one);
        assert!(all.quantile(0.99).unwrap() < 1_100.0);
    }
}
