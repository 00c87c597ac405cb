//! Does our reading of an SSH configuration agree with its manual, and with OpenSSH itself?

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use proptest::prelude::*;

use super::*;

fn local() -> Local {
    Local { home: "/home/me".into(), user: "me".into(), host: "desk.lab".into() }
}

fn parse(text: &str) -> Result<Config, ConfigError> {
    Config::parse(local(), text, Path::new("config"))
}

fn resolve(text: &str, alias: &str) -> Resolved {
    parse(text).unwrap().resolve(alias, Given::default())
}

fn paths(names: &[&str]) -> Option<Vec<PathBuf>> {
    Some(names.iter().map(PathBuf::from).collect())
}

#[test]
fn the_first_value_wins_and_identity_files_add_up() {
    let text = "User early\nHost n*\n  User late\n  Port 2222\n  IdentityFile ~/.ssh/a\nHost *\n  Port 22\n  IdentityFile /b\n  IdentityFile ~/.ssh/a\n";
    let found = resolve(text, "n1");
    assert_eq!((found.user.as_deref(), found.port), (Some("early"), Some(2222)));
    assert_eq!(found.identity_files, paths(&["/home/me/.ssh/a", "/b"]));
    assert_eq!(resolve(text, "x").port, Some(22));
    assert_eq!(resolve("", "X1").host_name, "x1");
    assert_eq!(resolve("", "x").identity_files, None);
    assert_eq!(resolve("IdentityFile none", "x").identity_files, paths(&[]));
}

#[test]
fn tokens_in_names_and_files_are_filled_in() {
    let text = "Host n1\n HostName %h.lab\n User root\n Port 7\n IdentityFile ~/k_%h_%r\n IdentityFile %d/%n-%u-%p-%L-%%\n UserKnownHostsFile \"~/a b\" /c none\n CertificateFile ~/%k\n IdentityAgent ~/agent\n";
    let found = resolve(text, "n1");
    assert_eq!(found.host_name, "n1.lab");
    assert_eq!(found.identity_files, paths(&["/home/me/k_n1.lab_root", "/home/me/n1-me-7-desk-%"]));
    assert_eq!(found.user_known_hosts, paths(&["/home/me/a b", "/c"]));
    assert_eq!(found.certificate_files, [PathBuf::from("/home/me/n1.lab")]);
    assert_eq!(found.identity_agent.as_deref(), Some("/home/me/agent"));
    let given = Given { user: Some("ops"), port: Some(9) };
    let found = parse(text).unwrap().resolve("n1", given);
    assert_eq!((found.user.as_deref(), found.port), (Some("ops"), Some(9)));
    assert_eq!(found.identity_files.unwrap()[0], Path::new("/home/me/k_n1.lab_ops"));
}

#[test]
fn whichever_of_proxy_jump_and_proxy_command_comes_first_holds() {
    let found = resolve("ProxyJump a,root@b:23\nProxyCommand nc %h %p\n", "x");
    assert_eq!((found.proxy_jump.len(), found.proxy_command), (2, None));
    let found = resolve("ProxyCommand nc %h %p # x\nProxyJump a\n", "x");
    assert_eq!((found.proxy_jump.len(), found.proxy_command.as_deref()), (0, Some("nc x 22 # x")));
    assert!(resolve("Host x\n ProxyJump none\nHost *\n ProxyJump a\n", "x").proxy_jump.is_empty());
}

#[test]
fn match_blocks_hold_when_every_condition_does_and_unknown_ones_never() {
    let text = "Match host *.lab user root\n Port 1\nMatch originalhost n1 !user root\n Port 2\nMatch exec \"true\"\n Port 3\nMatch localuser me host=n3\n Port 4\nMatch all\n Port 5\n";
    let config = parse(text).unwrap();
    let port = |alias, user| config.resolve(alias, Given { user, port: None }).port;
    assert_eq!(port("a.lab", Some("root")), Some(1));
    assert_eq!(port("n1", Some("joe")), Some(2));
    assert_eq!(port("n1", Some("root")), Some(5));
    assert_eq!(port("n3", None), Some(4));
    assert_eq!(config.ignored().len(), 1);
    assert_eq!((config.ignored()[0].line, config.ignored()[0].keyword.as_str()), (5, "match"));
}

#[test]
fn keywords_that_are_not_followed_are_listed() {
    let config = parse("Host *\n ForwardAgent yes\n Bogus x\n Port 22\n").unwrap();
    let listed: Vec<_> = config.ignored().iter().map(|line| (line.line, line.keyword.as_str())).collect();
    assert_eq!(listed, [(2, "forwardagent"), (3, "bogus")]);
}

