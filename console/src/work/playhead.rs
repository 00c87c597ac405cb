//! Where is a replay, and how fast does it go on? A moment of the recording that moves with our clock.

use std::time::Instant;

use muster_tui::Play;

/// Seconds that a recording takes when nobody says how fast.
const WHOLE_S: f64 = 60.0;
/// Seconds of playing that a step goes back or on.
const STEP_S: f64 = 5.0;
/// Seconds of a recording that pass in a second, at least and at most.
pub const SPEEDS: [f64; 2] = [0.1, 100_000.0];

/// The moment of a recording that is shown. Times are seconds since 1970 UTC.
#[derive(Clone, Debug)]
pub struct Playhead {
    span: (f64, f64),
    /// The moment shown at `since`, or all the time while it is paused.
    at_s: f64,
    /// When it began to go on from there; `None` before it begins, and while it is paused.
    since: Option<Instant>,
    speed: f64,
    paused: bool,
}

impl Playhead {
    /// At the first moment of `span`; it begins with [`Playhead::start`].
    #[must_use]
    pub fn new(span: (f64, f64), speed: f64) -> Self {
        Self { span, at_s: span.0, since: None, speed, paused: false }
    }

    /// How fast a recording of this `span` is played in about a minute; a shorter one as it was.
    #[must_use]
    pub fn pace((first, last): (f64, f64)) -> f64 {
        ((last - first) / WHOLE_S).clamp(1.0, SPEEDS[1])
    }

    /// Goes on from here, unless it does already or is paused.
    pub fn start(&mut self, now: Instant) {
        if !self.paused {
            self.since.get_or_insert(now);
        }
    }

    /// The moment that is shown.
    #[must_use]
    pub fn at_s(&self, now: Instant) -> f64 {
        let passed = self.since.map_or(0.0, |since| now.saturating_duration_since(since).as_secs_f64());
        (self.at_s + passed * self.speed).clamp(self.span.0, self.span.1)
    }

    /// Goes on at another moment.
    pub fn go_to(&mut self, at_s: f64, now: Instant) {
        self.at_s = at_s.clamp(self.span.0, self.span.1);
        self.since = (!self.paused).then_some(now);
    }

    /// Does what a key asks for.
    pub fn obey(&mut self, play: Play, now: Instant) {
        let at_s = self.at_s(now);
        let step = STEP_S * self.speed;
        match play {
            Play::Pause => self.paused = !self.paused,
            Play::Slower => self.speed = (self.speed / 2.0).max(SPEEDS[0]),
            Play::Faster => self.speed = (self.speed * 2.0).min(SPEEDS[1]),
            Play::Back => return self.go_to(at_s - step, now),
            Play::On => return self.go_to(at_s + step, now),
            Play::Start => return self.go_to(self.span.0, now),
            Play::End => return self.go_to(self.span.1, now),
        }
        self.go_to(at_s, now);
    }

    /// The first and the last moment.
    #[must_use]
    pub const fn span(&self) -> (f64, f64) {
        self.span
    }

    /// Seconds of the recording that pass in a second.
    #[must_use]
    pub const fn speed(&self) -> f64 {
        self.speed
    }

    /// Where it is, for the header of the screen.
    #[must_use]
    pub fn shown(&self, now: Instant) -> muster_tui::snapshot::Replay {
        // A moment of the recording is a whole millisecond, which a second as a float is not quite.
        let ms = |at_s: f64| (at_s * 1e3).round() as u64;
        let (from_ms, until_ms) = (ms(self.span.0), ms(self.span.1));
        muster_tui::snapshot::Replay {
            at_ms: ms(self.at_s(now)),
            from_ms,
            until_ms,
            speed: self.speed,
            paused: self.paused,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn it_moves_with_the_clock_stands_while_paused_and_never_leaves_the_recording() {
        let begin = Instant::now();
        let at = |s: f64| begin + Duration::from_secs_f64(s);
        let mut head = Playhead::new((100.0, 400.0), 10.0);
        assert_eq!(head.at_s(at(5.0)), 100.0, "it has not begun");
        head.start(at(5.0));
        head.start(at(6.0));
        assert_eq!(head.at_s(at(7.0)), 120.0);
        head.obey(Play::Pause, at(7.0));
        head.start(at(8.0));
        assert_eq!((head.at_s(at(60.0)), head.shown(at(60.0)).paused), (120.0, true));
        head.obey(Play::On, at(60.0));
        assert_eq!(head.at_s(at(70.0)), 170.0, "five seconds at ten times the speed");
        head.obey(Play::Pause, at(70.0));
        head.obey(Play::Faster, at(71.0));
        assert_eq!((head.at_s(at(71.0)), head.at_s(at(72.0)), head.speed()), (180.0, 200.0, 20.0));
        head.obey(Play::Back, at(72.0));
        assert_eq!(head.at_s(at(72.0)), 100.0);
        head.obey(Play::End, at(73.0));
        assert_eq!(head.at_s(at(500.0)), 400.0);
        head.obey(Play::Start, at(500.0));
        head.obey(Play::Slower, at(500.0));
        assert_eq!(head.at_s(at(501.0)), 110.0);
    }

    #[test]
    fn without_a_word_a_recording_takes_a_minute_and_a_short_one_as_long_as_it_did() {
        assert_eq!(Playhead::pace((0.0, 1_800.0)), 30.0);
        assert_eq!(Playhead::pace((0.0, 20.0)), 1.0);
    }
}
