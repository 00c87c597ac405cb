//! Is the value of a keyword one that it can have?

use std::time::Duration;

use super::token::{check_command, check_file, check_host_name, environment};
use super::{Jump, words};

/// A checked setting. File names still have their `~` and `%h`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Setting {
    HostName(String),
    User(String),
    Port(u16),
    IdentityFile(String),
    CertificateFile(String),
    IdentitiesOnly(bool),
    IdentityAgent(String),
    ProxyJump(Vec<Jump>),
    ProxyCommand(String),
    UserKnownHosts(Vec<String>),
    GlobalKnownHosts(Vec<String>),
    StrictHostKeyChecking(StrictHostKeyChecking),
    HostKeyAlias(String),
    ConnectTimeout(Option<Duration>),
}

/// What to do with the key of a host that is not in `known_hosts`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StrictHostKeyChecking {
    /// Refuse it.
    Yes,
    /// Take it and write it down.
    AcceptNew,
    /// Ask the operator; without one, refuse it.
    Ask,
    /// Take it. A changed key is refused nevertheless.
    No,
}

/// Reads the value of `keyword`, which is in lower case; `None` for keywords that are not followed.
pub(super) fn setting(keyword: &str, rest: &str) -> Result<Option<Setting>, String> {
    if keyword == "proxycommand" {
        check_command(rest)?;
        return if rest.is_empty() { missing(keyword) } else { Ok(Some(Setting::ProxyCommand(rest.to_owned()))) };
    }
    if !FOLLOWED.contains(&keyword) {
        return Ok(None);
    }
    let words = words::split(rest)?;
    let Some(first) = words.first().filter(|word| !word.is_empty()) else { return missing(keyword) };
    let several = matches!(keyword, "userknownhostsfile" | "globalknownhostsfile");
    if let Some(extra) = words.get(1).filter(|_| !several) {
        return Err(format!("{keyword} takes one value, found {extra:?} after it"));
    }
    let setting = match keyword {
        "hostname" => check_host_name(first).map(|()| Setting::HostName(first.clone()))?,
        "user" => Setting::User(first.clone()),
        "port" => Setting::Port(port(first)?),
        "identityfile" => Setting::IdentityFile(file(first)?),
        "certificatefile" => Setting::CertificateFile(file(first)?),
        "identitiesonly" => Setting::IdentitiesOnly(yes_no(first)?),
        "identityagent" => Setting::IdentityAgent(agent(first)?),
        "proxyjump" => Setting::ProxyJump(Jump::parse_list(first)?),
        "userknownhostsfile" => Setting::UserKnownHosts(files(&words)?),
        "globalknownhostsfile" => Setting::GlobalKnownHosts(files(&words)?),
        "stricthostkeychecking" => Setting::StrictHostKeyChecking(strict(first)?),
        "hostkeyalias" => Setting::HostKeyAlias(first.clone()),
        "connecttimeout" => Setting::ConnectTimeout(duration(first)?),
        _ => return Ok(None),
    };
    Ok(Some(setting))
}

const FOLLOWED: [&str; 13] = [
    "hostname",
    "user",
    "port",
    "identityfile",
    "certificatefile",
    "identitiesonly",
    "identityagent",
    "proxyjump",
    "userknownhostsfile",
    "globalknownhostsfile",
    "stricthostkeychecking",
    "hostkeyalias",
    "connecttimeout",
];

fn missing<T>(keyword: &str) -> Result<T, String> {
    Err(format!("expected a value after {keyword}"))
}

fn port(word: &str) -> Result<u16, String> {
    let number = word.parse().ok().filter(|port| *port > 0);
    number.ok_or_else(|| format!("{word:?} is not a port; expected a number from 1 to 65535"))
}

fn yes_no(word: &str) -> Result<bool, String> {
    match word.to_ascii_lowercase().as_str() {
        "yes" | "true" => Ok(true),
        "no" | "false" => Ok(false),
        _ => Err(format!("expected yes or no, found {word:?}")),
    }
}

fn strict(word: &str) -> Result<StrictHostKeyChecking, String> {
    match word.to_ascii_lowercase().as_str() {
        "yes" | "true" => Ok(StrictHostKeyChecking::Yes),
        "no" | "false" | "off" => Ok(StrictHostKeyChecking::No),
        "accept-new" => Ok(StrictHostKeyChecking::AcceptNew),
        "ask" => Ok(StrictHostKeyChecking::Ask),
        _ => Err(format!("expected yes, accept-new, ask or no, found {word:?}")),
    }
}

fn file(word: &str) -> Result<String, String> {
    let value = environment(word)?;
    check_file(&value)?;
    Ok(value)
}

fn files(words: &[String]) -> Result<Vec<String>, String> {
    words.iter().filter(|word| !word.eq_ignore_ascii_case("none")).map(|word| file(word)).collect()
}

/// `SSH_AUTH_SOCK` and `$NAME` stay for the moment of connecting.
fn agent(word: &str) -> Result<String, String> {
    if word.starts_with('$') && !word.starts_with("${") { Ok(word.to_owned()) } else { file(word) }
}

/// `90`, `1m30s`, `2h`; `none` is no limit of its own.
fn duration(word: &str) -> Result<Option<Duration>, String> {
    if word.eq_ignore_ascii_case("none") {
        return Ok(None);
    }
    let wrong = || format!("{word:?} is not a time; expected seconds, or a time such as 1m30s");
    let mut seconds: u64 = 0;
    let mut rest = word;
    while !rest.is_empty() {
        let end = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
        let number: u64 = rest[..end].parse().map_err(|_| wrong())?;
        let mut unit = rest[end..].chars();
        let scale = match unit.next().map(|c| c.to_ascii_lowercase()) {
            None | Some('s') => 1,
            Some('m') => 60,
            Some('h') => 3_600,
            Some('d') => 86_400,
            Some('w') => 604_800,
            Some(_) => return Err(wrong()),
        };
        seconds = number.checked_mul(scale).and_then(|part| seconds.checked_add(part)).ok_or_else(wrong)?;
        rest = unit.as_str();
    }
    if seconds > i32::MAX as u64 { Err(wrong()) } else { Ok(Some(Duration::from_secs(seconds))) }
}
