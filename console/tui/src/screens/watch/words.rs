//! What is said of the watch and of the machine under the cursor, in sentences.

use muster_watch::{Alert, Frame, Standing};

use crate::screens::watch::rows::is_open;
use crate::screens::watch::state::State;
use crate::screens::watch::time::{clock, lasting};
use crate::snapshot::{Origin, Replay, Watching};
use crate::text::{counted, cut, width};
use crate::theme::Role;

/// Seconds of evidence from which it is worth words.
const COUNTS: f32 = 5.0;

/// A sentence and how it is drawn.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Said {
    pub(crate) text: String,
    pub(crate) role: Role,
}

fn plain(text: String) -> Said {
    Said { text, role: Role::Text }
}

/// Whether machines are compared, and if not, why.
pub(crate) fn standing(watch: &Watching, frame: Option<&Frame>) -> Said {
    let lost: Vec<&str> =
        watch.nodes.iter().filter(|node| node.lost.is_some()).map(|node| node.name.as_str()).collect();
    let machines = counted(watch.nodes.len(), "machine", "machines");
    let said = match frame.map_or(Standing::Nothing, |frame| frame.standing) {
        Standing::Nothing if frame.is_none() && watch.over => plain("it ended before anything was told".to_owned()),
        Standing::Nothing if frame.is_none() => plain(format!("waiting for the first telemetry of {machines}")),
        Standing::Nothing => plain("a gap: nothing was told".to_owned()),
        Standing::Undecided(lack) => Said { text: format!("undecided: {lack}"), role: Role::Attention },
        Standing::Learning { left_s } => plain(format!("learning what is usual ({} left)", lasting(left_s))),
        Standing::Begins => plain("the job has just begun or gone on; nobody is compared yet".to_owned()),
        Standing::Still { for_s } => {
            Said { text: format!("the job has stood still for {}", lasting(for_s)), role: Role::Attention }
        }
        Standing::Compares { metrics: 0 } => plain("every level is far from usual, so nobody is compared".to_owned()),
        Standing::Compares { metrics } => {
            plain(format!("comparing {machines} in {}", counted(metrics, "metric", "metrics")))
        }
    };
    match lost.as_slice() {
        [] => said,
        [one] => Said { text: format!("{}; {one} does not answer", said.text), role: Role::Attention },
        many => Said { text: format!("{}; {} do not answer", said.text, many.len()), role: Role::Attention },
    }
}

/// Where the ticks come from, and the time that is looked at.
pub(crate) fn moment(state: &State, watch: &Watching) -> Said {
    let Some(newest) = watch.frames.last() else { return plain(String::new()) };
    let Some(frame) = state.seq.and(state.frame(watch)) else {
        let text = match &watch.origin {
            _ if watch.over => format!("OVER at {} UTC", clock(newest.end_s())),
            Origin::Live => format!("LIVE {} UTC", clock(newest.end_s())),
            Origin::Recording { speed, at_s, .. } => format!("PLAYS {} UTC, {}", clock(*at_s), fast(*speed)),
        };
        return Said { text, role: Role::Head };
    };
    let back = lasting(newest.end_s() - frame.end_s());
    Said { text: format!("AT {} UTC, {back} back", clock(frame.end_s())), role: Role::Mode }
}

/// How fast a recording goes on, as the header says it of a replay: `15x`.
fn fast(speed: f64) -> String {
    Replay { at_ms: 0, from_ms: 0, until_ms: 0, speed, paused: false }.fast()
}

/// What is known of the machine under the cursor in the chosen metric.
pub(crate) fn verdict(state: &State, watch: &Watching) -> Said {
    let (Some(node), Some(frame)) = (watch.nodes.get(state.node), state.frame(watch)) else {
        return plain(String::new());
    };
    let of_node = |alert: &&Alert| alert.node == node.name;
    let open = watch.alerts.iter().rev().filter(of_node).find(|alert| is_open(alert, frame));
    if let Some(alert) = open {
        let (since, told) = (lasting(frame.end_s() - alert.since_s), lasting(frame.end_s() - alert.alerted_s));
        let (who, what) = alert.sentence.split_once(": ").unwrap_or((&alert.node, &alert.sentence));
        let text = format!("{who}, odd for {since}, told {told} ago: {what}");
        return Said { text, role: Role::Act };
    }
    if let Some(why) = &node.lost {
        return Said { text: format!("{}: no answer: {why}", node.name), role: Role::Attention };
    }
    let shows = shows(state, watch, frame);
    if let Standing::Undecided(lack) = frame.standing {
        return Said { text: format!("Nobody can be named: {lack}. {shows}"), role: Role::Attention };
    }
    let evidence = frame.evidence(state.node);
    let needed = frame.needed_s;
    let before = watch
        .alerts
        .iter()
        .rev()
        .filter(of_node)
        .find(|alert| alert.until_s.is_some_and(|until| until <= frame.end_s()));
    if evidence >= COUNTS {
        let left = lasting(f64::from(needed - evidence));
        // The table shows what the chosen metric says alone.
        let alone = frame.look(state.node, state.metric).evidence.abs();
        let of = if evidence - alone > 1.0 { " over all metrics" } else { "" };
        let text = if evidence < needed {
            format!("{shows} Evidence for {evidence:.0} of {needed:.0} s{of}: named in about {left} if it stays so.")
        } else {
            format!(
                "{shows} Evidence for {evidence:.0} s{of}, enough to be named, but it is not alone or no longer far off."
            )
        };
        return Said { text, role: Role::Attention };
    }
    if let Some(until) = before.and_then(|alert| alert.until_s) {
        return plain(format!("{shows} Like its peers again since {}.", clock(until)));
    }
    plain(shows)
}