#[test]
fn times_and_policies_are_read() {
    assert_eq!(resolve("ConnectTimeout 1m30s", "x").connect_timeout, Some(Duration::from_secs(90)));
    assert_eq!(resolve("ConnectTimeout none\nConnectTimeout 3", "x").connect_timeout, Some(Duration::from_secs(3)));
    let policy = |word: &str| resolve(&format!("StrictHostKeyChecking {word}"), "x").strict_host_key_checking;
    assert_eq!(policy("Accept-New"), Some(StrictHostKeyChecking::AcceptNew));
    assert_eq!(policy("off"), Some(StrictHostKeyChecking::No));
    assert_eq!(resolve("IdentityAgent $MY_SOCK", "x").identity_agent.as_deref(), Some("$MY_SOCK"));
}

/// Mistakes, the line they are on, and whether OpenSSH 9.2 points at the same line.
const MISTAKES: [(&str, usize, &str); 16] = [
    ("Host a\n Port 22x\n", 2, "1 to 65535"),
    ("Port 0\n", 1, "1 to 65535"),
    ("Host a\n User \"x\n", 2, "not closed"),
    ("\n\nHost\n", 3, "after host"),
    ("Match\n", 1, "after match"),
    ("Match foo x\n", 1, "unknown condition"),
    ("Match all host x\n", 1, "cannot be combined"),
    ("Match host\n", 1, "expected a pattern"),
    ("Host a\n IdentityFile b c\n", 2, "takes one value"),
    ("StrictHostKeyChecking maybe\n", 1, "accept-new"),
    ("IdentitiesOnly perhaps\n", 1, "yes or no"),
    ("ConnectTimeout 5x\n", 1, "not a time"),
    ("Host a\n HostName ''\n", 2, "after hostname"),
    ("HostName\n", 1, "after hostname"),
    ("Include\n", 1, "after include"),
    ("ProxyJump a:x\n", 1, "jump host"),
];

#[test]
fn mistakes_name_their_file_and_line() {
    for (text, line, words) in MISTAKES {
        let error = parse(text).unwrap_err();
        assert_eq!(error.line, line, "{text}: {error}");
        assert!(error.to_string().starts_with(&format!("config:{line}: ")), "{error}");
        assert!(error.message.contains(words), "{text}: {error}");
    }
    for text in
        ["IdentityFile %q", "IdentityFile x%", "IdentityFile ${NOT_SET_ANYWHERE}", "HostName %p", "IdentityFile ${x"]
    {
        assert_eq!(parse(text).unwrap_err().line, 1, "{text}");
    }
}

#[test]
fn included_files_stand_in_place_of_their_line_and_inherit_its_block() {
    let folder = tempfile::tempdir().unwrap();
    let local = Local { home: folder.path().to_owned(), ..local() };
    let ssh = folder.path().join(".ssh");
    std::fs::create_dir_all(ssh.join("conf.d")).unwrap();
    let write = |name: &str, text: &str| std::fs::write(ssh.join(name), text).unwrap();
    write("config", "Host n*\n Include conf.d/*.conf ~/.ssh/none\n User outer\nHost *\n Port 9\n");
    write("conf.d/b.conf", "Port 2\n");
    write("conf.d/a.conf", "Port 1\nHost *\n User inner\nHost zz\n Port 3\n");
    write("conf.d/.hidden.conf", "Port 4\n");
    let config = Config::load_for(local.clone(), &[ssh.join("config"), ssh.join("missing")]).unwrap();
    let found = config.resolve("n1", Given::default());
    assert_eq!((found.port, found.user.as_deref()), (Some(1), Some("inner")));
    // Inside an Include of a block that does not hold nothing holds, not even `Host *`.
    let found = config.resolve("zz", Given::default());
    assert_eq!((found.port, found.user), (Some(9), None));

    write("conf.d/b.conf", "\nPort x\n");
    let error = Config::load_for(local.clone(), &[ssh.join("config")]).unwrap_err();
    assert_eq!((error.file, error.line), (ssh.join("conf.d/b.conf"), 2));
    write("conf.d/b.conf", "Include config\n");
    let error = Config::load_for(local, &[ssh.join("config")]).unwrap_err();
    assert!(error.message.contains("deep"), "{error}");
}

