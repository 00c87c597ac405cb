//! Smooths an estimate that is recomputed every second.

use muster_tui::snapshot::Left;

/// The time to show for `estimate` at `now`, given what was shown `before`. It counts down with the clock, stands still while
/// things take slightly longer than estimated, and rises only in one step, when the estimate has grown considerably.
pub fn steady(before: Option<(u64, Left)>, now: u64, estimate: Left) -> Left {
    let Some((at, shown)) = before.filter(|(_, shown)| shown.measured == estimate.measured) else { return estimate };
    let counted = shown.ms.saturating_sub(now.saturating_sub(at));
    let ms = if estimate.ms > shown.ms + shown.ms / 4 + 2_000 {
        estimate.ms
    } else if estimate.ms >= counted {
        estimate.ms.min(shown.ms)
    } else {
        counted - (counted - estimate.ms) / 4
    };
    Left { ms, ..estimate }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(before: u64, estimate: u64) -> u64 {
        let left = |s: u64| Left { ms: s * 1000, measured: true };
        steady(Some((0, left(before))), 1_000, left(estimate)).ms / 1000
    }

    #[test]
    fn what_is_shown_falls_with_the_clock_and_rises_only_for_news() {
        assert_eq!(shown(100, 99), 99, "as was said");
        assert_eq!(shown(100, 104), 100, "a little later than was said");
        assert_eq!(shown(100, 140), 140, "much later");
        assert_eq!(shown(100, 59), 89, "earlier: it is approached");
        let planned = Left { ms: 60_000, measured: false };
        let measured = Left { ms: 5_000, measured: true };
        assert_eq!(
            steady(Some((0, planned)), 1_000, measured),
            measured,
            "a plan is forgotten once something is known"
        );
    }
}
