//! What can be said about the connection to a node: its state, and why it failed.

use std::time::Duration;

/// Where the connection to a node stands. Shown as it is; nothing is derived from it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LinkState {
    /// Not begun.
    Idle,
    /// Looking up the host name.
    Resolving,
    /// Waiting for TCP, then for the server's banner and keys.
    TcpConnect,
    /// Logging in.
    Authenticating,
    /// Sending the probe.
    Uploading {
        /// Bytes sent.
        done: u64,
        /// Bytes to send.
        total: u64,
    },
    /// The probe was started and has not spoken yet.
    Starting,
    /// Frames arrive.
    Live,
    /// Waiting before another attempt.
    Waiting {
        /// Time until then, milliseconds.
        retry_in_ms: u64,
        /// Why the last attempt failed.
        because: String,
    },
    /// Ended as planned.
    Closed,
    /// Ended otherwise.
    Failed {
        /// The failure's message.
        why: String,
    },
}

/// What was being done when it failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// Reading the configuration and looking up the name.
    Resolve,
    /// Reaching a jump host.
    Jump,
    /// TCP, banner and key exchange.
    Connect,
    /// Judging the host key.
    HostKey,
    /// Authentication.
    Login,
    /// Finding a directory for the probe and sending it.
    Upload,
    /// Starting the probe until its first frame.
    Start,
    /// Reading frames.
    Run,
}

impl Phase {
    /// The word in messages.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Resolve => "resolve",
            Self::Jump => "jump",
            Self::Connect => "connect",
            Self::HostKey => "host key",
            Self::Login => "login",
            Self::Upload => "upload",
            Self::Start => "start",
            Self::Run => "run",
        }
    }

    /// Whether the node had let us in by then.
    #[must_use]
    pub const fn is_inside(self) -> bool {
        matches!(self, Self::Upload | Self::Start | Self::Run)
    }
}

/// What kind of failure it was, for those who decide by it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FailureKind {
    /// The SSH configuration or the inventory cannot be followed.
    BadConfig,
    /// The name has no address.
    NoAddress,
    /// No route, or no answer to TCP in time.
    Unreachable,
    /// The port is closed.
    Refused,
    /// TCP connects and no banner comes.
    NoBanner,
    /// The connection was closed or reset before login, also after retries (`MaxStartups`).
    Dropped,
    /// The other side does not speak SSH, or no common algorithm.
    NotSsh,
    /// The host key differs from the recorded one.
    HostKeyChanged,
    /// The host key is marked as revoked.
    HostKeyRevoked,
    /// The host key is not recorded and the policy wants it to be.
    HostKeyUnknown,
    /// The known-hosts file cannot be used.
    KnownHosts,
    /// Every key was refused.
    LoginRefused,
    /// There was no usable key to try.
    NoKey,
    /// The login did not end in time.
    LoginTimeout,
    /// The server opens no session (`MaxSessions`, forced command, no shell).
    NoSession,
    /// Commands do not run: `nologin`, a broken shell.
    NoShell,
    /// Every directory for the probe is full.
    DiskFull,
    /// Every directory for the probe is read-only or may not be written.
    NotWritable,
    /// Every directory for the probe forbids execution.
    NoExec,
    /// The upload did not arrive as sent.
    Upload,
    /// The probe could not be started.
    NotStarted,
    /// The probe stopped speaking.
    Hang,
    /// It did, and the node takes TCP connections and says nothing on them.
    Frozen,
    /// The work took longer than allowed.
    TimeLimit,
    /// The probe ended without its last frame: killed, crashed.
    Cut,
    /// The connection was lost.
    LinkLost,
    /// The stream breaks the contract.
    Protocol,
    /// More bytes than the node's orders allow.
    TooMuch,
    /// What the node was not asked for.
    OutOfTurn,
    /// Stopped by the user.
    Cancelled,
}

/// Why a work did not end with `Bye`.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct Failure {
    /// What was being done.
    pub phase: Phase,
    /// What kind.
    pub kind: FailureKind,
    /// One line naming the node and the step.
    pub message: String,
}

impl Failure {
    /// A failure of `node` whose message begins with the node and the phase.
    #[must_use]
    pub fn new(node: &str, phase: Phase, kind: FailureKind, what: impl std::fmt::Display) -> Self {
        Self { phase, kind, message: format!("{node}: {}: {what}", phase.name()) }
    }

    /// The message without the node and the phase.
    #[must_use]
    pub fn what(&self, node: &str) -> &str {
        let start = format!("{node}: {}: ", self.phase.name());
        self.message.strip_prefix(&start).unwrap_or(&self.message)
    }

    /// The failure of a retry, told behind the `first`, which names what the node was doing when it was lost. What is to be done is
    /// decided by the retry. A user who stops muster, and a node that says what it was not asked, are told as they are.
    #[must_use]
    pub fn after(self, first: Option<&Self>) -> Self {
        let Some(first) = first.filter(|_| self.kind != FailureKind::Cancelled && !self.out_of_turn()) else {
            return self;
        };
        // Both messages begin with the node.
        let node = first.message.split_once(&format!(": {}: ", first.phase.name())).map_or("", |(node, _)| node);
        let retry = self.message.strip_prefix(&format!("{node}: ")).unwrap_or(&self.message);
        // The same again is said once.
        let known = first.message.ends_with(retry);
        let message =
            if known { first.message.clone() } else { format!("{}; the retry failed: {retry}", first.message) };
        Self { phase: first.phase, kind: self.kind, message }
    }

