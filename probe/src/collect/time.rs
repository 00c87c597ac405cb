//! How well the kernel's clock is kept, by its own account.

use muster_wire::{Reading, Unit};

use super::{Facts, Root, Then};

/// Not kept by anybody (`STA_UNSYNC`).
const UNSYNCHRONISED: libc::c_int = 0x40;
/// What `adjtimex` returns then (`TIME_ERROR`).
const ERROR: libc::c_int = 5;
const MICROS: f64 = 1e-6;

pub(super) fn look(root: &Root, facts: &mut Facts) {
    let available = "/sys/devices/system/clocksource/clocksource0/available_clocksource";
    facts.text("clocksource.available", root.text(available));
    let (state, asked) = if root.is_system() { ask() } else { (0, Reading::Absent) };
    let kept = asked.as_ref_reading().map(|timex| state != ERROR && timex.status & UNSYNCHRONISED == 0);
    facts.flag("synchronised", kept);
    let number = |pick: fn(&libc::timex) -> f64| asked.as_ref_reading().map(pick);
    facts.number("error.most", number(|timex| timex.maxerror as f64 * MICROS), Some(Unit::Seconds));
    facts.number("error.estimated", number(|timex| timex.esterror as f64 * MICROS), Some(Unit::Seconds));
    // The kernel's frequency correction: parts per million with a 16-bit fraction.
    facts.number("frequency.ratio", number(|timex| timex.freq as f64 / 65_536.0 * MICROS), Some(Unit::Ratio));
}

/// Asks and changes nothing: `modes` is 0.
fn ask() -> (libc::c_int, Reading<libc::timex>) {
    // SAFETY: zero is a valid value of every field of `timex`: it holds only integers.
    #[expect(unsafe_code, reason = "neither std nor rustix has this call")]
    let mut timex: libc::timex = unsafe { std::mem::zeroed() };
    // SAFETY: the kernel writes one `timex` to the one it is given.
    #[expect(unsafe_code, reason = "neither std nor rustix has this call")]
    let state = unsafe { libc::adjtimex(&raw mut timex) };
    if state < 0 {
        return (state, super::root::reading(Err(std::io::Error::last_os_error())));
    }
    (state, Reading::Value(timex))
}

#[cfg(test)]
mod tests {
    use muster_wire::Datum;

    use super::super::testing::reading_of;
    use super::*;

    #[test]
    fn the_kernel_tells_whether_its_clock_is_kept_and_is_not_changed() {
        let mut facts = Facts::default();
        look(&Root::system(), &mut facts);
        let facts = facts.done();
        assert!(matches!(reading_of(&facts, "synchronised"), Reading::Value(Datum::Flag(_))));
        let Reading::Value(Datum::Number(most)) = reading_of(&facts, "error.most") else { panic!("{facts:?}") };
        assert!(most >= 0.0);
    }
}
