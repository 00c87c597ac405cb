//! Who is named: the machine that is farthest for minutes on end.

use super::calls::{Far, Look};

/// Seconds after its last window within which a machine that is named again is the same alert: calls overlap.
const SAME_S: f64 = 120.0;

/// A machine that is named.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Named {
    /// Place of the node.
    pub node: usize,
    /// Place of the metric; nothing where all are taken together.
    pub metric: Option<usize>,
    /// Begin of its first window, seconds of the grid.
    pub since_s: f64,
    /// End of the window with which it was the candidate for long enough.
    pub seen_s: f64,
    /// When the call was that named it.
    pub told_s: f64,
    /// End of its last window so far.
    pub last_s: f64,
}

/// Who is named by these calls where a score above `threshold` makes a candidate and the same machine must be it for `continuity_s`. A call names the
/// machines of the first metric that names any, as printed.
#[must_use]
pub fn named(looks: &[Look], threshold: f64, continuity_s: f64) -> Vec<Named> {
    let mut all: Vec<Named> = Vec::new();
    for look in looks {
        let found = look.far.iter().map(|far| runs(far, look, threshold, continuity_s)).find(|runs| !runs.is_empty());
        for run in found.into_iter().flatten() {
            let known = all.iter_mut().rev().find(|known| known.node == run.node);
            match known {
                Some(known) if run.since_s <= known.last_s + SAME_S => known.last_s = known.last_s.max(run.last_s),
                _ => all.push(run),
            }
        }
    }
    all
}

/// Machines that were the candidate of all windows for long enough.
fn runs(far: &Far, look: &Look, threshold: f64, continuity_s: f64) -> Vec<Named> {
    let start = |window: usize| (look.span.start + window * far.stride) as f64;
    let end = |window: usize| start(window) + far.width as f64;
    let need = ((continuity_s / far.stride as f64).ceil() as usize).max(1);
    let mut found = Vec::new();
    let mut from = 0;
    for at in 0..=far.tops.len() {
        let candidate = |at: usize| far.tops.get(at).filter(|(_, score)| *score > threshold).map(|(node, _)| *node);
        let before = candidate(from);
        if at > from && candidate(at) != before {
            if let Some(node) = before.filter(|_| at - from >= need) {
                let (since_s, seen_s) = (start(from), end(from + need - 1));
                let told_s = look.span.end as f64;
                found.push(Named { node, metric: far.metric, since_s, seen_s, told_s, last_s: end(at - 1) });
            }
            from = at;
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn look(span: std::ops::Range<usize>, metrics: &[Vec<(usize, f64)>]) -> Look {
        let far = |(metric, tops): (usize, &Vec<(usize, f64)>)| Far {
            metric: Some(metric),
            width: 8,
            stride: 1,
            tops: tops.clone(),
        };
        Look { span, far: metrics.iter().enumerate().map(far).collect() }
    }

    /// Node 3 is the farthest from `from` to `to`, others in turn before and after.
    fn tops(windows: usize, from: usize, to: usize) -> Vec<(usize, f64)> {
        (0..windows).map(|at| if (from..to).contains(&at) { (3, 0.9) } else { (at % 3, 0.4) }).collect()
    }

    #[test]
    fn a_machine_is_named_after_it_was_the_candidate_long_enough_and_not_before() {
        let long = look(0..480, &[tops(473, 100, 340)]);
        let found = named(std::slice::from_ref(&long), 0.5, 240.0);
        let expected = Named { node: 3, metric: Some(0), since_s: 100.0, seen_s: 347.0, told_s: 480.0, last_s: 347.0 };
        assert_eq!(found, [expected]);
        assert!(named(std::slice::from_ref(&long), 0.95, 240.0).is_empty(), "it is below the threshold");
        assert!(named(&[look(0..480, &[tops(473, 100, 339)])], 0.5, 240.0).is_empty(), "a second too short");
        let mut broken = tops(473, 100, 400);
        broken[250] = (1, 0.9);
        assert!(named(&[look(0..480, &[broken])], 0.5, 240.0).is_empty(), "another machine came between");
    }

    #[test]
    fn the_first_metric_that_names_somebody_ends_the_call_and_the_next_call_does_not_name_him_anew() {
        let second: Vec<(usize, f64)> = vec![(5, 0.9); 473];
        let first = look(0..480, &[tops(473, 0, 473), second.clone()]);
        let next = look(60..960, &[tops(893, 0, 700)]);
        let found = named(&[first, next], 0.5, 240.0);
        assert_eq!(found.iter().map(|named| named.node).collect::<Vec<_>>(), [3]);
        assert_eq!((found[0].told_s, found[0].last_s), (480.0, 767.0));
        let later = look(1_000..1_480, &[tops(473, 0, 473)]);
        assert_eq!(named(&[look(0..480, &[tops(473, 0, 473)]), later], 0.5, 240.0).len(), 2);
    }
    #[test]
    fn a_candidate_is_above_the_threshold_and_a_new_alert_more_than_two_minutes_after_its_last_window() {
        let all = |start: usize| look(start..start + 480, &[tops(473, 0, 473)]);
        assert!(named(&[all(0)], 0.9, 240.0).is_empty());
        let again = |start: usize| named(&[all(0), all(start)], 0.89, 240.0);
        assert_eq!((again(600).len(), again(600)[0].last_s, again(601).len()), (1, 1_080.0, 2));
        assert_eq!(again(601)[1].since_s, 601.0);
    }

    #[test]
    fn windows_that_lie_apart_count_by_the_seconds_between_them() {
        let apart = |windows: usize| {
            let far = Far { metric: None, width: 8, stride: 8, tops: vec![(3, 0.9); windows] };
            named(&[Look { span: 100..580, far: vec![far] }], 0.5, 240.0)
        };
        assert!(apart(29).is_empty());
        let expected = Named { node: 3, metric: None, since_s: 100.0, seen_s: 340.0, told_s: 580.0, last_s: 348.0 };
        assert_eq!(apart(31), [expected]);
    }
}
