//! How many spreads of its peers a healthy node may lie off, for a given chance.
//!
//! The peers' spread is an estimate, after peers far out were left out; a healthy node's offset in such spreads follows
//! `b * t` of some degrees of freedom closely, both found by simulation per fleet size ([`LAW`], made by
//! `cargo run --release -p muster-analysis --example decide_quantiles`). With up to five nodes nothing is left out and
//! the law is exact.

use std::sync::OnceLock;

use super::law::LAW;
use super::student;

/// Tables hold quantiles at `10^-17, 10^-16.75, ..., 10^-1`; between them, logarithms are interpolated.
const FIRST: f64 = -17.0;
const PER_DECADE: f64 = 4.0;
const POINTS: usize = 65;
/// Fleet sizes with a table of their own; larger ones use the last.
const SIZES: std::ops::RangeInclusive<usize> = 4..=256;
const ROWS: usize = 253;
/// Degrees of freedom with an exact table.
const DEGREES: usize = 16;

/// Places for what was found before, a power of two: somewhat more than there are metrics.
const MEMO_BITS: u32 = 12;

/// Quantiles of one law.
#[derive(Debug)]
pub(super) struct Quantiles {
    logs: [f64; POINTS],
    /// What is exceeded once in twenty.
    pub(super) one_in_twenty: f64,
}

impl Quantiles {
    fn of(df: f64, factor: f64) -> Self {
        let at = |point: usize| 10_f64.powf(FIRST + point as f64 / PER_DECADE);
        Self {
            logs: std::array::from_fn(|point| (factor * student::quantile(at(point), df)).ln()),
            one_in_twenty: factor * student::quantile(0.05, df),
        }
    }

    /// Spreads exceeded with probability `10^log_p`.
    pub(super) fn at(&self, log_p: f64) -> f64 {
        let at = ((log_p - FIRST) * PER_DECADE).clamp(0.0, (POINTS - 1) as f64 - 1e-3);
        let (point, share) = (at as usize, at.fract());
        self.logs[point].mul_add(1.0 - share, self.logs[point + 1] * share).exp()
    }
}

/// Quantiles found before: most cells share their table, and their chance with a cell of every other metric.
pub(super) struct Memo(Vec<Option<Known>>);

#[derive(Clone, Copy)]
struct Known {
    table: &'static Quantiles,
    logs: [f64; 2],
    found: [f64; 2],
}

impl Memo {
    /// Nothing known yet.
    pub(super) fn new() -> Self {
        Self(vec![None; 1 << MEMO_BITS])
    }

    /// What [`Quantiles::at`] says of two chances.
    pub(super) fn at(&mut self, table: &'static Quantiles, logs: [f64; 2]) -> [f64; 2] {
        // Fibonacci hashing: the upper bits of the product are spread well.
        let place = logs[0].to_bits().wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (u64::BITS - MEMO_BITS);
        let known = &mut self.0[place as usize];
        if let Some(known) = known.filter(|known| std::ptr::eq(known.table, table) && known.logs == logs) {
            return known.found;
        }
        let found = logs.map(|log| table.at(log));
        *known = Some(Known { table, logs, found });
        found
    }
}

/// Where `kept` peers were kept.
pub(super) fn after_leaving_out(kept: usize) -> &'static Quantiles {
    static TABLES: [OnceLock<Quantiles>; ROWS] = [const { OnceLock::new() }; ROWS];
    let nodes = (kept + 1).clamp(*SIZES.start(), *SIZES.end());
    TABLES[nodes - SIZES.start()].get_or_init(|| {
        let (df, factor) = law(nodes as f64);
        Quantiles::of(df, factor)
    })
}

/// Student's t with `df` degrees of freedom, 1 to 16.
pub(super) fn exact(df: usize) -> &'static Quantiles {
    static TABLES: [OnceLock<Quantiles>; DEGREES] = [const { OnceLock::new() }; DEGREES];
    let df = df.clamp(1, DEGREES);
    TABLES[df - 1].get_or_init(|| Quantiles::of(df as f64, 1.0))
}

/// Degrees of freedom and factor of a fleet of `nodes`, interpolated over its logarithm.
fn law(nodes: f64) -> (f64, f64) {
    let above = LAW.partition_point(|row| row.0 < nodes).clamp(1, LAW.len() - 1);
    let (from, to) = (LAW[above - 1], LAW[above]);
    let share = ((nodes / from.0).ln() / (to.0 / from.0).ln()).clamp(0.0, 1.0);
    ((to.1 - from.1).mul_add(share, from.1), (to.2 - from.2).mul_add(share, from.2))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn near(a: f64, b: f64, share: f64) -> bool {
        (a / b - 1.0).abs() < share
    }

    #[test]
    fn a_table_of_degrees_of_freedom_has_the_quantiles_of_students_t() {
        for df in 1..=DEGREES {
            for log_p in [-16.9_f64, -9.3, -3.0, -1.1] {
                let own = student::quantile(10_f64.powf(log_p), df as f64);
                assert!(near(exact(df).at(log_p), own, 0.02), "{df} {log_p}: {} {own}", exact(df).at(log_p));
            }
            assert!(near(exact(df).one_in_twenty, student::quantile(0.05, df as f64), 1e-9), "{df}");
        }
        assert!(std::ptr::eq(exact(0), exact(1)) && std::ptr::eq(exact(99), exact(DEGREES)));
    }

    #[test]
    fn a_table_of_a_fleet_is_that_of_its_row_and_between_rows_lies_between_theirs() {
        for (nodes, df, factor) in LAW {
            let (own_df, own_factor) = law(nodes);
            assert!(near(own_df, df, 1e-9) && near(own_factor, factor, 1e-9), "{nodes}");
            let table = after_leaving_out(nodes as usize - 1);
            assert!(near(table.one_in_twenty, factor * student::quantile(0.05, df), 1e-9), "{nodes}");
        }
        let between = law(28.0).0;
        assert!((19.5902..28.194).contains(&between), "{between}");
        assert_eq!((law(1.0), law(1e9)), (law(4.0), law(256.0)), "what lies outside takes the last row");
        assert!(std::ptr::eq(after_leaving_out(0), after_leaving_out(3)));
        assert!(std::ptr::eq(after_leaving_out(9999), after_leaving_out(255)));
    }
}
