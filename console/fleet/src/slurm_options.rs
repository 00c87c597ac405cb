//! What does Slurm need to know to start probes: partition, account and the like, or a job that is there already?

use serde::Deserialize;

/// How nodes are asked of Slurm. What is left out is Slurm's to decide.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Options {
    /// Partition of the allocation.
    pub partition: Option<String>,
    /// Account it is charged to.
    pub account: Option<String>,
    /// Reservation it is made in.
    pub reservation: Option<String>,
    /// Quality of service.
    pub qos: Option<String>,
    /// Whether the nodes are wanted for muster alone; they are where this is left out, since a node that others use measures them.
    pub exclusive: Option<bool>,
    /// Job whose allocation is used instead of one of our own.
    pub job: Option<String>,
    /// Seconds that an allocation is waited for; 600 where left out.
    pub wait: Option<u32>,
    /// Time limit of the allocation, minutes.
    pub time: Option<u32>,
    /// Directory that the console and all nodes see: the probe is put there instead of being sent by `sbcast`.
    pub shared: Option<String>,
    /// Nodes are taken from Slurm and reached over SSH.
    #[serde(default)]
    pub ssh: bool,
}

const KEYS: &str = "partition, account, reservation, qos, exclusive, job, wait, time, shared, ssh";

impl Options {
    /// Reads `partition=gpu,exclusive=no,wait=60`; nothing is the defaults.
    ///
    /// # Errors
    /// When a key is unknown or its value is none.
    pub fn parse(text: &str) -> Result<Self, String> {
        let mut options = Self::default();
        for part in text.split(',').map(str::trim).filter(|part| !part.is_empty()) {
            let (key, value) = part.split_once('=').unwrap_or((part, ""));
            let number = || value.parse().map_err(|_| format!("{key} is '{value}'; expected a whole number"));
            match key {
                "yes" => {}
                "partition" => options.partition = Some(value.to_owned()),
                "account" => options.account = Some(value.to_owned()),
                "reservation" => options.reservation = Some(value.to_owned()),
                "qos" => options.qos = Some(value.to_owned()),
                "job" => options.job = Some(value.to_owned()),
                "shared" => options.shared = Some(value.to_owned()),
                "exclusive" => options.exclusive = Some(yes(key, value)?),
                "ssh" => options.ssh = yes(key, value)?,
                "wait" => options.wait = Some(number()?),
                "time" => options.time = Some(number()?),
                _ => return Err(format!("'{key}' is unknown: {KEYS}")),
            }
        }
        options.checked()
    }

    /// Itself, if no value could be taken for an option or more than one word.
    ///
    /// # Errors
    /// When one could.
    pub fn checked(self) -> Result<Self, String> {
        let words = [
            ("partition", &self.partition),
            ("account", &self.account),
            ("reservation", &self.reservation),
            ("qos", &self.qos),
            ("job", &self.job),
            ("shared", &self.shared),
        ];
        for (key, word) in words {
            let legal = |c: char| c.is_alphanumeric() || "._-@/+:".contains(c);
            if let Some(word) = word
                && (word.is_empty() || word.starts_with('-') || !word.chars().all(legal))
            {
                return Err(format!("{key} is '{}'; expected one word", muster_wire::clean(word, 80)));
            }
        }
        if self.shared.as_ref().is_some_and(|dir| !dir.starts_with('/')) {
            return Err("shared is no absolute path".to_owned());
        }
        // Slurm takes 0 for no limit at all.
        if self.time == Some(0) {
            return Err("time is '0'; expected a whole number of minutes, 1 or more".to_owned());
        }
        Ok(self)
    }

    /// These, and for what they leave out, `other`.
    #[must_use]
    pub fn over(self, other: Self) -> Self {
        Self {
            partition: self.partition.or(other.partition),
            account: self.account.or(other.account),
            reservation: self.reservation.or(other.reservation),
            qos: self.qos.or(other.qos),
            exclusive: self.exclusive.or(other.exclusive),
            job: self.job.or(other.job),
            wait: self.wait.or(other.wait),
            time: self.time.or(other.time),
            shared: self.shared.or(other.shared),
            ssh: self.ssh || other.ssh,
        }
    }

    /// The words of an allocation for salloc.
    pub(super) fn words(&self) -> Vec<String> {
        let named = [
            ("partition", &self.partition),
            ("account", &self.account),
            ("reservation", &self.reservation),
            ("qos", &self.qos),
        ];
        let mut words: Vec<String> =
            named.iter().filter_map(|(key, word)| Some(format!("--{key}={}", word.as_ref()?))).collect();
        words.extend(self.exclusive.unwrap_or(true).then(|| "--exclusive".to_owned()));
        words.extend(self.time.map(|minutes| format!("--time={minutes}")));
        words
    }
}

impl std::fmt::Display for Options {
    /// As [`Options::parse`] reads it; `yes` where nothing is said.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let text = |key: &str, value: &Option<String>| value.as_ref().map(|value| format!("{key}={value}"));
        let number = |key: &str, value: Option<u32>| value.map(|value| format!("{key}={value}"));
        let parts = [
            text("partition", &self.partition),
            text("account", &self.account),
            text("reservation", &self.reservation),
            text("qos", &self.qos),
            self.exclusive.map(|only| format!("exclusive={}", if only { "yes" } else { "no" })),
            text("job", &self.job),
            number("wait", self.wait),
            number("time", self.time),
            text("shared", &self.shared),
            self.ssh.then(|| "ssh".to_owned()),
        ];
        let parts: Vec<String> = parts.into_iter().flatten().collect();
        f.write_str(if parts.is_empty() { "yes" } else { "" })?;
        f.write_str(&parts.join(","))
    }
}

fn yes(key: &str, value: &str) -> Result<bool, String> {
    match value {
        "" | "yes" | "true" => Ok(true),
        "no" | "false" => Ok(false),
        _ => Err(format!("{key} is '{value}'; yes or no")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_are_read_from_one_word_and_the_first_to_speak_counts() {
        let flag = Options::parse("partition=gpu,exclusive=no,wait=60").unwrap();
        let file = Options { partition: Some("batch".into()), account: Some("ops".into()), ..Options::default() };
        let both = flag.over(file);
        assert_eq!(both.words(), ["--partition=gpu", "--account=ops"]);
        assert_eq!(both.to_string(), "partition=gpu,account=ops,exclusive=no,wait=60");
        assert_eq!(Options::parse(&both.to_string()).unwrap(), both);
        assert_eq!(Options::default().words(), ["--exclusive"]);
        for nothing in ["", "yes"] {
            assert_eq!(Options::parse(nothing).unwrap(), Options::default());
        }
    }

    #[test]
    fn what_could_be_taken_for_an_option_of_slurm_is_refused() {
        for text in [
            "partition=-w",
            "partition=",
            "account=a b",
            "reservation=a;b",
            "nodes=4",
            "wait=x",
            "time=-1",
            "time=0",
            "exclusive=maybe",
            "shared=tmp",
        ] {
            assert!(Options::parse(text).is_err(), "{text}");
        }
    }
}