/// `text` in `room` cells; what does not fit is left out by whole words, where it has more than one.
pub(crate) fn fit(text: &str, room: usize, ascii: bool) -> String {
    let short = cut(text, room, ascii);
    let whole = short.len() == text.len() && short == text;
    match short.rfind(' ').filter(|_| !whole) {
        Some(at) => format!("{}{}", &short[..at], if ascii { "~" } else { "…" }),
        None => short,
    }
}

/// A title in `room` cells: its first words and the last one, which tells it from others that begin alike.
pub(crate) fn title(text: &str, room: usize, ascii: bool) -> String {
    let mark = if ascii { "~" } else { "…" };
    let last = text.rsplit(' ').next().unwrap_or_default();
    let mut head = String::new();
    for word in text.split(' ') {
        if width(&head) + width(word) + 3 + width(last) > room {
            break;
        }
        head += if head.is_empty() { "" } else { " " };
        head += word;
    }
    let fits = width(text) <= room || head.is_empty();
    if fits { fit(text, room, ascii) } else { format!("{head}{mark} {last}") }
}

/// `n07: GPU power 300 W, 5 peers show 500 W (half of them 498 W to 503 W).`
fn shows(state: &State, watch: &Watching, frame: &Frame) -> String {
    let (Some(node), Some(metric)) = (watch.nodes.get(state.node), watch.metrics.get(state.metric)) else {
        return String::new();
    };
    let look = frame.look(state.node, state.metric);
    let (name, title) = (&node.name, metric.title());
    let show = |value: f32| metric.about.show(f64::from(value));
    let peers = frame.peers(state.node, state.metric);
    match (look.value.is_finite(), peers) {
        (false, None) => format!("Nobody tells {title} at this time."),
        (false, Some(peers)) => format!("{name} tells no {title}; {} peers show {}.", peers.count, show(peers.median)),
        (true, None) => format!("{name}: {title} {}; no peer tells it.", show(look.value)),
        (true, Some(peers)) => {
            let (low, high) = (show(peers.low), show(peers.high));
            let band = if low == high { String::new() } else { format!(", half of them {low} to {high}") };
            let score = match look.score {
                score if score.is_nan() => "; not compared yet".to_owned(),
                score if score.abs() < 3.0 => "; as usual for it".to_owned(),
                score => format!(
                    "; {:.1} standard deviations {} usual",
                    score.abs(),
                    if score < 0.0 { "below" } else { "above" }
                ),
            };
            format!("{name}: {title} {}, {} peers {}{band}{score}.", show(look.value), peers.count, show(peers.median))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_does_not_fit_is_left_out_by_whole_words() {
        let title = "network throughput sent";
        assert_eq!(fit(title, 23, false), title);
        assert_eq!(fit(title, 22, false), "network throughput…");
        assert_eq!(fit(title, 12, true), "network~");
        assert_eq!(fit("utilisation", 6, false), "utili…", "a word alone is cut");
    }

    #[test]
    fn a_recording_goes_on_as_fast_as_the_header_says() {
        let speeds = [14.983_333_333_333_333, 60.0, 4.0, 0.5, 9.94].map(fast);
        assert_eq!(speeds, ["15x", "60x", "4x", "0.5x", "9.9x"]);
    }

    #[test]
    fn titles_that_begin_alike_stay_apart() {
        let waits = "time in which a task waited for memory";
        assert_eq!(super::title(waits, 22, false), "time in which… memory");
        assert_eq!(super::title(waits, 38, false), waits);
        assert_eq!(super::title("network throughput sent", 22, true), "network~ sent");
        assert_eq!(super::title("utilisation", 6, false), "utili…");
    }
}
