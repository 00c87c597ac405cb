//! Where exactly does a node's connection go? Inventory first, then the SSH configuration, then the defaults.

use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::inventory::Node;
use crate::link::{Failure, FailureKind, Phase};
use crate::settings::{HostKeyPolicy, Settings, home};
use crate::sshconfig::{Config, Given, Jump, Local, Resolved, StrictHostKeyChecking};

/// Longest way of jump hosts; a longer one goes round in a circle.
const HOPS: usize = 8;

/// Where a host's key is recorded, and what happens when it is not.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Records {
    pub(crate) files: Vec<PathBuf>,
    pub(crate) policy: HostKeyPolicy,
}

/// A connection's end, resolved.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Target {
    /// The name used in messages.
    pub(crate) node: String,
    /// The name that the SSH configuration knows.
    pub(crate) alias: String,
    pub(crate) host: String,
    pub(crate) port: u16,
    pub(crate) user: String,
    /// Keys named for this node; the defaults when empty.
    pub(crate) identities: Vec<PathBuf>,
    /// Certificates named for this node, besides those that lie beside their keys.
    pub(crate) certificates: Vec<PathBuf>,
    /// Whether the agent may be used only for named keys.
    pub(crate) identities_only: bool,
    /// The agent's socket.
    pub(crate) agent: Option<PathBuf>,
    /// Hops, outermost first; empty for a direct connection.
    pub(crate) jump: Vec<Jump>,
    /// The command whose input and output are the connection, where there are no hops.
    pub(crate) proxy: Option<String>,
    /// The name and port under which the host key is recorded.
    pub(crate) key_name: (String, u16),
    pub(crate) records: Records,
    /// TCP must connect within this.
    pub(crate) connect: Duration,
}

/// The hosts behind `nodes` as the SSH configuration has them, names or addresses, or why it cannot be followed.
#[must_use]
pub fn hosts(nodes: &[Node], settings: &Settings) -> Vec<Result<String, Failure>> {
    let resolver = Resolver::new(settings);
    nodes.iter().map(|node| resolver.target(node, settings).map(|target| target.host)).collect()
}

/// The SSH configuration of a run, or why it cannot be used.
pub(crate) struct Resolver {
    config: Result<Config, String>,
}

impl Resolver {
    pub(crate) fn new(settings: &Settings) -> Self {
        let Some(file) = &settings.ssh_config else {
            return Self { config: Config::parse(Local::here(), "", Path::new("none")).map_err(|e| e.to_string()) };
        };
        let mut files = vec![file.clone()];
        // As with OpenSSH, the machine's file counts only where no other than the usual one was named.
        if home().is_some_and(|home| home.join(".ssh/config") == *file) {
            files.push(PathBuf::from("/etc/ssh/ssh_config"));
        }
        let config = Config::load(&files).map_err(|e| e.to_string());
        for ignored in config.iter().flat_map(Config::ignored) {
            log::debug!("{}:{}: {}: {}", ignored.file.display(), ignored.line, ignored.keyword, ignored.reason);
        }
        Self { config }
    }

    pub(crate) fn target(&self, node: &Node, settings: &Settings) -> Result<Target, Failure> {
        let failed = |what: String| Failure::new(&node.name, Phase::Resolve, FailureKind::BadConfig, what);
        let config = self.config.as_ref().map_err(|why| failed(format!("the SSH configuration: {why}")))?;
        let given = Given { user: node.user.as_deref(), port: (node.port != 0).then_some(node.port) };
        let found = config.resolve(&node.host, given);
        let jump = match &node.jump {
            Some(jump) => Jump::parse_list(jump).map_err(failed)?,
            None if itself(&node.host, &found) => Vec::new(),
            None => found.proxy_jump.clone(),
        };
        let proxy = found.proxy_command.clone().filter(|_| node.jump.is_none());
        let user = found.user.clone().unwrap_or_else(|| settings.user.clone());
        if let Some(odd) = [&node.host, &found.host_name, &user].into_iter().find(|w| proxy.is_some() && !plain(w)) {
            return Err(failed(format!("'{odd}' may mean more to a shell than a name, so no ProxyCommand is run")));
        }
        let port = found.port.unwrap_or(22);
        let key_name = match &found.host_key_alias {
            Some(alias) => (alias.clone(), 22),
            None => (found.host_name.clone(), port),
        };
        Ok(Target {
            node: node.name.clone(),
            alias: node.host.clone(),
            port,
            user,
            identities: identities(node, &found),
            certificates: found.certificate_files.clone(),
            identities_only: found.identities_only,
            agent: agent(&found, settings),
            jump,
            proxy,
            key_name,
            records: records(&found, settings),
            connect: found.connect_timeout.unwrap_or(settings.connect),
            host: found.host_name,
        })
    }

