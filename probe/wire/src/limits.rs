//! How much a node may say before the console stops listening.

use crate::Profile;

/// Largest body of one frame, bytes: room for the longest series. Checked before anything is allocated.
pub const FRAME_BYTES: usize = 640 << 10;
/// Most values in one series; longer series must be split or thinned by the probe.
pub const SERIES_VALUES: usize = 65_536;
/// Longest text of any kind (names, reasons, log lines), bytes after cleaning.
pub const TEXT_BYTES: usize = 4_096;
/// Longest benchmark, metric, engine or fact name, bytes.
pub const NAME_BYTES: usize = 96;
/// Most facts in one frame.
pub const FACTS: usize = 8_192;
/// Bytes of banner and login noise skipped while looking for the preamble.
pub const NOISE_BYTES: usize = 256 * 1024;
/// Most words in which a probe tells its abilities.
pub const CAPABILITIES: usize = 64;
/// Bytes of results that one benchmark of one node may send in the longest profile.
pub const BENCHMARK_BYTES: usize = 64 << 20;
/// Most metrics that a node tells of itself while a job runs.
pub const COLUMNS: usize = 256;
/// Addresses of other nodes in one look.
pub const PEERS: usize = 64;
/// Most series that one end of a pair may send.
pub const PAIR_SERIES: usize = 64;
/// Most facts that one end of a pair may send.
pub const PAIR_FACTS: usize = 64;

/// Most bytes of one piece of a file.
pub const CHUNK_BYTES: usize = 64 << 10;
/// Most bytes that a node may send of one job, whatever was asked for.
pub const JOB_BYTES: u32 = 64 << 20;

/// Bytes of results that one work of one node may send in a profile, as they lie in memory. The shorter profiles measure for
/// seconds, and a node that lies must not cost more than it may.
#[must_use]
pub const fn work_bytes(profile: Profile) -> usize {
    match profile {
        Profile::Smoke => 640 << 10,
        Profile::Quick => 1 << 20,
        Profile::Standard => 8 << 20,
        Profile::Full => BENCHMARK_BYTES,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_longer_profile_may_send_more_and_the_shortest_a_frame() {
        let all = [Profile::Smoke, Profile::Quick, Profile::Standard, Profile::Full].map(work_bytes);
        assert!(all.is_sorted() && all[0] >= 512 << 10 && all[1] == 1 << 20, "{all:?}");
    }
}
