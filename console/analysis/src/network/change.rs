//! How is the value of pairs beside the usual one said, whichever way the metric is better?

/// `-31 %`, `+82 %`, and past a factor of two `5.1x`.
pub(super) fn change(share: f64) -> String {
    if share > 2.0 { format!("{share:.1}x") } else { format!("{:+.0} %", (share - 1.0) * 100.0) }
}

/// The same with the words that lead over to whom it is compared with: `-31 % against`, `5.1x that of`.
pub(super) fn against(share: f64) -> String {
    format!("{} {}", change(share), if share > 2.0 { "that of" } else { "against" })
}

/// Both ends of an interval: `-40 to -31 %`, or `3.0x to 5.1x`.
pub(super) fn between([low, high]: [f64; 2]) -> String {
    if high > 2.0 {
        return format!("{low:.1}x to {high:.1}x");
    }
    let [low, high] = [low, high].map(|share| (share - 1.0) * 100.0);
    format!("{low:+.0} to {high:+.0} %")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_doubled_is_above_and_past_that_a_factor() {
        assert_eq!([0.5, 1.82, 2.0, 5.1].map(change), ["-50 %", "+82 %", "+100 %", "5.1x"]);
        assert_eq!([0.5, 2.0, 5.1].map(against), ["-50 % against", "+100 % against", "5.1x that of"]);
        assert_eq!(
            [[0.4, 0.6], [0.9, 2.0], [1.6, 2.4]].map(between),
            ["-60 to -40 %", "-10 to +100 %", "1.6x to 2.4x"]
        );
    }
}