    /// The whole way to the last of `hops`: the first hop may have jump hosts of its own.
    pub(crate) fn way(&self, hops: &[Jump], settings: &Settings) -> Result<Vec<Jump>, Failure> {
        let mut way = hops.to_vec();
        while let Some(first) = way.first() {
            let before = self.target(&as_node(first), settings)?.jump;
            if before.is_empty() {
                break;
            }
            way.splice(0..0, before);
            if way.len() > HOPS {
                let last = hops.last().map(|hop| hop.host.as_str()).unwrap_or_default();
                let what = format!("more than {HOPS} jump hosts; do they name each other?");
                return Err(Failure::new(last, Phase::Resolve, FailureKind::BadConfig, what));
            }
        }
        Ok(way)
    }

    /// The target of the last of a whole way.
    pub(crate) fn hop(&self, way: &[Jump], settings: &Settings) -> Result<Target, Failure> {
        let Some((last, before)) = way.split_last() else {
            return Err(Failure::new("jump", Phase::Jump, FailureKind::BadConfig, "no jump host is named"));
        };
        let target = self.target(&as_node(last), settings)?;
        Ok(Target { jump: before.to_vec(), ..target })
    }
}

/// Whether a shell takes a word as it stands.
fn plain(word: &str) -> bool {
    !word.starts_with('-') && word.chars().all(|c| c.is_alphanumeric() || "._-:@%+=,".contains(c))
}

fn as_node(hop: &Jump) -> Node {
    Node {
        name: hop.host.clone(),
        host: hop.host.clone(),
        port: hop.port.unwrap_or(0),
        user: hop.user.clone(),
        ..Node::default()
    }
}

/// `Host *` with a `ProxyJump` also speaks of the jump host itself, which is then reached directly.
fn itself(alias: &str, found: &Resolved) -> bool {
    let port = found.port.unwrap_or(22);
    let same = |hop: &Jump| (hop.host == alias || hop.host == found.host_name) && hop.port.unwrap_or(port) == port;
    found.proxy_jump.iter().any(same)
}

fn identities(node: &Node, found: &Resolved) -> Vec<PathBuf> {
    match &node.identity {
        Some(path) => vec![match (path.strip_prefix("~"), home()) {
            (Ok(rest), Some(home)) => home.join(rest),
            _ => path.clone(),
        }],
        None => found.identity_files.clone().unwrap_or_default(),
    }
}

fn agent(found: &Resolved, settings: &Settings) -> Option<PathBuf> {
    let variable = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    if !settings.agent {
        return None;
    }
    match found.identity_agent.as_deref() {
        None | Some("SSH_AUTH_SOCK") => variable("SSH_AUTH_SOCK"),
        Some("none") => None,
        Some(path) => match path.strip_prefix('$') {
            Some(name) => variable(name),
            None => Some(PathBuf::from(path)),
        },
    }
}