/// What `ssh -G` prints for a configuration, or its complaint; `None` where there is no ssh.
fn openssh(text: &str, alias: &str) -> Option<Result<Vec<(String, String)>, String>> {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("config");
    std::fs::write(&file, text).unwrap();
    let output = Command::new("ssh").arg("-G").arg("-F").arg(&file).arg(alias).stdin(Stdio::null()).output().ok()?;
    if !output.status.success() {
        return Some(Err(String::from_utf8_lossy(&output.stderr).into_owned()));
    }
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let pair = |line: &str| line.split_once(' ').map(|(key, value)| (key.to_owned(), value.to_owned()));
    Some(Ok(text.lines().filter_map(pair).collect()))
}

#[test]
fn openssh_complains_about_the_same_lines() {
    for (text, line, _) in MISTAKES {
        let Some(answer) = openssh(text, "a") else {
            eprintln!("ssh is not installed: nothing compared");
            return;
        };
        let complaint = answer.expect_err(text);
        assert!(complaint.contains(&format!("line {line}")), "{text}: {complaint}");
    }
}

/// Configurations over which ours and OpenSSH's answers are compared, for every alias below.
const CORPUS: [&str; 15] = [
    "",
    "Host a b\n Port 4\n User = joe\nHost *\n Port 5\n",
    "Host *.lab !bad.lab\n Port 6\nHost ?\n Port 7\n",
    "Host a\n HostName %h.lab\nMatch host a.lab\n Port 8\nMatch originalhost a host *.lab\n User q\nMatch host a\n Port 9\n",
    "Match user root,joe\n Port 10\nMatch !host b\n User z\nMatch all\n Port 11\n",
    "Match host=a\n Port 12\nMatch host \"b,c\"\n Port 13\nMatch user ROOT\n Port 2\n",
    "HostName Q.Lab\nMatch host q.LAB originalhost a\n Port 12\nMatch originalhost B\n Port 13\n",
    "IdentityFile ~/x\nHost a\n IdentityFile \"~/y z\"\n IdentitiesOnly true\n CertificateFile ~/c\nHost b\n IdentityFile none\n",
    "Host a\n ProxyJump none\nHost *\n ProxyJump root@b:23,c\n",
    "StrictHostKeyChecking accept-new\nConnectTimeout 1m30s\nUserKnownHostsFile /x /y\nGlobalKnownHostsFile /z\n",
    "Host a # comment\n\tPort=14#\nHost #b\n Port 3\n",
    "Host a\n User 'joe x'\n HostName \"q#r\"\n",
    "Host A\n Port 15\nHost a.lab\n HostKeyAlias other\n",
    "Port 1\r\nHost a\r\n User joe\r\n",
    "Host !a\n Port 16\nHost !a *\n Port 17\nHost \"b c\" b\n User w\n",
];

#[test]
fn openssh_resolves_a_corpus_of_configurations_alike() {
    let local = Local::here();
    for text in CORPUS {
        for alias in ["a", "b", "A", "a.lab", "bad.lab"] {
            let Some(answer) = openssh(text, alias) else {
                eprintln!("ssh is not installed: nothing compared");
                return;
            };
            let ours = Config::parse(local.clone(), text, Path::new("config"));
            match (answer, ours) {
                (Ok(theirs), Ok(config)) => {
                    compare(text, alias, &theirs, &config.resolve(alias, Given::default()), &local)
                }
                (Err(_), Err(_)) => {}
                (theirs, ours) => panic!("{text:?} for {alias}: OpenSSH {theirs:?}, ours {ours:?}"),
            }
        }
    }
}

