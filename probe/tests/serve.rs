//! The probe as a console meets it: a child process with frames on its pipes.
#![expect(clippy::unwrap_used, reason = "helpers of tests fail the test")]

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread;
use std::time::{Duration, Instant};

use muster_wire::{Bye, Decoder, Frame, MAGIC, Outcome, PROTOCOL, Profile, Request, Steps, encode_request};

/// Long enough for any machine; reached only when the probe hangs.
const LIMIT: Duration = Duration::from_secs(120);

struct Probe {
    child: Child,
    input: Option<ChildStdin>,
    frames: Receiver<Frame>,
}

impl Probe {
    fn start() -> Self {
        let mut child = Command::new(env!("CARGO_BIN_EXE_muster-probe"))
            .arg("serve")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut output = child.stdout.take().unwrap();
        let (post, frames) = channel();
        thread::spawn(move || {
            let mut decoder = Decoder::new();
            let mut chunk = [0; 4096];
            while let Ok(count @ 1..) = output.read(&mut chunk) {
                decoder.push(&chunk[..count]);
                while let Some(frame) = decoder.frame().unwrap() {
                    let _ = post.send(frame);
                }
            }
        });
        let input = child.stdin.take();
        Self { child, input, frames }
    }

    fn send(&mut self, bytes: &[u8]) {
        self.input.as_mut().unwrap().write_all(bytes).unwrap();
    }

    fn ask(&mut self, request: &Request) {
        self.send(&encode_request(request).unwrap());
    }

    fn run(&mut self, collectors: &[&str], benchmarks: &[&str], profile: Profile) {
        self.send(&MAGIC);
        let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        let (collectors, benchmarks) = (names(collectors), names(benchmarks));
        self.ask(&Request::Run { collectors, benchmarks, profile, scratch: None, steps: BTreeMap::new() });
    }

    /// Frames up to and with the first for which `last` holds.
    fn until(&self, last: impl Fn(&Frame) -> bool) -> Vec<Frame> {
        let begin = Instant::now();
        let mut seen = Vec::new();
        loop {
            match self.frames.recv_timeout(LIMIT.saturating_sub(begin.elapsed())) {
                Ok(frame) => {
                    seen.push(frame);
                    if last(&seen[seen.len() - 1]) {
                        return seen;
                    }
                }
                Err(error) => panic!("{error} after {seen:#?}"),
            }
        }
    }

    fn bye(&self) -> (Vec<Frame>, Bye) {
        let mut seen = self.until(|frame| matches!(frame, Frame::Bye(_)));
        match seen.pop() {
            Some(Frame::Bye(bye)) => (seen, bye),
            other => panic!("{other:?}"),
        }
    }

    fn end(mut self) -> ExitStatus {
        let begin = Instant::now();
        loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                return status;
            }
            assert!(begin.elapsed() < LIMIT, "the probe does not end");
            thread::sleep(Duration::from_millis(10));
        }
    }

    fn signal(&self, name: &str) {
        let pid = self.child.id().to_string();
        assert!(Command::new("kill").args(["-s", name, &pid]).status().unwrap().success());
    }
}

