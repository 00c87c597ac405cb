//! Which settings hold for one host?

use std::path::PathBuf;
use std::time::Duration;

use super::directive::{Criterion, Directive, Subject};
use super::token::{Tokens, host_name};
use super::value::Setting;
use super::{Config, Jump, StrictHostKeyChecking};
use crate::pattern;

/// What is decided already, on the command line or by the inventory; it wins over the configuration.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Given<'a> {
    /// Login name.
    pub user: Option<&'a str>,
    /// Port.
    pub port: Option<u16>,
}

/// What holds for one host, file names filled in. `None` means that nobody said.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Resolved {
    /// Where to connect: the `HostName`, or the alias itself.
    pub host_name: String,
    /// Login name.
    pub user: Option<String>,
    /// Port.
    pub port: Option<u16>,
    /// Private keys in the order to try; `None` means the usual ones in `~/.ssh`.
    pub identity_files: Option<Vec<PathBuf>>,
    /// User certificates.
    pub certificate_files: Vec<PathBuf>,
    /// Whether only the named keys may be tried, also from the agent.
    pub identities_only: bool,
    /// Socket of the agent, or `none`, `SSH_AUTH_SOCK`, `$NAME`.
    pub identity_agent: Option<String>,
    /// Hops, the first to be reached first; empty for a direct connection.
    pub proxy_jump: Vec<Jump>,
    /// A command that makes the connection, tokens filled in. Never set together with hops.
    pub proxy_command: Option<String>,
    /// The operator's `known_hosts` files.
    pub user_known_hosts: Option<Vec<PathBuf>>,
    /// The machine's `known_hosts` files.
    pub global_known_hosts: Option<Vec<PathBuf>>,
    /// What to do with new host keys.
    pub strict_host_key_checking: Option<StrictHostKeyChecking>,
    /// The name to look for in `known_hosts` in place of the host's.
    pub host_key_alias: Option<String>,
    /// Limit for connecting.
    pub connect_timeout: Option<Duration>,
}

impl Config {
    /// Resolves a host by the name that the operator uses for it.
    pub fn resolve(&self, alias: &str, given: Given<'_>) -> Resolved {
        let mut walk = Walk { config: self, alias, given, found: Found::default() };
        for file in &self.directives {
            walk.follow(file, true, true);
        }
        walk.finish()
    }
}

/// The first value of every setting that holds, and all values of those that add up.
#[derive(Default)]
struct Found {
    host_name: Option<String>,
    user: Option<String>,
    port: Option<u16>,
    identities: Vec<String>,
    certificates: Vec<String>,
    identities_only: Option<bool>,
    agent: Option<String>,
    proxy: Option<Proxy>,
    user_known_hosts: Option<Vec<String>>,
    global_known_hosts: Option<Vec<String>>,
    strict: Option<StrictHostKeyChecking>,
    key_alias: Option<String>,
    timeout: Option<Duration>,
}

/// `ProxyJump` and `ProxyCommand` answer the same question, so that the first of them wins over both.
enum Proxy {
    Jump(Vec<Jump>),
    Command(String),
}

struct Walk<'a> {
    config: &'a Config,
    alias: &'a str,
    given: Given<'a>,
    found: Found,
}

