//! Which machine this is: hardware names, boot, kernel, distribution, C library.

use std::fs::File;
use std::io::Read;

use muster_wire::{Reading, Unit};

use super::root::{number, reading};
use super::{Facts, Root, Then};

const FILES: [(&str, &str); 16] = [
    ("hostname", "/proc/sys/kernel/hostname"),
    ("boot_id", "/proc/sys/kernel/random/boot_id"),
    ("machine_id", "/etc/machine-id"),
    ("kernel.release", "/proc/sys/kernel/osrelease"),
    ("kernel.version", "/proc/sys/kernel/version"),
    ("clock.source", "/sys/devices/system/clocksource/clocksource0/current_clocksource"),
    ("dmi.vendor", "/sys/class/dmi/id/sys_vendor"),
    ("dmi.product", "/sys/class/dmi/id/product_name"),
    ("dmi.serial", "/sys/class/dmi/id/product_serial"),
    ("dmi.uuid", "/sys/class/dmi/id/product_uuid"),
    ("dmi.board", "/sys/class/dmi/id/board_name"),
    ("dmi.board_serial", "/sys/class/dmi/id/board_serial"),
    ("dmi.chassis_serial", "/sys/class/dmi/id/chassis_serial"),
    ("bios.vendor", "/sys/class/dmi/id/bios_vendor"),
    ("bios.version", "/sys/class/dmi/id/bios_version"),
    ("bios.date", "/sys/class/dmi/id/bios_date"),
];

const OS_RELEASE: [(&str, &str); 3] = [("os.id", "ID"), ("os.version", "VERSION_ID"), ("os.name", "PRETTY_NAME")];

const GLIBC: [&str; 4] = [
    "/lib/x86_64-linux-gnu/libc.so.6",
    "/lib64/libc.so.6",
    "/usr/lib/x86_64-linux-gnu/libc.so.6",
    "/usr/lib/libc.so.6",
];
const MUSL: &str = "/lib/ld-musl-x86_64.so.1";
/// A glibc is about 2 MB.
const LIBC_MOST: u64 = 16 << 20;

pub(super) fn look(root: &Root, facts: &mut Facts) {
    for (key, path) in FILES {
        facts.text(key, root.text(path));
    }
    let release = match root.text("/etc/os-release") {
        Reading::Absent => root.text("/usr/lib/os-release"),
        other => other,
    };
    for (key, name) in OS_RELEASE {
        facts.text(key, release.clone().and_then(|text| assigned(&text, name)));
    }
    facts.text("libc", libc_of(root));
    let uptime = root.text("/proc/uptime");
    let seconds = uptime.and_then(|text| number(text.split(' ').next().unwrap_or_default()));
    facts.number("uptime", seconds, Some(Unit::Seconds));
}

/// The value of `NAME=value` or `NAME="value"`.
fn assigned(text: &str, name: &str) -> Reading<String> {
    let value = text.lines().find_map(|line| line.trim().strip_prefix(name)?.strip_prefix('='));
    value.map_or(Reading::Absent, |value| Reading::Value(value.trim_matches(['"', '\'']).to_owned()))
}

/// The C library that the node's own programs use, read from its file: asking it would mean loading it.
fn libc_of(root: &Root) -> Reading<String> {
    for path in GLIBC {
        let bytes = File::open(root.path(path)).and_then(|file| {
            let mut bytes = Vec::new();
            file.take(LIBC_MOST).read_to_end(&mut bytes)?;
            Ok(bytes)
        });
        match reading(bytes) {
            Reading::Absent => {}
            found => return found.and_then(|bytes| glibc_version(&bytes)),
        }
    }
    if root.path(MUSL).exists() { Reading::Value("musl".to_owned()) } else { Reading::Absent }
}

fn glibc_version(bytes: &[u8]) -> Reading<String> {
    const START: &[u8] = b"GNU C Library ";
    let Some(at) = bytes.windows(START.len()).position(|window| window == START) else {
        return Reading::Failed("a libc.so.6 that does not say what it is".to_owned());
    };
    let sentence = String::from_utf8_lossy(&bytes[at..bytes.len().min(at + 160)]).into_owned();
    let Some((_, rest)) = sentence.split_once("version ") else {
        return Reading::Failed("a libc.so.6 without a version".to_owned());
    };
    let version: String = rest.chars().take_while(|c| c.is_ascii_digit() || *c == '.').collect();
    let build = sentence.split_once('(').and_then(|(_, rest)| rest.split_once(')')).map(|(build, _)| build);
    let version = version.trim_end_matches('.');
    Reading::Value(build.map_or_else(|| format!("glibc {version}"), |build| format!("glibc {version} ({build})")))
}

#[cfg(test)]
mod tests {
    use super::super::testing::{Tree, reading_of, text};
    use super::*;

    #[test]
    fn a_machine_is_read_from_its_files() {
        let tree = Tree::new(&[
            ("/sys/class/dmi/id/sys_vendor", "Dell Inc.\n"),
            ("/sys/class/dmi/id/product_serial", ""),
            ("/etc/os-release", "NAME=x\nID=debian\nVERSION_ID=\"12\"\nPRETTY_NAME=\"Debian GNU/Linux 12\"\n"),
            ("/lib64/libc.so.6", "\u{1}GNU C Library (Debian GLIBC 2.36-9+deb12u9) stable release version 2.36.\n"),
            ("/proc/uptime", "12.5 33.0\n"),
        ]);
        let facts = tree.look(look);
        assert_eq!(text(&facts, "dmi.vendor"), "Dell Inc.");
        assert_eq!(reading_of(&facts, "dmi.serial"), Reading::Absent);
        assert_eq!(text(&facts, "os.version"), "12");
        assert_eq!(text(&facts, "os.name"), "Debian GNU/Linux 12");
        assert_eq!(text(&facts, "libc"), "glibc 2.36 (Debian GLIBC 2.36-9+deb12u9)");
        assert_eq!(reading_of(&facts, "uptime"), Reading::Value(muster_wire::Datum::Number(12.5)));
    }

    #[test]
    fn a_library_that_is_no_library_has_failed() {
        let tree = Tree::new(&[("/lib64/libc.so.6", "OUTPUT_FORMAT(elf64-x86-64)"), ("/proc/uptime", "soon")]);
        let facts = tree.look(look);
        assert!(matches!(reading_of(&facts, "libc"), Reading::Failed(_)));
        assert!(matches!(reading_of(&facts, "uptime"), Reading::Failed(_)));
    }
}
