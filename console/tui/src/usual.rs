//! How is a share of the usual said, where more of a metric is better and where less of it is?
//!
//! The map has how good a pair is: half the rate and twice the latency are 0.5. Words and numbers are of the metric itself.

use muster_wire::Direction;

/// Value over the usual value, of a share that is not zero.
fn ratio(share: f32, direction: Direction) -> f32 {
    match direction {
        Direction::HigherIsBetter => share,
        Direction::LowerIsBetter => share.recip(),
    }
}

/// `31 %`, and past twice of the usual `5.1x`.
pub(crate) fn said(share: f32, direction: Direction) -> String {
    match ratio(share, direction) {
        _ if share <= 0.0 => "failed".to_owned(),
        ratio if ratio > 2.0 => format!("{ratio:.1}x"),
        ratio => format!("{:.0} %", ratio * 100.0),
    }
}

/// `31 % of usual`, `5.1x the usual`, `failed`: on the screen and in reports.
#[must_use]
pub fn words(share: f32, direction: Direction) -> String {
    let said = said(share, direction);
    match ratio(share, direction) {
        _ if share <= 0.0 => said,
        ratio if ratio > 2.0 => format!("{said} the usual"),
        _ => format!("{said} of usual"),
    }
}

/// What [`said`] says, in three cells: per cent, from ten times the usual on a factor.
pub(crate) fn number(share: f32, direction: Direction) -> String {
    match ratio(share, direction) {
        ratio if ratio > 99.0 => ">99".to_owned(),
        ratio if ratio >= 9.995 => format!("{ratio:.0}x"),
        ratio => format!("{:.0}", ratio * 100.0),
    }
}

/// Words for the steps of the legend, worst first.
pub(crate) const fn steps(direction: Direction) -> [&'static str; 7] {
    match direction {
        Direction::HigherIsBetter => ["fail", "<25", "<50", "<75", "<90", "<95", "usual"],
        Direction::LowerIsBetter => ["fail", ">400", ">200", ">133", ">111", ">105", "usual"],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn less_than_usual_is_said_of_a_rate_and_more_of_a_latency_that_is_as_bad() {
        let both = |share| [Direction::HigherIsBetter, Direction::LowerIsBetter].map(|way| said(share, way));
        assert_eq!(both(0.0), ["failed", "failed"]);
        assert_eq!(both(0.02), ["2 %", "50.0x"]);
        assert_eq!(both(0.5), ["50 %", "200 %"]);
        assert_eq!(both(1.0), ["100 %", "100 %"]);
        assert_eq!(both(1.25), ["125 %", "80 %"]);
        assert_eq!(words(0.31, Direction::HigherIsBetter), "31 % of usual");
        assert_eq!(words(0.02, Direction::LowerIsBetter), "50.0x the usual");
        for direction in [Direction::HigherIsBetter, Direction::LowerIsBetter] {
            assert_eq!(words(0.0, direction), "failed");
        }
    }

    #[test]
    fn numbers_have_room_in_three_cells() {
        let number = |share| number(share, Direction::LowerIsBetter);
        assert_eq!([0.001, 0.02, 0.1, 0.1006, 0.5].map(number), [">99", "50x", "10x", "994", "200"]);
    }
}
