//! Pause frames and discards of network cards, which only their drivers count: ethtool's statistics, by many names.

use std::collections::BTreeMap;

/// What a statistic is, by its driver's name for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Kind {
    Sent,
    Received,
    Lost,
}

/// Which statistics of a card are meant, by their places. Cards that count by priority also count the sum or the older kind of
/// pause: only one of the two is taken, for each direction.
pub(super) fn meant(names: &[String]) -> Vec<(Kind, usize)> {
    let mut chosen = Vec::new();
    for (kind, way) in [(Kind::Sent, "tx"), (Kind::Received, "rx")] {
        let of = |is: fn(&str, &str) -> bool| {
            let found = names.iter().enumerate().filter(move |(_, name)| is(name, way));
            found.map(|(at, _)| (kind, at)).collect::<Vec<_>>()
        };
        let (by_priority, plain) = (of(by_priority), of(plain));
        chosen.extend(if by_priority.is_empty() { plain } else { by_priority });
    }
    let lost = ["rx_discards_phy", "tx_discards_phy"];
    chosen.extend(
        names.iter().enumerate().filter(|(_, name)| lost.contains(&name.as_str())).map(|(at, _)| (Kind::Lost, at)),
    );
    chosen
}

/// `rx_prio3_pause` (mlx5), `tx_priority_3_xoff.nic` (ice), `rx_pfc_ena_frames_pri3` (bnxt), `rx_ppp_pause`…
fn by_priority(name: &str, way: &str) -> bool {
    let rest = name.strip_prefix(way).unwrap_or_default();
    let prio = rest.strip_prefix("_prio").and_then(|rest| rest.strip_suffix("_pause"));
    let xoff =
        rest.strip_prefix("_priority_").and_then(|rest| rest.strip_suffix("_xoff.nic").or(rest.strip_suffix("_xoff")));
    let pfc = rest.strip_prefix("_pfc_ena_frames_pri");
    [prio, xoff, pfc].into_iter().flatten().any(|number| number.parse::<u8>().is_ok())
}

/// `rx_pause_ctrl_phy`, `tx_pause_frames`, `link_xoff_rx`, `rx_pause`.
fn plain(name: &str, way: &str) -> bool {
    let rest = name.strip_prefix(way).unwrap_or_default();
    ["_pause_ctrl_phy", "_pause_frames", "_pause", "_flow_control_xoff", "_global_pause"].contains(&rest)
        || name.strip_prefix("link_xoff_").is_some_and(|end| end.trim_end_matches(".nic") == way)
}

/// Counters by card.
type Counts = BTreeMap<(usize, Kind), f64>;

/// Cards with what is looked at of each, and rates that hold until the next look: some drivers take a millisecond to answer.
#[derive(Default)]
pub(super) struct Source {
    cards: Vec<(String, Vec<(Kind, usize)>)>,
    before: Option<(u64, Counts)>,
    rates: BTreeMap<Kind, f64>,
}

impl Source {
    /// The `cards` that count any of it.
    pub(super) fn new(cards: &[String]) -> Self {
        let meant_of = |card: &String| {
            let meant = meant(&call::names(card));
            (!meant.is_empty()).then(|| (card.clone(), meant))
        };
        Self { cards: cards.iter().filter_map(meant_of).collect(), ..Self::default() }
    }

    /// Looks at all cards.
    pub(super) fn read(&mut self, at_ns: u64) {
        let mut totals = BTreeMap::new();
        for (at, (card, meant)) in self.cards.iter().enumerate() {
            let numbers = call::numbers(card);
            for (kind, place) in meant {
                if let Some(number) = numbers.get(*place) {
                    *totals.entry((at, *kind)).or_insert(0.0) += *number as f64;
                }
            }
        }
        self.take(at_ns, totals);
    }

    /// Rates of all cards together; a card whose counter began anew is left out.
    fn take(&mut self, at_ns: u64, totals: BTreeMap<(usize, Kind), f64>) {
        self.rates.clear();
        if let Some((before_ns, before)) = &self.before {
            let seconds = at_ns.saturating_sub(*before_ns) as f64 / 1e9;
            for (key, total) in &totals {
                let grown = before.get(key).map(|old| total - old).filter(|grown| *grown >= 0.0 && seconds > 0.0);
                if let Some(grown) = grown {
                    *self.rates.entry(key.1).or_insert(0.0) += grown / seconds;
                }
            }
        }
        self.before = Some((at_ns, totals));
    }

    /// Events a second.
    pub(super) fn rate(&self, kind: Kind) -> Option<f64> {
        self.rates.get(&kind).copied()
    }
}

/// The system calls.
mod call {
    use std::os::fd::{AsRawFd, OwnedFd};

    use rustix::net::{AddressFamily, SocketType, socket};

    const SIOCETHTOOL: u64 = 0x8946;
    const STRINGS_COUNT: u32 = 0x37;
    const STRINGS: u32 = 0x1b;
    const NUMBERS: u32 = 0x1d;
    /// The set of statistics.
    const SET: u32 = 1;
    /// Bytes of a name.
    const NAME: usize = 32;
    /// Most statistics of a card; those with many queues have thousands. There is room for as many in every question, since the kernel
    /// writes as many as the driver has at that moment, whatever it was asked for.
    const MOST: usize = 65_536;