fn compare(text: &str, alias: &str, theirs: &[(String, String)], ours: &Resolved, local: &Local) {
    let all = |key: &str| -> Vec<String> {
        theirs.iter().filter(|(name, _)| name == key).map(|(_, value)| value.clone()).collect()
    };
    let one = |key: &str| all(key).first().cloned();
    let files = |files: &[PathBuf]| files.iter().map(|file| file.display().to_string()).collect::<Vec<_>>();
    let at = format!("{text:?} for {alias}");
    assert_eq!(one("hostname").as_deref(), Some(ours.host_name.as_str()), "{at}");
    assert_eq!(one("user").as_deref(), Some(ours.user.as_deref().unwrap_or(&local.user)), "{at}");
    assert_eq!(one("port"), Some(ours.port.unwrap_or(22).to_string()), "{at}");
    let jumps: Vec<String> = ours.proxy_jump.iter().map(|hop| hop.host.clone()).collect();
    let theirs_jumps: Vec<String> = match one("proxyjump") {
        Some(list) => Jump::parse_list(&list).unwrap().into_iter().map(|hop| hop.host).collect(),
        None => Vec::new(),
    };
    assert_eq!(jumps, theirs_jumps, "{at}");
    assert_eq!(one("identitiesonly").as_deref() == Some("yes"), ours.identities_only, "{at}");
    assert_eq!(one("hostkeyalias"), ours.host_key_alias, "{at}");
    let policy = match ours.strict_host_key_checking {
        None | Some(StrictHostKeyChecking::Ask) => "ask",
        Some(StrictHostKeyChecking::Yes) => "true",
        Some(StrictHostKeyChecking::AcceptNew) => "accept-new",
        Some(StrictHostKeyChecking::No) => "false",
    };
    assert_eq!(one("stricthostkeychecking").as_deref(), Some(policy), "{at}");
    let timeout = ours.connect_timeout.map_or("none".to_owned(), |limit| limit.as_secs().to_string());
    assert_eq!(one("connecttimeout"), Some(timeout), "{at}");
    if let Some(known) = &ours.user_known_hosts {
        assert_eq!(one("userknownhostsfile"), Some(files(known).join(" ")), "{at}");
    }
    if let Some(known) = &ours.global_known_hosts {
        assert_eq!(one("globalknownhostsfile"), Some(files(known).join(" ")), "{at}");
    }
    let tilde = |values: Vec<String>| -> Vec<String> {
        let real = values.iter().filter(|value| *value != "none");
        real.map(|value| local.expand_tilde(value).display().to_string()).collect()
    };
    if let Some(own) = &ours.identity_files {
        assert_eq!(tilde(all("identityfile")), files(own), "{at}");
    }
    assert_eq!(tilde(all("certificatefile")), files(&ours.certificate_files), "{at}");
}

proptest! {
    #[test]
    fn any_text_is_answered_without_a_panic(
        text in "\\PC{0,80}|((Host|Match|Port|User|HostName|IdentityFile|ProxyJump|ConnectTimeout|Bogus)[ =]\"?[a-z0-9*!,%@:\\[\\]{}$~ ]{0,12}\"?\r?\n){0,6}"
    ) {
        match parse(&text) {
            Ok(config) => _ = config.resolve("a", Given::default()),
            Err(error) => prop_assert!(error.line >= 1),
        }
    }
}

/// Heads of blocks, and lines in them: all that ours follows, in the spellings that people use.
const HEADS: &str = "Host a|Host b\\*|Host !a \\*|Host a b1|Host \\?|host=\\*\\.lab !bad\\.lab|Host \"a\" x\\*|HOST A|Match host a|Match !host b1|Match originalhost b1 user x|Match user x,y|Match all|\
     Match host \\*\\.lab|Match host=a|Match host \"a,b\\*\"|Match user !x,\\*|match originalhost a,x\\.lab !user y";
const LINES: &str = "HostName (a|b1|%h\\.lab|Q\\.Lab|%h|%%x)|User (x|y|\"x\"|x # y)|User=y|Port [1-9]|port = 8|Port\\t7|ProxyJump (none|j|root@j:23|j,k|\\[::1\\]:4)|\
     ProxyCommand (none|nc %h %p)|IdentityFile (~/[ab]|none|\"~/a b\"|/k)|IdentitiesOnly (yes|no|true|false)|CertificateFile (~/c|/d|none)|\
     StrictHostKeyChecking (yes|no|ask|accept-new|off)|ConnectTimeout (5|1m|1m30s|1h|none)|UserKnownHostsFile (/x /y|~/k|\"/x y\")|GlobalKnownHostsFile (/z|/z /y)|HostKeyAlias (other|A)|\
     #User z|ForwardAgent yes| ";

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    /// Configurations made of the parts that interact: blocks, negation, quotes, tokens, first value wins.
    #[test]
    fn openssh_resolves_a_thousand_random_configurations_alike(
        blocks in prop::collection::vec((HEADS, prop::collection::vec(LINES, 1..4)), 0..6),
        before in prop::collection::vec(LINES, 0..2),
        alias in "a|b1|A|x\\.lab|bad\\.lab|z"
    ) {
        let mut text: String = before.iter().map(|line| format!("{line}\n")).collect();
        for (head, lines) in &blocks {
            text += &format!("{head}\n");
            text.extend(lines.iter().map(|line| format!(" {line}\n")));
        }
        let local = Local::here();
        let ours = Config::parse(local.clone(), &text, Path::new("config"));
        match (openssh(&text, &alias), ours) {
            (Some(Ok(theirs)), Ok(config)) => {
                compare(&text, &alias, &theirs, &config.resolve(&alias, Given::default()), &local);
            }
            (Some(Err(_)), Err(_)) | (None, _) => {}
            (Some(theirs), ours) => {
                prop_assert!(false, "{text:?} for {alias}: OpenSSH {:?}, ours {:?}", theirs.err(), ours.err());
            }
        }
    }
}
