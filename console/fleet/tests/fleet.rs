//! Runs on real SSH servers in this process: what works, and what is said when it does not.

#![expect(clippy::unwrap_used, reason = "helpers of tests may fail the test")]

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use muster_fleet::demo::{LocalFleet, Options};
use muster_fleet::{Event, EventKind, Failure, FailureKind, LinkState, Node, Phase, Probe, Settings, Transport, Work};
use muster_wire::{Beat, Bye, Finished, Frame, Hello, MAGIC, Outcome, Profile, Progress, Reading, Request, encode};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

/// For what must come, on a machine however busy.
const LONG: Duration = Duration::from_secs(600);

fn fleet(nodes: usize) -> LocalFleet {
    LocalFleet::start(&Options { nodes, slow: 0, ..Options::default() }).unwrap()
}

fn settings(fleet: &LocalFleet) -> Settings {
    let short = Duration::from_secs(2);
    Settings { idle: short, ping: Duration::from_millis(300), retries: 1, ..fleet.settings() }
}

fn work(node: &Node) -> Work {
    let request = Request::Run {
        collectors: vec![],
        benchmarks: vec!["cpu-stream".into()],
        profile: Profile::Smoke,
        scratch: None,
        steps: BTreeMap::new(),
    };
    Work::new(node.clone(), request, Duration::from_secs(600))
}

fn hello() -> Frame {
    Frame::Hello(Hello {
        protocol: 1,
        build: "stub".into(),
        boot_id: Reading::Absent,
        hostname: Reading::Absent,
        wall_ns: 0,
        monotonic_ns: 0,
        // The stub does not know its own; the console has it from the shell.
        pid: 0,
        capabilities: vec![],
    })
}

fn progress() -> Frame {
    Frame::Progress(Progress { benchmark: "cpu-stream".into(), done: 0.5, note: "triad".into() })
}

fn bye() -> Frame {
    Frame::Bye(Bye { frames: 2, series: 0, dropped: 0, reason: "finished".into() })
}

/// Octal escapes of frames for the shell's printf.
fn said(bytes: &[u8]) -> String {
    let escapes: String = bytes.iter().map(|byte| format!("\\{byte:03o}")).collect();
    format!("printf '{escapes}'\n")
}

fn frames(frames: &[Frame]) -> Vec<u8> {
    frames.iter().flat_map(|frame| encode(frame).unwrap()).collect()
}

/// A probe that is a shell script: it says `first` and then does `rest`.
fn stub(first: &[Frame], rest: &str) -> Arc<Probe> {
    let mut bytes = MAGIC.to_vec();
    bytes.extend(frames(first));
    Arc::new(Probe::new(format!("#!/bin/sh\n{}{rest}\n", said(&bytes)).into_bytes().into()))
}

async fn run(works: Vec<Work>, probe: Arc<Probe>, settings: Settings) -> Vec<Event> {
    run_until(works, probe, settings, CancellationToken::new(), |_| false).await
}

async fn run_until(
    works: Vec<Work>,
    probe: Arc<Probe>,
    settings: Settings,
    cancel: CancellationToken,
    stop: impl Fn(&EventKind) -> bool,
) -> Vec<Event> {
    let (sender, mut receiver) = mpsc::channel(64);
    let running = tokio::spawn(muster_fleet::run(works, probe, Arc::new(settings), sender, cancel.clone()));
    let mut events = Vec::new();
    while let Some(event) = receiver.recv().await {
        if stop(&event.kind) {
            cancel.cancel();
        }
        events.push(event);
    }
    running.await.unwrap();
    events
}

fn ends(events: &[Event]) -> Vec<Result<Bye, Failure>> {
    let ended = |event: &Event| match &event.kind {
        EventKind::Ended(result) => Some(result.clone()),
        _ => None,
    };
    events.iter().filter_map(ended).collect()
}

fn failure(events: &[Event]) -> Failure {
    let mut ends = ends(events);
    assert_eq!(ends.len(), 1, "{events:?}");
    ends.remove(0).unwrap_err()
}

fn uploads(events: &[Event]) -> usize {
    events.iter().filter(|e| matches!(e.kind, EventKind::Link(LinkState::Uploading { done: 0, .. }))).count()
}

/// Processes whose command line or environment names the fleet's directory.
fn processes(fleet: &LocalFleet) -> Vec<String> {
    let mark = fleet.dir().to_str().unwrap();
    let mut found = Vec::new();
    for entry in std::fs::read_dir("/proc").unwrap().flatten() {
        let environ = std::fs::read(entry.path().join("environ")).unwrap_or_default();
        let line = std::fs::read(entry.path().join("cmdline")).unwrap_or_default();
        if String::from_utf8_lossy(&environ).contains(mark) && !line.is_empty() {
            found.push(String::from_utf8_lossy(&line).replace('\0', " "));
        }
    }
    found
}