impl Drop for Probe {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn outcomes(frames: &[Frame]) -> Vec<(&str, &Outcome)> {
    frames
        .iter()
        .filter_map(|frame| if let Frame::Finished(f) = frame { Some((f.name.as_str(), &f.outcome)) } else { None })
        .collect()
}

#[test]
fn a_benchmark_takes_the_steps_that_it_is_told_to_take() {
    let mut probe = Probe::start();
    probe.send(&MAGIC);
    probe.ask(&Request::Run {
        collectors: Vec::new(),
        benchmarks: vec!["cpu-dispatch".to_owned()],
        profile: Profile::Quick,
        scratch: None,
        steps: BTreeMap::from([("cpu-dispatch".to_owned(), Steps { warmup: 3, measured: 10 })]),
    });
    let (frames, _) = probe.bye();
    let series = frames.iter().filter_map(|f| if let Frame::Series(s) = f { Some(s) } else { None });
    let taken: Vec<(usize, u32)> = series.map(|s| (s.values.len(), s.warmup)).collect();
    assert!(!taken.is_empty() && taken.iter().all(|(values, warmup)| *values == 10 && *warmup > 3), "{taken:?}");
}

#[test]
fn hello_comes_first_and_unasked() {
    let probe = Probe::start();
    let first = probe.until(|_| true);
    let [Frame::Hello(hello)] = &first[..] else { panic!("{first:?}") };
    assert_eq!(hello.protocol, PROTOCOL);
    assert_eq!(hello.pid, probe.child.id());
    assert!(hello.wall_ns > 1_600_000_000_000_000_000 && hello.monotonic_ns > 0);
    assert!(hello.boot_id.value().is_some());
}

#[test]
fn the_probe_leads_a_process_group_of_its_own() {
    let probe = Probe::start();
    probe.until(|_| true);
    let pid = probe.child.id();
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    let fields: Vec<&str> = stat.rsplit_once(')').unwrap().1.split_whitespace().collect();
    assert_eq!((fields[2], fields[3]), (pid.to_string().as_str(), pid.to_string().as_str()), "group and session");
}

#[test]
fn a_smoke_run_ends_with_bye_and_right_counts() {
    let mut probe = Probe::start();
    probe.run(&["cpu", "load", "aura"], &["cpu-dispatch"], Profile::Smoke);
    let (frames, bye) = probe.bye();
    let series = frames.iter().filter(|frame| matches!(frame, Frame::Series(_))).count();
    assert!(series > 0, "{frames:#?}");
    let expected = Bye {
        frames: u64::try_from(frames.len()).unwrap(),
        series: u64::try_from(series).unwrap(),
        dropped: bye.dropped,
        reason: "finished".to_owned(),
    };
    assert_eq!(bye, expected);
    let ended = outcomes(&frames);
    assert_eq!(
        ended.iter().map(|(name, _)| *name).collect::<Vec<_>>(),
        ["collect/cpu", "collect/load", "collect/aura", "cpu-dispatch"]
    );
    assert_eq!((ended[0].1, ended[3].1), (&Outcome::Done, &Outcome::Done));
    assert!(matches!(ended[2].1, Outcome::NotRun(_)), "{ended:?}");
    assert!(probe.end().success());
}

#[test]
fn what_a_work_item_said_comes_before_its_end() {
    let mut probe = Probe::start();
    probe.run(&["memory"], &["cpu-dispatch"], Profile::Smoke);
    let (frames, _) = probe.bye();
    let at = |wanted: &dyn Fn(&Frame) -> bool| frames.iter().position(wanted).unwrap();
    let facts = at(&|f| matches!(f, Frame::Facts(facts) if facts.collector == "memory"));
    let looked = at(&|f| matches!(f, Frame::Finished(finished) if finished.name == "collect/memory"));
    let busy = at(&|f| matches!(f, Frame::Facts(facts) if facts.collector == "load"));
    let first = at(&|f| matches!(f, Frame::Series(_)));
    let measured = at(&|f| matches!(f, Frame::Finished(finished) if finished.name == "cpu-dispatch"));
    assert!(facts < looked && looked < busy && busy < first && first < measured, "{frames:#?}");
}

#[test]
fn a_ping_is_answered_and_life_goes_on_without_one() {
    let mut probe = Probe::start();
    probe.send(&MAGIC);
    probe.ask(&Request::Ping { nonce: 4711 });
    probe.until(|frame| matches!(frame, Frame::Beat(beat) if beat.nonce == 4711));
    probe.until(|frame| matches!(frame, Frame::Beat(beat) if beat.nonce == 0));
}

#[test]
fn stop_ends_a_long_run_and_names_what_was_not_run() {
    let mut probe = Probe::start();
    probe.run(&[], &["cpu-dispatch", "cpu-gemm"], Profile::Full);
    probe.until(|frame| matches!(frame, Frame::Progress(_)));
    probe.ask(&Request::Stop);
    let (frames, bye) = probe.bye();
    assert_eq!(bye.reason, "stopped");
    let ended = outcomes(&frames);
    assert_eq!(ended.len(), 2, "{ended:?}");
    assert!(ended.iter().all(|(_, outcome)| matches!(outcome, Outcome::NotRun(_))), "{ended:?}");
    assert!(probe.end().success());
}

#[test]
fn the_end_of_input_ends_the_probe() {
    let mut probe = Probe::start();
    probe.run(&[], &["cpu-dispatch"], Profile::Full);
    probe.until(|frame| matches!(frame, Frame::Progress(_)));
    probe.input = None;
    let (_, bye) = probe.bye();
    assert!(bye.reason.contains("input ended"), "{bye:?}");
    assert_eq!(probe.end().code(), Some(3));
}

#[test]
fn a_signal_ends_the_probe_and_is_named() {
    for name in ["TERM", "HUP"] {
        let mut probe = Probe::start();
        probe.run(&[], &["cpu-dispatch"], Profile::Full);
        probe.until(|frame| matches!(frame, Frame::Progress(_)));
        probe.signal(name);
        let (_, bye) = probe.bye();
        assert_eq!(bye.reason, format!("ended by SIG{name}"));
        let status = probe.end();
        assert_eq!((status.code(), status.signal()), (Some(3), None));
    }
}

#[test]
fn a_closed_output_ends_the_probe() {
    let mut child = Command::new(env!("CARGO_BIN_EXE_muster-probe"))
        .arg("serve")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let (tell, told) = channel();
    thread::spawn(move || tell.send(child.wait().map(|status| status.code())));
    match told.recv_timeout(LIMIT) {
        Ok(code) => assert_eq!(code.unwrap(), Some(3)),
        Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => panic!("the probe does not end"),
    }
}

#[test]
fn a_console_that_does_not_read_cannot_hold_the_probe() {
    let mut child = Command::new(env!("CARGO_BIN_EXE_muster-probe"))
        .arg("serve")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut requests = MAGIC.to_vec();
    let collectors = vec!["identity".to_owned(); 1000];
    let run = Request::Run {
        collectors,
        benchmarks: Vec::new(),
        profile: Profile::Smoke,
        scratch: None,
        steps: BTreeMap::new(),
    };
    requests.extend(encode_request(&run).unwrap());
    let mut input = child.stdin.take().unwrap();
    input.write_all(&requests).unwrap();
    // Long enough for the pipe and the queue to fill; the test holds as well when they are not full yet.
    thread::sleep(Duration::from_secs(1));
    input.write_all(&encode_request(&Request::Stop).unwrap()).unwrap();
    let output = child.stdout.take().unwrap();
    let (tell, told) = channel();
    thread::spawn(move || tell.send(child.wait().map(|status| status.code())));
    let code = told.recv_timeout(LIMIT).expect("the probe does not end").unwrap();
    assert_eq!(code, Some(3), "the last frames were not taken");
    drop((input, output));
}

#[test]
fn garbage_is_refused_with_the_code_for_usage() {
    let mut too_long = MAGIC.to_vec();
    too_long.extend(u32::MAX.to_be_bytes());
    let mut not_cbor = MAGIC.to_vec();
    not_cbor.extend([0, 0, 0, 3, 0xff, 0xff, 0xff]);
    for garbage in [b"GET / HTTP/1.1\r\n\r\n".to_vec(), too_long, not_cbor] {
        let mut probe = Probe::start();
        probe.send(&garbage);
        probe.input = None;
        let (_, bye) = probe.bye();
        assert_ne!(bye.reason, "finished");
        assert_eq!(probe.end().code(), Some(64), "{bye:?}");
    }
}

#[test]
fn two_probes_measure_between_them_visit_after_visit_until_told_to_stop() {
    use muster_wire::{Engine, Load, PairOrder, Role, Secret};

    let (mut listener, mut connector) = (Probe::start(), Probe::start());
    listener.send(&MAGIC);
    connector.send(&MAGIC);
    for visit in 1..=2 {
        let load = Load { streams: 2, duration_ms: 40, sizes: vec![64], round_trips: 10, engine: Engine::Tcp };
        let here = "127.0.0.1".parse().unwrap();
        let order = PairOrder {
            visit,
            peer: "other".into(),
            local: here,
            remote: here,
            secret: Secret([5; 32]),
            role: Role::Listen,
            load,
            meet_ms: 20_000,
            limit_ms: 60_000,
        };
        listener.ask(&Request::Pair(order.clone()));
        let said = listener.until(|frame| matches!(frame, Frame::Listening(_)));
        let Some(Frame::Listening(listening)) = said.last() else { panic!("{said:?}") };
        let role = Role::Connect { port: listening.port, start_ns: 0 };
        connector.ask(&Request::Pair(PairOrder { role, ..order }));
        for probe in [&listener, &connector] {
            let said = probe.until(|frame| matches!(frame, Frame::Paired(_)));
            let Some(Frame::Paired(paired)) = said.last() else { panic!("{said:?}") };
            assert_eq!((paired.visit, &paired.outcome), (visit, &Outcome::Done));
        }
    }
    for mut probe in [listener, connector] {
        probe.ask(&Request::Stop);
        assert_eq!(probe.bye().1.reason, "stopped");
        assert!(probe.end().success());
    }
}