impl Walk<'_> {
    /// Follows one file. `reachable` is false inside an `Include` of a block that does not hold: nothing there can.
    fn follow(&mut self, directives: &[Directive], reachable: bool, mut holds: bool) {
        for directive in directives {
            match directive {
                Directive::Host(patterns) => {
                    holds = reachable && pattern::matches_any(patterns.iter().map(String::as_str), self.alias);
                }
                Directive::Match(criteria) => {
                    let all = |criteria: &Vec<Criterion>| criteria.iter().all(|criterion| self.meets(criterion));
                    holds = reachable && criteria.as_ref().is_some_and(all);
                }
                Directive::Include(included) => self.follow(included, reachable && holds, holds),
                Directive::Set(setting) if holds => self.set(setting.clone()),
                Directive::Set(_) => {}
            }
        }
    }

    fn meets(&self, criterion: &Criterion) -> bool {
        let patterns = criterion.patterns.iter().map(String::as_str);
        // Unlike `Host`, `Match` compares host names without regard to case; user names keep theirs.
        let host = |name: String| {
            let patterns: Vec<String> = criterion.patterns.iter().map(|pattern| pattern.to_ascii_lowercase()).collect();
            pattern::matches_any(patterns.iter().map(String::as_str), &name.to_ascii_lowercase())
        };
        let matched = match criterion.subject {
            Subject::All => true,
            Subject::Host => host(self.host_name()),
            Subject::OriginalHost => host(self.alias.to_owned()),
            Subject::User => pattern::matches_any(patterns, self.user().unwrap_or(&self.config.local.user)),
            Subject::LocalUser => pattern::matches_any(patterns, &self.config.local.user),
        };
        matched != criterion.negated
    }

    fn host_name(&self) -> String {
        match &self.found.host_name {
            Some(name) => host_name(name, self.alias),
            None => self.alias.to_owned(),
        }
    }

    fn user(&self) -> Option<&str> {
        self.given.user.or(self.found.user.as_deref())
    }

    fn set(&mut self, setting: Setting) {
        let found = &mut self.found;
        match setting {
            Setting::HostName(value) => first(&mut found.host_name, value),
            Setting::User(value) => first(&mut found.user, value),
            Setting::Port(value) => first(&mut found.port, value),
            Setting::IdentityFile(value) => add(&mut found.identities, value),
            Setting::CertificateFile(value) => add(&mut found.certificates, value),
            Setting::IdentitiesOnly(value) => first(&mut found.identities_only, value),
            Setting::IdentityAgent(value) => first(&mut found.agent, value),
            Setting::ProxyJump(value) => first(&mut found.proxy, Proxy::Jump(value)),
            Setting::ProxyCommand(value) => first(&mut found.proxy, Proxy::Command(value)),
            Setting::UserKnownHosts(value) => first(&mut found.user_known_hosts, value),
            Setting::GlobalKnownHosts(value) => first(&mut found.global_known_hosts, value),
            Setting::StrictHostKeyChecking(value) => first(&mut found.strict, value),
            // As OpenSSH does: a hashed record of the name in capitals would never be found.
            Setting::HostKeyAlias(value) => first(&mut found.key_alias, value.to_ascii_lowercase()),
            // For OpenSSH `none` is as if nobody had said anything: a later line holds.
            Setting::ConnectTimeout(value) => found.timeout = found.timeout.or(value),
        }
    }

    fn finish(self) -> Resolved {
        // OpenSSH connects to, and looks up, names in lower case.
        let host_name = self.host_name().to_ascii_lowercase();
        let user = self.user().map(str::to_owned);
        let port = self.given.port.or(self.found.port);
        let found = self.found;
        let tokens = Tokens {
            local: &self.config.local,
            alias: self.alias,
            host_name: &host_name,
            key_alias: found.key_alias.as_deref().unwrap_or(&host_name),
            user: user.as_deref().unwrap_or(&self.config.local.user),
            port: port.unwrap_or(22),
        };
        let fill = |files: &[String]| -> Vec<PathBuf> {
            files.iter().filter(|file| !file.eq_ignore_ascii_case("none")).map(|file| tokens.file(file)).collect()
        };
        let agent = |value: &String| match value.as_str() {
            "none" | "SSH_AUTH_SOCK" => value.clone(),
            name if name.starts_with('$') => value.clone(),
            _ => tokens.file(value).to_string_lossy().into_owned(),
        };
        let (proxy_jump, proxy_command) = match found.proxy {
            Some(Proxy::Jump(hops)) => (hops, None),
            Some(Proxy::Command(command)) => {
                let command = Some(command).filter(|text| !text.eq_ignore_ascii_case("none"));
                (Vec::new(), command.map(|text| tokens.text(&text)))
            }
            None => (Vec::new(), None),
        };
        Resolved {
            identity_files: (!found.identities.is_empty()).then(|| fill(&found.identities)),
            certificate_files: fill(&found.certificates),
            identities_only: found.identities_only.unwrap_or(false),
            identity_agent: found.agent.as_ref().map(agent),
            user_known_hosts: found.user_known_hosts.as_deref().map(fill),
            global_known_hosts: found.global_known_hosts.as_deref().map(fill),
            proxy_jump,
            proxy_command,
            strict_host_key_checking: found.strict,
            host_key_alias: found.key_alias.clone(),
            connect_timeout: found.timeout,
            host_name: host_name.clone(),
            user: user.clone(),
            port,
        }
    }
}

fn first<T>(slot: &mut Option<T>, value: T) {
    slot.get_or_insert(value);
}

fn add(values: &mut Vec<String>, value: String) {
    if !values.contains(&value) {
        values.push(value);
    }
}
