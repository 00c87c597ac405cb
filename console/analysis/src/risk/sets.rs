//! Published survival data that tests hold models against.

use super::Table;

/// Weeks in remission under 6-MP and whether they ended (Freireich et al. 1963).
pub(crate) const LEUKAEMIA_TREATED: &[(f64, bool)] = &[
    (6.0, true),
    (6.0, true),
    (6.0, true),
    (6.0, false),
    (7.0, true),
    (9.0, false),
    (10.0, true),
    (10.0, false),
    (11.0, false),
    (13.0, true),
    (16.0, true),
    (17.0, false),
    (19.0, false),
    (20.0, false),
    (22.0, true),
    (23.0, true),
    (25.0, false),
    (32.0, false),
    (32.0, false),
    (34.0, false),
    (35.0, false),
];

/// The same under placebo.
pub(crate) const LEUKAEMIA_PLACEBO: &[(f64, bool)] = &[
    (1.0, true),
    (1.0, true),
    (2.0, true),
    (2.0, true),
    (3.0, true),
    (4.0, true),
    (4.0, true),
    (5.0, true),
    (5.0, true),
    (8.0, true),
    (8.0, true),
    (8.0, true),
    (8.0, true),
    (11.0, true),
    (11.0, true),
    (12.0, true),
    (12.0, true),
    (15.0, true),
    (17.0, true),
    (22.0, true),
    (23.0, true),
];

/// A table without information but its times.
pub(crate) fn survival_set(rows: &[(f64, bool)]) -> Table {
    let (time, event): (Vec<f64>, Vec<bool>) = rows.iter().copied().unzip();
    Table::new(vec!["x".into()], vec![0.0; time.len()], time, event).unwrap()
}