fn records(found: &Resolved, settings: &Settings) -> Records {
    let (own, machine) = settings.known_hosts.split_at(settings.known_hosts.len().min(1));
    let mut files = found.user_known_hosts.clone().unwrap_or_else(|| own.to_vec());
    files.extend(found.global_known_hosts.clone().unwrap_or_else(|| machine.to_vec()));
    // What OpenSSH would do, who asks where nothing is said; a changed key is never accepted, whatever `no` means there.
    let configured = match found.strict_host_key_checking {
        Some(StrictHostKeyChecking::Yes) => HostKeyPolicy::Strict,
        Some(StrictHostKeyChecking::AcceptNew | StrictHostKeyChecking::No) => HostKeyPolicy::AcceptNew,
        Some(StrictHostKeyChecking::Ask) | None => HostKeyPolicy::Ask,
    };
    let given = settings.host_key_policy.filter(|_| configured != HostKeyPolicy::Strict);
    Records { files, policy: given.unwrap_or(configured) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn resolver(text: &str) -> Resolver {
        let local = Local { home: "/home/me".into(), user: "me".into(), host: "here".into() };
        Resolver { config: Config::parse(local, text, Path::new("config")).map_err(|e| e.to_string()) }
    }

    fn node(host: &str) -> Node {
        Node { name: "n1".into(), host: host.into(), ..Node::default() }
    }

    fn settings() -> Settings {
        Settings {
            user: "me".into(),
            agent: false,
            known_hosts: vec!["kh".into(), "etc".into()],
            ..Settings::default()
        }
    }

    #[test]
    fn the_inventory_wins_over_the_configuration_and_that_over_the_defaults() {
        let config = resolver("Host web\n HostName 10.0.0.7\n User ops\n Port 2200\n IdentityFile ~/k\n");
        let target = config.target(&node("web"), &settings()).unwrap();
        assert_eq!((target.host.as_str(), target.port, target.user.as_str()), ("10.0.0.7", 2200, "ops"));
        assert_eq!(target.identities, [PathBuf::from("/home/me/k")]);
        assert_eq!(target.key_name, ("10.0.0.7".to_owned(), 2200));
        let given = Node { user: Some("root".into()), port: 22, identity: Some("/k2".into()), ..node("web") };
        let target = config.target(&given, &settings()).unwrap();
        assert_eq!((target.port, target.user.as_str()), (22, "root"));
        assert_eq!(target.identities, [PathBuf::from("/k2")]);
        assert_eq!(config.target(&node("other"), &settings()).unwrap().port, 22);
    }

    #[test]
    fn a_jump_host_of_all_hosts_is_itself_reached_directly() {
        let config = resolver("Host *\n ProxyJump bastion\n");
        let target = config.target(&node("n1"), &settings()).unwrap();
        assert_eq!(target.jump.len(), 1);
        assert!(config.hop(&target.jump, &settings()).unwrap().jump.is_empty());
    }

    #[test]
    fn hops_are_reached_over_those_before_them() {
        let hops = Jump::parse_list("a,ops@b:2200").unwrap();
        let target = resolver("").hop(&hops, &settings()).unwrap();
        assert_eq!((target.user.as_str(), target.host.as_str(), target.port), ("ops", "b", 2200));
        assert_eq!(target.jump, hops[..1]);
    }

    #[test]
    fn jump_hosts_of_jump_hosts_are_followed_and_circles_are_said() {
        let config = resolver("Host b\n ProxyJump a\nHost x\n ProxyJump y\nHost y\n ProxyJump x\n");
        let way = config.way(&Jump::parse_list("b,c").unwrap(), &settings()).unwrap();
        assert_eq!(way, Jump::parse_list("a,b,c").unwrap());
        let failure = config.way(&Jump::parse_list("x").unwrap(), &settings()).unwrap_err();
        assert!(failure.message.contains("more than 8 jump hosts"), "{failure}");
    }

    #[test]
    fn a_jump_of_none_and_a_proxy_command_are_understood() {
        let config = resolver("Host a\n ProxyJump bastion\nHost b\n ProxyCommand nc %h %p\n");
        let direct = Node { jump: Some("none".into()), ..node("a") };
        assert!(config.target(&direct, &settings()).unwrap().jump.is_empty());
        assert_eq!(config.target(&node("b"), &settings()).unwrap().proxy.as_deref(), Some("nc b 22"));
        let direct = Node { jump: Some("none".into()), ..node("b") };
        assert_eq!(config.target(&direct, &settings()).unwrap().proxy, None);
    }

    #[test]
    fn a_name_that_a_shell_would_obey_runs_no_proxy_command() {
        let config = resolver("Host *\n ProxyCommand nc %h %p\n");
        for host in ["a;reboot", "$(x)", "-oX=y", "a b"] {
            let failure = config.target(&node(host), &settings()).unwrap_err();
            assert!(failure.message.contains("no ProxyCommand is run"), "{failure}");
        }
    }

    #[test]
    fn records_follow_the_configuration_and_the_stricter_policy() {
        let config = resolver("Host a\n UserKnownHostsFile /kh2\n StrictHostKeyChecking yes\n HostKeyAlias other\n");
        let target = config.target(&node("a"), &settings()).unwrap();
        let files = vec![PathBuf::from("/kh2"), PathBuf::from("etc")];
        assert_eq!(target.records, Records { files, policy: HostKeyPolicy::Strict });
        assert_eq!(target.key_name, ("other".to_owned(), 22));
        let policy = |config: &str, given| {
            let settings = Settings { host_key_policy: given, ..settings() };
            resolver(config).target(&node("b"), &settings).unwrap().records.policy
        };
        let own = |config: &str| policy(config, None);
        assert_eq!((own(""), own("StrictHostKeyChecking ask\n")), (HostKeyPolicy::Ask, HostKeyPolicy::Ask));
        assert_eq!(own("StrictHostKeyChecking accept-new\n"), HostKeyPolicy::AcceptNew);
        let accept = Some(HostKeyPolicy::AcceptNew);
        assert_eq!(policy("StrictHostKeyChecking ask\n", accept), HostKeyPolicy::AcceptNew);
        assert_eq!(policy("StrictHostKeyChecking yes\n", accept), HostKeyPolicy::Strict);
        assert_eq!(policy("StrictHostKeyChecking no\n", Some(HostKeyPolicy::Strict)), HostKeyPolicy::Strict);
    }

    #[test]
    fn a_broken_configuration_is_said_for_every_node() {
        let failure = resolver("Port many\n").target(&node("a"), &settings()).unwrap_err();
        assert!(failure.message.contains("config:1"), "{failure}");
    }
}
