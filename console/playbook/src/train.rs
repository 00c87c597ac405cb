//! What a step asks of a training over all its nodes, and how long that should and may take.

use std::time::Duration;

use muster_wire::{Between, Profile, TRAIN_MODELS};

/// Until all ranks have met.
const MEET: Duration = Duration::from_secs(30);
/// Beyond all of that: the ranks ask one another who is to blame, and say it.
const SLACK: Duration = Duration::from_secs(30);
/// How long a training lasts in each profile, where the step does not say it; what so many steps may take, where it does; and what
/// one operation may take, waiting for the slowest rank.
const LENGTH: [Duration; 4] =
    [Duration::from_secs(5), Duration::from_secs(60), Duration::from_secs(180), Duration::from_secs(600)];
const STEPS: [Duration; 4] =
    [Duration::from_secs(120), Duration::from_secs(300), Duration::from_secs(1_200), Duration::from_secs(3_600)];
const TIMEOUT: [Duration; 4] =
    [Duration::from_secs(20), Duration::from_secs(30), Duration::from_secs(60), Duration::from_secs(120)];
/// Batches of a step of a small model.
const BATCHES: u32 = 32;
/// Processes that start, and ranks that meet.
const START: Duration = Duration::from_secs(5);

/// A training over all nodes of a step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Train {
    /// One of [`TRAIN_MODELS`]; that of the profile without it.
    pub model: Option<String>,
    /// Ranks of each node, at least 1.
    pub ranks_per_node: u16,
    /// Where it ends; as the profile says without it.
    pub length: Option<Length>,
    /// How gradients get from node to node where GPUs compute.
    pub between: Between,
    /// Longest that one operation may take; as the profile says without it.
    pub timeout: Option<Duration>,
}

/// Where a training ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Length {
    /// After so many steps.
    Steps(u64),
    /// With the first step that ends after so long.
    Time(Duration),
}

impl Train {
    /// The model that is trained.
    #[must_use]
    pub fn model(&self, profile: Profile) -> &str {
        let usual = if profile >= Profile::Standard { TRAIN_MODELS[1] } else { TRAIN_MODELS[0] };
        self.model.as_deref().unwrap_or(usual)
    }

    /// Batches of a rank in a step: enough of the small models that a step is more than starting to compute.
    #[must_use]
    pub fn batches(&self, profile: Profile) -> u32 {
        if self.model(profile).ends_with("-nano") { BATCHES } else { 1 }
    }

    /// Where it ends.
    #[must_use]
    pub fn length(&self, profile: Profile) -> Length {
        self.length.unwrap_or(Length::Time(LENGTH[profile as usize]))
    }

    /// All ranks must have met within this.
    #[must_use]
    pub fn meet(&self) -> Duration {
        self.timeout.map_or(MEET, |timeout| timeout.max(MEET / 3).min(MEET))
    }

    /// An operation must be over within this.
    #[must_use]
    pub fn timeout(&self, profile: Profile) -> Duration {
        self.timeout.unwrap_or(TIMEOUT[profile as usize])
    }

    /// Longest that it may take.
    #[must_use]
    pub fn limit(&self, profile: Profile) -> Duration {
        let whole = match self.length(profile) {
            Length::Steps(_) => STEPS[profile as usize],
            Length::Time(time) => time,
        };
        self.meet() + whole + self.timeout(profile) + SLACK
    }

    /// What it is expected to take.
    #[must_use]
    pub fn budget(&self, profile: Profile) -> Duration {
        START
            + match self.length(profile) {
                Length::Steps(_) => LENGTH[profile as usize],
                Length::Time(time) => time,
            }
    }

    /// In a few words.
    #[must_use]
    pub fn words(&self, profile: Profile) -> String {
        let length = match self.length(profile) {
            Length::Steps(steps) => format!("{steps} steps"),
            Length::Time(time) => format!("{} s", time.as_secs()),
        };
        let ranks = if self.ranks_per_node == 1 { "rank" } else { "ranks" };
        format!("{}, {} {ranks} a node, {length}", self.model(profile), self.ranks_per_node)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_training_takes_what_its_step_says_or_else_what_its_profile_does() {
        let plain = Train { model: None, ranks_per_node: 1, length: None, between: Between::Auto, timeout: None };
        assert_eq!(plain.words(Profile::Quick), "gpt2-nano, 1 rank a node, 60 s");
        assert_eq!(plain.words(Profile::Standard), "gpt2-small, 1 rank a node, 180 s");
        let own =
            Train { model: Some("lstm".into()), ranks_per_node: 2, length: Some(Length::Steps(40)), ..plain.clone() };
        assert_eq!(own.words(Profile::Full), "lstm, 2 ranks a node, 40 steps");
        assert!(Profile::ALL.into_iter().all(|profile| plain.budget(profile) < plain.limit(profile)));
    }
}