    /// Names of the statistics of `card`; none where it has none or does not say.
    pub(super) fn names(card: &str) -> Vec<String> {
        let count = count(card);
        let mut bytes = vec![0_u8; 12 + MOST * NAME];
        bytes[..12].copy_from_slice(&words([STRINGS, SET, count as u32]));
        if count == 0 || !ask(card, &mut bytes) {
            return Vec::new();
        }
        let name = |bytes: &[u8]| {
            String::from_utf8_lossy(bytes.split(|byte| *byte == 0).next().unwrap_or_default()).into_owned()
        };
        bytes[12..].chunks_exact(NAME).take(count).map(name).collect()
    }

    /// The statistics of `card`, in the order of their names.
    pub(super) fn numbers(card: &str) -> Vec<u64> {
        let count = count(card);
        let mut bytes = vec![0_u8; 8 + MOST * 8];
        bytes[..8].copy_from_slice(&words([NUMBERS, count as u32]));
        if count == 0 || !ask(card, &mut bytes) {
            return Vec::new();
        }
        let number = |bytes: &[u8]| bytes.try_into().map_or(0, u64::from_ne_bytes);
        bytes[8..].chunks_exact(8).take(count).map(number).collect()
    }

    /// Asked each time: a driver whose queues are changed has other statistics.
    fn count(card: &str) -> usize {
        // Command, reserved, mask of the sets, room for the count of one.
        let mut bytes = vec![0_u8; 20];
        bytes[..4].copy_from_slice(&STRINGS_COUNT.to_ne_bytes());
        bytes[8..16].copy_from_slice(&(1_u64 << SET).to_ne_bytes());
        if !ask(card, &mut bytes) {
            return 0;
        }
        let count = bytes[16..20].try_into().map_or(0, u32::from_ne_bytes) as usize;
        if count <= MOST { count } else { 0 }
    }

    fn words<const N: usize>(words: [u32; N]) -> Vec<u8> {
        words.iter().flat_map(|word| word.to_ne_bytes()).collect()
    }

    /// Whether the driver of `card` wrote its answer into `bytes`, whose first word is the question.
    fn ask(card: &str, bytes: &mut [u8]) -> bool {
        let Ok(socket) = socket(AddressFamily::INET, SocketType::DGRAM, None) else { return false };
        send(&socket, card, bytes)
    }

    #[expect(unsafe_code, reason = "neither std nor rustix has this call")]
    fn send(socket: &OwnedFd, card: &str, bytes: &mut [u8]) -> bool {
        if card.len() >= libc::IFNAMSIZ {
            return false;
        }
        // SAFETY: a record of integers, bytes and a pointer, for which zeros are a value.
        let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
        for (to, from) in request.ifr_name.iter_mut().zip(card.bytes()) {
            *to = std::ffi::c_char::from_ne_bytes([from]);
        }
        request.ifr_ifru.ifru_data = bytes.as_mut_ptr().cast();
        // SAFETY: the name ends with a NUL, and `bytes` has room for more statistics than any driver has.
        unsafe { libc::ioctl(socket.as_raw_fd(), SIOCETHTOOL as _, &raw mut request) == 0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kinds(names: &[&str]) -> Vec<(Kind, String)> {
        let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
        meant(&names).into_iter().map(|(kind, at)| (kind, names[at].clone())).collect()
    }

    #[test]
    fn pauses_by_priority_stand_for_the_others_and_durations_are_no_frames() {
        let mlx5 = [
            "rx_packets",
            "rx_pause_ctrl_phy",
            "tx_pause_ctrl_phy",
            "rx_discards_phy",
            "rx_prio3_bytes",
            "rx_prio3_pause",
            "rx_prio3_pause_duration",
            "tx_prio3_pause",
            "tx_prio3_pause_transition",
            "tx_prio4_pause",
            "tx_pause_storm_warning_events",
        ];
        let found = kinds(&mlx5);
        let names: Vec<&str> = found.iter().map(|(_, name)| name.as_str()).collect();
        assert_eq!(names, ["tx_prio3_pause", "tx_prio4_pause", "rx_prio3_pause", "rx_discards_phy"]);
        assert_eq!(
            kinds(&["link_xoff_rx.nic", "tx_pause_frames"]),
            [(Kind::Sent, "tx_pause_frames".into()), (Kind::Received, "link_xoff_rx.nic".into())]
        );
        assert_eq!(kinds(&["rx_priority_3_xoff.nic", "rx_priority_3_xon.nic", "tx_pfc_ena_frames_pri0"]).len(), 2);
        assert!(kinds(&["peer_ifindex", "rx_queue_0_drops"]).is_empty());
    }

    #[test]
    fn rates_are_of_all_cards_and_a_counter_that_began_anew_is_left_out() {
        let mut source = Source::default();
        source.take(0, BTreeMap::from([((0, Kind::Sent), 10.0), ((1, Kind::Sent), 900.0)]));
        assert_eq!(source.rate(Kind::Sent), None);
        source.take(5_000_000_000, BTreeMap::from([((0, Kind::Sent), 60.0), ((1, Kind::Sent), 0.0)]));
        assert_eq!((source.rate(Kind::Sent), source.rate(Kind::Lost)), (Some(10.0), None));
    }

    #[test]
    fn a_card_that_is_not_there_counts_nothing() {
        assert!(call::names("nosuchcard0").is_empty() && call::numbers("nosuchcard0").is_empty());
        assert!(call::names("a name that is too long for a card").is_empty());
    }
}
