//! What do `%h`, `~` and `${NAME}` in a value stand for?

use std::path::PathBuf;

use super::Local;

/// What is known about a connection when values are filled in.
pub(super) struct Tokens<'a> {
    pub(super) local: &'a Local,
    /// `%n`, as the operator wrote it.
    pub(super) alias: &'a str,
    /// `%h`.
    pub(super) host_name: &'a str,
    /// `%k`.
    pub(super) key_alias: &'a str,
    /// `%r`.
    pub(super) user: &'a str,
    /// `%p`.
    pub(super) port: u16,
}

/// Tokens that stand for something in file names.
const IN_FILES: &str = "%dhikLlnpru";
/// Tokens that stand for something in a `ProxyCommand`.
const IN_COMMANDS: &str = "%hnpr";

impl Tokens<'_> {
    /// A file name filled in; checked before by [`check_file`].
    pub(super) fn file(&self, value: &str) -> PathBuf {
        self.local.expand_tilde(&self.text(value))
    }

    /// A text filled in.
    pub(super) fn text(&self, value: &str) -> String {
        let mut text = String::new();
        let mut rest = value.chars();
        while let Some(c) = rest.next() {
            match if c == '%' { rest.next() } else { None } {
                None => text.push(c),
                Some('d') => text.push_str(&self.local.home.to_string_lossy()),
                Some('h') => text.push_str(self.host_name),
                Some('i') => text.push_str(&rustix::process::getuid().as_raw().to_string()),
                Some('k') => text.push_str(self.key_alias),
                Some('l') => text.push_str(&self.local.host),
                Some('L') => text.push_str(self.local.host.split('.').next().unwrap_or_default()),
                Some('n') => text.push_str(self.alias),
                Some('p') => text.push_str(&self.port.to_string()),
                Some('r') => text.push_str(self.user),
                Some('u') => text.push_str(&self.local.user),
                Some(other) => text.push(other),
            }
        }
        text
    }
}

/// `%h` in a `HostName` is the name as given; `%%` is a percent sign.
pub(super) fn host_name(value: &str, given: &str) -> String {
    let mut text = String::new();
    let mut rest = value.chars();
    while let Some(c) = rest.next() {
        match if c == '%' { rest.next() } else { None } {
            None => text.push(c),
            Some('h') => text.push_str(given),
            Some(other) => text.push(other),
        }
    }
    text
}

pub(super) fn check_host_name(value: &str) -> Result<(), String> {
    check(value, "%h")
}

pub(super) fn check_file(value: &str) -> Result<(), String> {
    check(value, IN_FILES)
}

pub(super) fn check_command(value: &str) -> Result<(), String> {
    check(value, IN_COMMANDS)
}

fn check(value: &str, known: &str) -> Result<(), String> {
    let mut rest = value.chars();
    while let Some(c) = rest.next() {
        if c == '%' {
            match rest.next() {
                Some(token) if known.contains(token) => {}
                Some(token) => return Err(format!("%{token} stands for nothing here")),
                None => return Err("'%' at the end; write %% for a percent sign".to_owned()),
            }
        }
    }
    Ok(())
}

/// Puts environment variables in place of `${NAME}`.
pub(super) fn environment(value: &str) -> Result<String, String> {
    let mut text = String::new();
    let mut rest = value;
    while let Some((before, after)) = rest.split_once("${") {
        let Some((name, behind)) = after.split_once('}') else { return Err("'${' is not closed".to_owned()) };
        text.push_str(before);
        let set = std::env::var(name).map_err(|_| format!("the environment has no {name}"))?;
        // A percent sign from the environment is itself, not a token.
        text.push_str(&set.replace('%', "%%"));
        rest = behind;
    }
    text.push_str(rest);
    Ok(text)
}