/// Waits, without a fixed sleep, until no process of the fleet is left.
async fn gone(fleet: &LocalFleet) -> Vec<String> {
    let begin = Instant::now();
    loop {
        let left = processes(fleet);
        if left.is_empty() || begin.elapsed() > Duration::from_secs(300) {
            return left;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

#[tokio::test]
async fn frames_arrive_in_order_and_the_probe_is_sent_only_once() {
    let fleet = fleet(2);
    let probe = stub(&[hello(), progress(), bye()], "");
    let works: Vec<Work> = fleet.inventory().nodes().iter().map(work).collect();
    let first = run(works.clone(), probe.clone(), settings(&fleet)).await;
    assert_eq!(ends(&first).iter().filter(|end| end.is_ok()).count(), 2, "{first:?}");
    let told: Vec<&Frame> = first
        .iter()
        .filter(|event| event.node == "demo-01")
        .filter_map(|event| if let EventKind::Frame(frame) = &event.kind { Some(frame) } else { None })
        .collect();
    assert_eq!(told, [&hello(), &progress()]);
    assert_eq!(uploads(&first), 2);
    let second = run(works, probe, settings(&fleet)).await;
    assert!(ends(&second).iter().all(Result::is_ok), "{second:?}");
    assert_eq!(uploads(&second), 0);
}

#[tokio::test]
async fn works_of_one_node_share_a_connection_and_keep_their_order() {
    let fleet = fleet(1);
    let node = &fleet.inventory().nodes()[0];
    let events = run(vec![work(node), work(node)], stub(&[hello(), bye()], ""), settings(&fleet)).await;
    assert!(ends(&events).iter().all(Result::is_ok), "{events:?}");
    let logins = events.iter().filter(|e| matches!(e.kind, EventKind::Link(LinkState::Authenticating))).count();
    assert_eq!(logins, 1);
}

#[tokio::test]
async fn a_key_the_node_does_not_know_is_refused_and_said() {
    let fleet = fleet(1);
    let other = self::fleet(1);
    let settings = Settings { identities: other.settings().identities, ..settings(&fleet) };
    let failure = failure(&run(vec![work(&fleet.inventory().nodes()[0])], stub(&[], ""), settings).await);
    assert_eq!((failure.phase, failure.kind), (Phase::Login, FailureKind::LoginRefused));
    assert!(failure.message.starts_with("demo-01: login: as demo: refused; tried "), "{failure}");
    assert!(failure.message.contains("id_ed25519") && failure.message.contains("login shell"), "{failure}");
}

#[tokio::test]
async fn without_any_key_the_missing_file_is_named() {
    let fleet = fleet(1);
    let mut node = fleet.inventory().nodes()[0].clone();
    node.identity = Some("/nowhere/key".into());
    let failure = failure(&run(vec![work(&node)], stub(&[], ""), settings(&fleet)).await);
    assert_eq!(failure.kind, FailureKind::NoKey);
    assert!(failure.message.contains("key /nowhere/key does not exist"), "{failure}");
}

/// Made for this test; its passphrase is `secret`.
const ENCRYPTED: &str = "-----BEGIN OPENSSH PRIVATE KEY-----\n\
b3BlbnNzaC1rZXktdjEAAAAACmFlczI1Ni1jdHIAAAAGYmNyeXB0AAAAGAAAABD6YBSE1b\n\
LI1Ky+7SH2O71dAAAAEAAAAAEAAAAzAAAAC3NzaC1lZDI1NTE5AAAAIIbBr5p2s7ByBKN2\n\
2DG1tz40YkLv4c7TUrTGpXeuz3ngAAAAkLm6shGBrOSKqRKvqpzG4qNI1o3auvZd2WGOg9\n\
0joJOAAiopJH+oA1FB0VXh/WVtl39ldTWDOXRbVmlAmgLKAz0g/bM/ItnRjzH/hc1B2j90\n\
Bc3gwA1Y49luQ7SYAojcI/HV4p5smbZLl/svko2bQy6xd5ils1+e22cYefXO62sH0lKePo\n\
Z3R2Hy5GlWAp19tg==\n\
-----END OPENSSH PRIVATE KEY-----\n\
";

#[tokio::test]
async fn an_encrypted_key_is_named_with_the_way_out() {
    let fleet = fleet(1);
    let key = fleet.dir().join("encrypted");
    std::fs::write(&key, ENCRYPTED).unwrap();
    let settings = Settings { identities: vec![key.clone()], ..settings(&fleet) };
    let failure = failure(&run(vec![work(&fleet.inventory().nodes()[0])], stub(&[], ""), settings).await);
    assert_eq!(failure.kind, FailureKind::NoKey);
    let words = format!("key {} is encrypted; add it to ssh-agent", key.display());
    assert!(failure.message.contains(&words), "{failure}");
}

#[tokio::test]
async fn nodes_behind_a_jump_host_are_reached_through_it() {
    let fleet = fleet(4);
    let (bastion, nodes) = fleet.inventory().nodes().split_first().unwrap();
    let behind = |node: &Node| work(&Node { jump: Some(format!("127.0.0.1:{}", bastion.port)), ..node.clone() });
    let events = run(nodes.iter().map(behind).collect(), stub(&[hello(), bye()], ""), settings(&fleet)).await;
    assert_eq!(ends(&events).iter().filter(|end| end.is_ok()).count(), 3, "{events:?}");
    // Only a direct connection looks up the node's name here.
    assert!(!events.iter().any(|event| matches!(event.kind, EventKind::Link(LinkState::Resolving))));
}

#[tokio::test]
async fn a_jump_host_that_is_down_is_named_for_every_node_behind_it() {
    let fleet = fleet(2);
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let behind = |node: &Node| work(&Node { jump: Some(format!("127.0.0.1:{port}")), ..node.clone() });
    let works = fleet.inventory().nodes().iter().map(behind).collect();
    let events = run(works, stub(&[], ""), settings(&fleet)).await;
    for end in ends(&events) {
        let failure = end.unwrap_err();
        assert_eq!((failure.phase, failure.kind), (Phase::Jump, FailureKind::Refused));
        assert!(
            failure.message.contains(&format!("jump: 127.0.0.1: connect: 127.0.0.1:{port} refuses TCP")),
            "{failure}"
        );
    }
}

/// The fleet's settings with an SSH configuration of one `ProxyCommand` for all hosts.
fn over(fleet: &LocalFleet, command: &str) -> Settings {
    let file = fleet.dir().join("ssh_config");
    std::fs::write(&file, format!("Host *\n  ProxyCommand {command}\n")).unwrap();
    Settings { ssh_config: Some(file), ..settings(fleet) }
}

/// Joins standard input and output with a TCP connection, as nc and socat do.
const RELAY: &str = "bash -c 'exec 3<>/dev/tcp/%h/%p; cat <&3 & cat >&3; kill %%1'";

#[tokio::test]
async fn a_proxy_command_carries_the_connection_and_ends_with_it() {
    let fleet = fleet(1);
    let mark = fleet.dir().display().to_string();
    let settings = over(&fleet, &format!("env MARK={mark} {RELAY}"));
    let node = &fleet.inventory().nodes()[0];
    let events = run(vec![work(node), work(node)], stub(&[hello(), bye()], ""), settings).await;
    assert!(ends(&events).iter().all(Result::is_ok), "{events:?}");
    assert_eq!(gone(&fleet).await, Vec::<String>::new());
}

#[tokio::test]
async fn openssh_itself_carries_the_connection_through_a_node() {
    let fleet = fleet(2);
    let (bastion, node) = (&fleet.inventory().nodes()[0], &fleet.inventory().nodes()[1]);
    let settings = settings(&fleet);
    let (key, known) = (settings.identities[0].display(), settings.known_hosts[0].display());
    let options = format!("-F none -i {key} -o UserKnownHostsFile={known} -o BatchMode=yes -l {}", settings.user);
    let settings = over(&fleet, &format!("ssh {options} -p {} -W %h:%p 127.0.0.1", bastion.port));
    let events = run(vec![work(node)], stub(&[hello(), bye()], ""), settings).await;
    assert!(ends(&events).iter().all(Result::is_ok), "{events:?}");
}

/// Settings with which the system's `ssh` finds the fleet's keys and records.
fn with_openssh(fleet: &LocalFleet, transport: Transport) -> Settings {
    let settings = settings(fleet);
    let (key, known) = (settings.identities[0].display(), settings.known_hosts[0].display());
    let file = fleet.dir().join("ssh_config");
    std::fs::write(&file, format!("IdentityFile {key}\nUserKnownHostsFile {known}\nUser {}\n", settings.user)).unwrap();
    Settings { ssh_config: Some(file), transport, ..settings }
}

#[tokio::test]
async fn the_systems_ssh_carries_upload_and_frames() {
    let fleet = fleet(1);
    let node = &fleet.inventory().nodes()[0];
    let settings = with_openssh(&fleet, Transport::OpenSsh);
    let events = run(vec![work(node), work(node)], stub(&[hello(), progress(), bye()], ""), settings.clone()).await;
    assert!(ends(&events).iter().all(Result::is_ok), "{events:?}");
    assert_eq!(uploads(&events), 1);
    let stopped = stub(&[hello(), progress()], "kill -STOP $$; sleep 60");
    let failure = failure(&run(vec![work(node)], stopped, settings).await);
    assert!(failure.message.contains("the probe is stopped or starved"), "{failure}");
    assert_eq!(gone(&fleet).await, Vec::<String>::new());
}

#[tokio::test]
async fn the_systems_ssh_is_asked_where_we_have_no_usable_key() {
    let fleet = fleet(1);
    let node = &fleet.inventory().nodes()[0];
    // An encrypted key for us; the system's ssh finds the right one beside it.
    let key = fleet.dir().join("encrypted");
    std::fs::write(&key, ENCRYPTED).unwrap();
    let settings = with_openssh(&fleet, Transport::Auto);
    let config = settings.ssh_config.clone().unwrap();
    let text = std::fs::read_to_string(&config).unwrap();
    let ours = fleet.dir().join("ours");
    let known = settings.known_hosts[0].display();
    std::fs::write(&ours, format!("IdentityFile {}\nUserKnownHostsFile {known}\n", key.display())).unwrap();
    let own = Settings { ssh_config: Some(ours.clone()), ..settings.clone() };
    let refused = failure(&run(vec![work(node)], stub(&[], ""), own).await);
    assert_eq!(refused.kind, FailureKind::NoKey);
    assert!(refused.message.contains("is encrypted; add it to ssh-agent"), "{refused}");
    assert!(refused.message.contains("; the system's ssh said '"), "{refused}");
    // `Match exec` holds for the system's ssh only.
    std::fs::write(&ours, format!("Match exec true\n{text}\nMatch all\n IdentityFile {}\n", key.display())).unwrap();
    let events =
        run(vec![work(node)], stub(&[hello(), bye()], ""), Settings { ssh_config: Some(ours), ..settings }).await;
    assert!(ends(&events).iter().all(Result::is_ok), "{events:?}");
}

#[tokio::test]
async fn what_the_systems_ssh_says_is_quoted() {
    let fleet = fleet(1);
    let mut node = fleet.inventory().nodes()[0].clone();
    let settings = with_openssh(&fleet, Transport::OpenSsh);
    node.port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let failure = failure(&run(vec![work(&node)], stub(&[], ""), settings).await);
    assert!(failure.message.contains("the system's ssh failed; it said 'ssh: connect to host"), "{failure}");
    assert!(failure.message.contains("Connection refused"), "{failure}");
}

#[tokio::test]
async fn a_proxy_command_that_fails_is_quoted_with_its_last_words() {
    let fleet = fleet(1);
    let node = &fleet.inventory().nodes()[0];
    let broken = over(&fleet, "sh -c 'echo no such tunnel >&2; exit 7'");
    let failure = failure(&run(vec![work(node)], stub(&[], ""), broken).await);
    assert_eq!(failure.kind, FailureKind::Unreachable, "{failure}");
    let words = "closed before the banner; ProxyCommand 'sh -c 'echo no such tunnel >&2; exit 7'' ended";
    assert!(failure.message.contains("exit status: 7; it said 'no such tunnel'"), "{failure}");
    assert!(failure.message.contains(words), "{failure}");
}

#[tokio::test]
async fn a_changed_host_key_is_refused_with_file_line_and_both_fingerprints() {
    let fleet = fleet(2);
    let records = std::fs::read_to_string(fleet.dir().join("known_hosts")).unwrap();
    let keys: Vec<&str> = records.lines().map(|line| line.split_once(' ').unwrap().1).collect();
    let port = fleet.inventory().nodes()[0].port;
    let changed = fleet.dir().join("changed");
    std::fs::write(&changed, format!("# moved\n[127.0.0.1]:{port} {}\n", keys[1])).unwrap();
    let settings = Settings { known_hosts: vec![changed.clone()], ..settings(&fleet) };
    let failure = failure(&run(vec![work(&fleet.inventory().nodes()[0])], stub(&[], ""), settings).await);
    assert_eq!((failure.phase, failure.kind), (Phase::HostKey, FailureKind::HostKeyChanged));
    assert!(failure.message.contains(&format!("{}:2 has", changed.display())), "{failure}");
    assert_eq!(failure.message.matches("SHA256:").count(), 2, "{failure}");
}

#[tokio::test]
async fn an_unknown_host_key_is_refused_or_recorded_as_the_policy_says() {
    let fleet = fleet(1);
    let node = &fleet.inventory().nodes()[0];
    let records = fleet.dir().join("new/known_hosts");
    let strict = Settings { known_hosts: vec![records.clone()], ..settings(&fleet) };
    let accept = Settings { host_key_policy: Some(muster_fleet::HostKeyPolicy::AcceptNew), ..strict.clone() };
    let failure = failure(&run(vec![work(node)], stub(&[], ""), strict.clone()).await);
    assert_eq!(failure.kind, FailureKind::HostKeyUnknown, "{failure}");
    let probe = stub(&[hello(), bye()], "");
    assert!(ends(&run(vec![work(node)], probe.clone(), accept).await)[0].is_ok());
    assert!(ends(&run(vec![work(node)], probe, strict).await)[0].is_ok(), "recorded by the run before");
}

#[tokio::test]
async fn a_person_is_asked_about_all_unknown_keys_at_once_and_a_recorded_key_is_told_once() {
    let fleet = fleet(3);
    let nodes = fleet.inventory().nodes();
    let file = fleet.dir().join("asked/known_hosts");
    let ask = |given| Settings { known_hosts: vec![file.clone()], host_key_policy: given, ..settings(&fleet) };
    let refused = failure(&run(vec![work(&nodes[0])], stub(&[], ""), ask(None)).await);
    assert_eq!(refused.kind, FailureKind::HostKeyUnknown);
    assert!(refused.message.contains("--host-keys accept-new"), "{refused}");

    let keys = muster_fleet::unknown_keys(nodes, Arc::new(ask(None))).await;
    assert_eq!(keys.len(), 3, "{keys:?}");
    assert!(keys.iter().all(|key| key.to_string().contains("SHA256:")) && !file.exists());
    keys[0].record().unwrap();
    assert_eq!(muster_fleet::unknown_keys(nodes, Arc::new(ask(None))).await.len(), 2);

    let told = Arc::new(std::sync::Mutex::new(Vec::new()));
    let heard = told.clone();
    let tell = muster_fleet::Tell::new(move |what| heard.lock().unwrap().push(what.to_owned()));
    let accept = Settings { tell, ..ask(Some(muster_fleet::HostKeyPolicy::AcceptNew)) };
    let probe = stub(&[hello(), bye()], "");
    for _ in 0..2 {
        let works = nodes.iter().flat_map(|node| [work(node), work(node)]).collect();
        assert!(ends(&run(works, probe.clone(), accept.clone()).await).iter().all(Result::is_ok));
    }
    let told = told.lock().unwrap();
    assert_eq!(told.len(), 2, "{told:?}");
    assert!(told.iter().all(|said| said.contains("new host key SHA256:") && said.contains("recorded in")), "{told:?}");
}

/// Passes connections on to `port`; the first one it cuts after so many bytes for the server. Its own port.
async fn cutting(port: u16, after: usize) -> u16 {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let own = listener.local_addr().unwrap().port();
    tokio::spawn(async move {
        for connection in 0.. {
            let (mut client, _) = listener.accept().await.unwrap();
            let mut server = tokio::net::TcpStream::connect(("127.0.0.1", port)).await.unwrap();
            tokio::spawn(async move {
                if connection > 0 {
                    return drop(tokio::io::copy_bidirectional(&mut client, &mut server).await);
                }
                let ((mut from, mut to), (mut answers, mut back)) = (client.split(), server.split());
                let mut limited = tokio::io::AsyncReadExt::take(&mut from, after as u64);
                tokio::select! {
                    _ = tokio::io::copy(&mut limited, &mut back) => {}
                    _ = tokio::io::copy(&mut answers, &mut to) => {}
                }
            });
        }
    });
    own
}

#[tokio::test]
async fn an_upload_that_is_cut_is_tried_once_more_on_a_fresh_connection() {
    let fleet = fleet(1);
    let mut node = fleet.inventory().nodes()[0].clone();
    node.port = cutting(node.port, 600_000).await;
    let file = fleet.dir().join("cut/known_hosts");
    let policy = Some(muster_fleet::HostKeyPolicy::AcceptNew);
    let settings = Settings { known_hosts: vec![file], host_key_policy: policy, ..settings(&fleet) };
    // Random, so that it is as long packed.
    let padding: String = (0..150_000).map(|_| format!("#{:016x}\n", rand::random::<u64>())).collect();
    let probe = stub(&[hello(), bye()], &padding);
    let events = run(vec![work(&node)], probe, settings).await;
    assert!(ends(&events)[0].is_ok(), "{events:?}");
    assert_eq!(uploads(&events), 2, "a second try on a fresh connection");
}

#[tokio::test]
async fn a_server_that_never_sends_a_banner_is_told_from_one_that_is_not_there() {
    let fleet = fleet(1);
    let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let mut node = fleet.inventory().nodes()[0].clone();
    node.port = silent.local_addr().unwrap().port();
    let settings = Settings { banner: Duration::from_millis(300), ..settings(&fleet) };
    let mute = failure(&run(vec![work(&node)], stub(&[], ""), settings.clone()).await);
    assert_eq!(mute.kind, FailureKind::NoBanner);
    let said = "demo-01: connect: no banner within 300 ms (TCP connected; is sshd stopped or the node hung?)";
    assert_eq!(mute.message, said);
    drop(silent);
    let closed = failure(&run(vec![work(&node)], stub(&[], ""), settings).await);
    assert_eq!(closed.kind, FailureKind::Refused, "{closed}");
}

#[tokio::test]
async fn a_server_that_closes_before_the_banner_is_tried_again() {
    let fleet = fleet(1);
    let rude = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let mut node = fleet.inventory().nodes()[0].clone();
    node.port = rude.local_addr().unwrap().port();
    let closing = tokio::spawn(async move {
        for visits in 1.. {
            let Ok((stream, _)) = rude.accept().await else { return visits };
            drop(stream);
        }
        0
    });
    let settings = Settings { retries: 2, back_off: Duration::from_millis(10), ..settings(&fleet) };
    let events = run(vec![work(&node)], stub(&[], ""), settings).await;
    closing.abort();
    assert_eq!(failure(&events).kind, FailureKind::Dropped);
    let waits = events.iter().filter(|e| matches!(e.kind, EventKind::Link(LinkState::Waiting { .. }))).count();
    assert_eq!(waits, 2);
}

#[tokio::test]
async fn garbage_instead_of_frames_ends_the_work_with_words() {
    let fleet = fleet(1);
    let rest = format!("{}exec sleep 60", said(&[0, 0, 0, 3, 0xff, 0xff, 0xff]));
    let failure =
        failure(&run(vec![work(&fleet.inventory().nodes()[0])], stub(&[hello()], &rest), settings(&fleet)).await);
    assert_eq!(failure.kind, FailureKind::Protocol, "{failure}");
    assert_eq!(gone(&fleet).await, Vec::<String>::new());
}

#[tokio::test]
async fn a_probe_that_never_greets_is_told_with_what_it_said() {
    let fleet = fleet(1);
    let probe = Arc::new(Probe::new(b"#!/bin/sh\necho hello there; exec sleep 60\n".to_vec().into()));
    let settings = Settings { start: Duration::from_secs(6), ..settings(&fleet) };
    let failure = failure(&run(vec![work(&fleet.inventory().nodes()[0])], probe, settings).await);
    assert_eq!((failure.phase, failure.kind, failure.lost()), (Phase::Start, FailureKind::Hang, true));
    assert!(failure.message.contains("hello there"), "{failure}");
}

#[tokio::test]
async fn a_probe_that_dies_is_named_with_its_signal_and_its_last_words() {
    let fleet = fleet(1);
    let probe = stub(&[hello(), progress()], "echo out of luck >&2; kill -9 $$");
    let failure = failure(&run(vec![work(&fleet.inventory().nodes()[0])], probe, settings(&fleet)).await);
    assert_eq!((failure.phase, failure.kind), (Phase::Run, FailureKind::Cut));
    assert!(failure.message.contains("was killed") && failure.message.contains("cpu-stream"), "{failure}");
    assert!(failure.message.contains("out of luck"), "{failure}");
}

#[tokio::test]
async fn a_probe_that_is_killed_before_its_first_frame_is_lost_and_one_that_ends_by_itself_did_not_start() {
    let fleet = fleet(1);
    let node = &fleet.inventory().nodes()[0];
    for (end, kind) in [("kill -9 $$", FailureKind::Cut), ("exit 3", FailureKind::NotStarted)] {
        let failure = failure(&run(vec![work(node)], stub(&[], end), settings(&fleet)).await);
        assert_eq!((failure.phase, failure.kind, failure.lost()), (Phase::Start, kind, kind == FailureKind::Cut));
        assert!(failure.message.contains(" before the probe's first frame"), "{failure}");
    }
}

#[tokio::test]
async fn a_probe_that_others_stop_is_lost_with_what_it_was_at_and_gives_no_result_of_what_it_broke_off() {
    let fleet = fleet(1);
    let name = "cpu-stream".to_owned();
    let broken_off = Frame::Finished(Finished { name, outcome: Outcome::stopped(), elapsed_ns: 1 });
    let bye = Frame::Bye(Bye { frames: 3, series: 0, dropped: 0, reason: "ended by SIGTERM".into() });
    let probe = stub(&[hello(), progress(), broken_off, bye], "");
    let events = run(vec![work(&fleet.inventory().nodes()[0])], probe, settings(&fleet)).await;
    let failure = failure(&events);
    assert!(failure.kind == FailureKind::Cut && failure.lost(), "{failure:?}");
    assert_eq!(failure.message, "demo-01: run: the probe stopped during cpu-stream: ended by SIGTERM");
    assert!(!events.iter().any(|event| matches!(event.kind, EventKind::Frame(Frame::Finished(_)))), "{events:?}");
}

#[tokio::test]
async fn a_stopped_probe_hangs_is_named_and_is_killed() {
    let fleet = fleet(1);
    let probe = stub(&[hello(), progress()], "kill -STOP $$; sleep 60");
    let failure = failure(&run(vec![work(&fleet.inventory().nodes()[0])], probe, settings(&fleet)).await);
    assert_eq!(failure.kind, FailureKind::Hang);
    let words = "no frame for 2 s during cpu-stream; the node answers, so the probe is stopped or starved";
    assert!(failure.message.contains(words), "{failure}");
    assert_eq!(gone(&fleet).await, Vec::<String>::new());
}

#[tokio::test]
async fn a_probe_that_beats_is_alive_until_its_time_is_up() {
    let fleet = fleet(1);
    let beat = said(&frames(&[Frame::Beat(Beat { wall_ns: 1, monotonic_ns: 1, nonce: 0 })]));
    let probe = stub(&[hello(), progress()], &format!("while :; do {beat} sleep 0.2; done"));
    // Twice as long as it may be silent, and that long enough for a shell that seldom gets a core.
    let work = Work { limit: Duration::from_secs(12), ..work(&fleet.inventory().nodes()[0]) };
    let settings = Settings { idle: Duration::from_secs(6), ..settings(&fleet) };
    let failure = failure(&run(vec![work], probe, settings).await);
    assert_eq!(failure.kind, FailureKind::TimeLimit, "{failure}");
    assert_eq!(gone(&fleet).await, Vec::<String>::new());
}

#[tokio::test]
async fn cancelling_kills_the_remote_process_tree() {
    let fleet = fleet(2);
    let probe = stub(&[hello(), progress()], "trap '' TERM HUP INT; sleep 300 & sleep 301 & wait");
    let works = fleet.inventory().nodes().iter().map(work).collect();
    let patient = Settings { idle: LONG, ..settings(&fleet) };
    let live = |kind: &EventKind| matches!(kind, EventKind::Frame(Frame::Progress(_)));
    let events = run_until(works, probe, patient, CancellationToken::new(), live).await;
    let kinds: Vec<_> = ends(&events).into_iter().map(|end| end.unwrap_err().kind).collect();
    assert_eq!(kinds, [FailureKind::Cancelled; 2]);
    assert_eq!(gone(&fleet).await, Vec::<String>::new());
}

#[tokio::test]
async fn hostile_process_ids_are_not_killed() {
    let fleet = fleet(1);
    let Frame::Hello(mut liar) = hello() else { unreachable!() };
    liar.pid = 1;
    let probe = stub(&[Frame::Hello(liar), progress()], "exec sleep 60");
    let failure = failure(&run(vec![work(&fleet.inventory().nodes()[0])], probe, settings(&fleet)).await);
    assert_eq!(failure.kind, FailureKind::Hang);
    assert_eq!(gone(&fleet).await, Vec::<String>::new());
}

#[tokio::test]
async fn noise_of_the_login_shell_does_not_matter() {
    let fleet = fleet(1);
    let node = &fleet.inventory().nodes()[0];
    let probe = Arc::new(Probe::new(
        format!("#!/bin/sh\necho noise of a wrapper; {}", said(&[&MAGIC[..], &frames(&[hello(), bye()])].concat()))
            .into_bytes()
            .into(),
    ));
    assert!(ends(&run(vec![work(node)], probe, settings(&fleet)).await)[0].is_ok());
}

#[tokio::test]
async fn cleaning_removes_the_probe_and_says_where_it_was() {
    let fleet = fleet(1);
    let node = fleet.inventory().nodes()[0].clone();
    run(vec![work(&node)], stub(&[hello(), bye()], ""), settings(&fleet)).await;
    let nodes = [node];
    let cleaned = muster_fleet::clean(&nodes, Arc::new(settings(&fleet))).await.remove(0).1.unwrap();
    let home = fleet.dir().join("demo-01");
    assert!(cleaned.removed.iter().any(|dir| dir.starts_with(home.to_str().unwrap())), "{cleaned:?}");
    assert_eq!(std::fs::read_dir(home.join(".cache")).unwrap().count(), 0);
}

#[tokio::test]
async fn two_hundred_connections_work_at_once() {
    let fleet = fleet(8);
    let mut works = Vec::new();
    for place in 0..200 {
        let mut node = fleet.inventory().nodes()[place % 8].clone();
        node.name = format!("many-{place:03}");
        works.push(work(&node));
    }
    let patient = Settings {
        fan_out: 200,
        retries: 6,
        connect: LONG,
        banner: LONG,
        login: LONG,
        upload: LONG,
        idle: LONG,
        start: LONG,
        ..fleet.settings()
    };
    let events = run(works, stub(&[hello(), bye()], ""), patient).await;
    let failed: Vec<String> = ends(&events).into_iter().filter_map(|end| end.err().map(|f| f.message)).collect();
    assert_eq!(failed, Vec::<String>::new());
    assert_eq!(ends(&events).len(), 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_that_has_got_the_probe_keeps_nobody_from_connecting() {
    let fleet = fleet(2);
    let met = fleet.dir().join("met");
    std::fs::create_dir(&met).unwrap();
    // Nobody speaks before both have started, so that a window of one is enough only where the first has left it.
    let met = met.display();
    let wait = format!("touch {met}/$$; until [ $(ls {met} | wc -l) -ge 2 ]; do sleep 0.05; done");
    let mut first = MAGIC.to_vec();
    first.extend(frames(&[hello(), bye()]));
    let probe = Arc::new(Probe::new(format!("#!/bin/sh\n{wait}\n{}\n", said(&first)).into_bytes().into()));
    let works = fleet.inventory().nodes().iter().map(work).collect();
    let one = Settings { fan_out: 1, start: Duration::from_secs(60), ..settings(&fleet) };
    let events = run(works, probe, one).await;
    assert!(ends(&events).iter().all(Result::is_ok), "{events:?}");
    assert_eq!((ends(&events).len(), uploads(&events)), (2, 2), "{events:?}");
}

#[tokio::test]
async fn slowed_nodes_follow_the_seed_and_leave_nothing_stopped() {
    let options = Options { nodes: 4, slow: 2, seed: 7, ..Options::default() };
    let fleet = LocalFleet::start(&options).unwrap();
    let again = LocalFleet::start(&options).unwrap();
    assert_eq!(fleet.slowed(), again.slowed());
    assert_eq!(fleet.slowed().len(), 2);
    let works = fleet.inventory().nodes().iter().map(work).collect();
    let events = run(works, stub(&[hello(), bye()], ""), settings(&fleet)).await;
    assert!(ends(&events).iter().all(Result::is_ok), "{events:?}");
    assert_eq!(gone(&fleet).await, Vec::<String>::new());
}

#[tokio::test]
async fn the_fleet_leaves_no_process_and_no_directory() {
    let fleet = fleet(1);
    let dir = fleet.dir().to_path_buf();
    let nodes = fleet.inventory().nodes().to_vec();
    let settings = Arc::new(fleet.settings());
    let limit = Duration::from_millis(500);
    // Its own session, so that only the mark in its environment leads to it.
    let results = muster_fleet::command(&nodes, "setsid sleep 300 >/dev/null 2>&1 & sleep 300", limit, settings).await;
    assert_eq!(results[0].1.as_ref().unwrap_err().kind, FailureKind::TimeLimit);
    drop(fleet);
    assert!(!dir.exists());
}

#[tokio::test]
async fn a_real_probe_runs_where_one_is_given() {
    let Some(path) = std::env::var_os("MUSTER_TEST_PROBE") else {
        let why = "MUSTER_TEST_PROBE names no built probe";
        return muster_skip::skip("a_real_probe_runs_where_one_is_given", muster_skip::Lacks::Tool, why);
    };
    let fleet = fleet(2);
    let probe = Arc::new(Probe::new(std::fs::read(path).unwrap().into()));
    let mut works: Vec<Work> = fleet.inventory().nodes().iter().map(work).collect();
    for work in &mut works {
        work.request = Request::Run {
            collectors: vec!["identity".into()],
            benchmarks: vec!["cpu-dispatch".into()],
            profile: Profile::Smoke,
            scratch: None,
            steps: BTreeMap::new(),
        };
    }
    let settings = Settings { idle: LONG, ..settings(&fleet) };
    let events = run(works, probe, settings).await;
    assert!(ends(&events).iter().all(Result::is_ok), "{events:?}");
    assert!(events.iter().any(|event| matches!(event.kind, EventKind::Frame(Frame::Series(_)))));
}

#[tokio::test(flavor = "multi_thread")]
async fn probes_that_stay_are_all_open_at_once_and_leave_when_nobody_orders_any_more() {
    let fleet = fleet(2);
    let settings =
        Settings { fan_out: 1, ping: Duration::from_secs(60), idle: Duration::from_secs(20), ..settings(&fleet) };
    let opening = MAGIC.len() + muster_wire::encode_request(&Request::Ping { nonce: 0 }).unwrap().len();
    let order = Request::Ping { nonce: 1 << 40 };
    let asked = opening
        + muster_wire::encode_request(&order).unwrap().len()
        + muster_wire::encode_request(&Request::Stop).unwrap().len();
    let probe = stub(&[hello()], &format!("head -c {asked} >/dev/null\n{}", said(&frames(&[bye()]))));
    let (senders, talks): (Vec<_>, Vec<_>) = fleet
        .inventory()
        .nodes()
        .iter()
        .map(|node| {
            let (sender, orders) = mpsc::channel(4);
            (sender, muster_fleet::Talk { node: node.clone(), orders, limit: Duration::from_secs(60) })
        })
        .unzip();
    let (events, mut heard) = mpsc::channel(64);
    let running = tokio::spawn(muster_fleet::talk(talks, probe, Arc::new(settings), events, CancellationToken::new()));
    let mut live = 0;
    // With a window of one the second only opens because the first, which goes on, gave its place back.
    while live < 2 {
        live += usize::from(matches!(heard.recv().await.unwrap().kind, EventKind::Frame(Frame::Hello(_))));
    }
    for sender in &senders {
        sender.send(order.clone()).await.unwrap();
    }
    drop(senders);
    let mut ended = Vec::new();
    while let Some(event) = heard.recv().await {
        ended.extend(ends(&[event]));
    }
    running.await.unwrap();
    assert_eq!(ended, [Ok(Bye { frames: 2, series: 0, dropped: 0, reason: "finished".into() }), ended[1].clone()]);
    assert!(ended[1].is_ok());
}