    /// Whether the node said what it was not asked, rather than that something broke.
    #[must_use]
    pub const fn out_of_turn(&self) -> bool {
        matches!(self.kind, FailureKind::OutOfTurn | FailureKind::TooMuch)
    }

    /// Whether it may be the network between us and the node, which comes back, rather than the node.
    #[must_use]
    pub const fn passing(&self) -> bool {
        use FailureKind as Kind;
        let unreachable =
            matches!(self.kind, Kind::Unreachable | Kind::Refused | Kind::NoBanner | Kind::Dropped | Kind::NoAddress);
        unreachable || matches!(self.kind, Kind::LoginTimeout | Kind::LinkLost | Kind::Hang | Kind::Frozen)
    }

    /// Whether the node was lost after it had let us in, so that it may come back: the connection went, others ended the probe, or
    /// the probe went silent, also while it starts.
    #[must_use]
    pub const fn lost(&self) -> bool {
        match (self.phase, self.kind) {
            (_, FailureKind::Cut) => true,
            (Phase::Start, kind) => matches!(kind, FailureKind::LinkLost | FailureKind::Hang),
            (phase, _) => phase.is_inside() && self.passing(),
        }
    }

    /// Whether the probe did not arrive, for which a fresh connection may be the remedy.
    pub(crate) fn cut_upload(&self) -> bool {
        self.phase == Phase::Upload && matches!(self.kind, FailureKind::LinkLost | FailureKind::Upload)
    }

    /// Whether another attempt a moment later may well succeed.
    #[must_use]
    pub const fn transient(&self) -> bool {
        matches!(self.kind, FailureKind::Dropped)
    }
}

/// A duration as people say it: `10 s`, `1.5 s`, `250 ms`.
pub(crate) fn spoken(duration: Duration) -> String {
    let ms = duration.as_millis();
    match ms {
        0..1000 => format!("{ms} ms"),
        _ if ms.is_multiple_of(1000) => format!("{} s", ms / 1000),
        _ => format!("{:.1} s", duration.as_secs_f64()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_names_the_node_and_the_step() {
        let failure = Failure::new("n003", Phase::Connect, FailureKind::NoBanner, "no banner within 10 s");
        assert_eq!(failure.to_string(), "n003: connect: no banner within 10 s");
    }

    #[test]
    fn a_retry_that_fails_does_not_hide_how_the_node_was_lost() {
        let hang = Failure::new("n008", Phase::Run, FailureKind::Hang, "no frame for 15 s during net-loopback");
        let step = || Failure::new("n008", Phase::Start, FailureKind::BadConfig, "Slurm starts no step");
        let both = step().after(Some(&hang));
        assert_eq!(
            both.to_string(),
            "n008: run: no frame for 15 s during net-loopback; the retry failed: start: Slurm starts no step"
        );
        assert_eq!(both.what("n008").find("no frame"), Some(0));
        assert!((both.phase, both.kind) == (Phase::Run, FailureKind::BadConfig) && !both.passing());
        assert_eq!(step().after(None), step());
        assert_eq!((step().after(Some(&both)), hang.clone().after(Some(&hang))), (both, hang.clone()));
        let stopped = || Failure::new("n008", Phase::Run, FailureKind::Cancelled, "cancelled");
        assert_eq!(stopped().after(Some(&hang)), stopped());
    }

    #[test]
    fn a_node_is_lost_from_the_upload_on_and_not_where_it_was_never_reached() {
        let lost = |phase, kind| Failure::new("n1", phase, kind, "gone").lost();
        for phase in [Phase::Upload, Phase::Start, Phase::Run] {
            assert!(lost(phase, FailureKind::LinkLost) && lost(phase, FailureKind::Cut), "{phase:?}");
            assert!(!lost(phase, FailureKind::Protocol) && !lost(phase, FailureKind::NotStarted), "{phase:?}");
        }
        assert!(lost(Phase::Run, FailureKind::Hang) && lost(Phase::Start, FailureKind::Hang));
        assert!(!lost(Phase::Start, FailureKind::NoShell), "the login shell runs nothing");
        assert!(lost(Phase::Upload, FailureKind::Unreachable), "a retry that does not reach it any more");
        assert!(!lost(Phase::Connect, FailureKind::Unreachable) && !lost(Phase::Login, FailureKind::LoginTimeout));
    }

    #[test]
    fn durations_are_spoken_without_useless_digits() {
        assert_eq!(spoken(Duration::from_secs(10)), "10 s");
        assert_eq!(spoken(Duration::from_millis(1500)), "1.5 s");
        assert_eq!(spoken(Duration::from_millis(250)), "250 ms");
    }
}
