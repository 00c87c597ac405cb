//! What did a real probe say when it was asked to work? Recorded once, on this machine.

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::process::{Command, Stdio};

use muster_wire::{Decoder, Finished, Frame, Hello, MAGIC, Request, encode_request};

use super::super::fleet::{DemoError, io};

/// What a probe said, work by work.
#[derive(Debug, Default)]
pub(super) struct Recording {
    pub(super) hello: Option<Hello>,
    works: BTreeMap<String, Work>,
    /// Works asked for that have not ended while it is made.
    open: Vec<String>,
}

/// What was said of one work.
#[derive(Debug)]
pub(super) struct Work {
    /// How far it was, in order.
    pub(super) progress: Vec<Frame>,
    /// Values and facts, in order.
    pub(super) results: Vec<Frame>,
    pub(super) finished: Finished,
}

impl Recording {
    /// Starts `probe` from a file in `dir`, asks it `request` and listens to its end.
    pub(super) fn of(probe: &[u8], request: &Request, dir: &Path) -> Result<Self, DemoError> {
        let path = dir.join("recorded-probe");
        let mut options = std::fs::OpenOptions::new();
        let file = options.write(true).create_new(true).mode(0o700).open(&path);
        file.and_then(|mut file| file.write_all(probe)).map_err(io("write the probe"))?;
        let mut command = Command::new(&path);
        command.arg("serve").env("TMPDIR", dir).current_dir(dir).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.stderr(Stdio::null()).spawn().map_err(io("start the probe"))?;
        let (input, output) = (child.stdin.take(), child.stdout.take());
        let (Some(input), Some(output)) = (input, output) else { return Err(silent("it has no input or output")) };
        let recording = Self::heard(request, input, output);
        // It ends with its input at the latest.
        let _ = child.wait();
        recording
    }

    /// Talks to a probe until it says goodbye.
    fn heard(request: &Request, mut input: impl Write, mut output: impl Read) -> Result<Self, DemoError> {
        let encoded = |request: &Request| encode_request(request).map_err(|why| silent(&why.to_string()));
        let opening = [MAGIC.as_slice(), &encoded(request)?].concat();
        let ping = encoded(&Request::Ping { nonce: 1 })?;
        input.write_all(&opening).map_err(io("ask the probe"))?;
        let (mut recording, mut decoder) = (Self { open: names(request), ..Self::default() }, Decoder::new());
        let (mut chunk, mut held) = (vec![0; 64 << 10], BTreeMap::new());
        loop {
            let count = output.read(&mut chunk).map_err(io("listen to the probe"))?;
            if count == 0 {
                return Err(silent("it ended without a goodbye"));
            }
            decoder.push(&chunk[..count]);
            while let Some(frame) = decoder.frame().map_err(|why| silent(&why.to_string()))? {
                match frame {
                    Frame::Bye(_) => return Ok(recording),
                    Frame::Hello(hello) => recording.hello = Some(hello),
                    // A console that is silent for long is taken for gone.
                    Frame::Beat(beat) if beat.nonce == 0 => {
                        input.write_all(&ping).map_err(io("ask the probe"))?;
                    }
                    frame => recording.take(frame, &mut held),
                }
            }
        }
    }

    /// Adds a frame to the work that it belongs to.
    fn take(&mut self, frame: Frame, held: &mut BTreeMap<String, (Vec<Frame>, Vec<Frame>)>) {
        let owner = match &frame {
            Frame::Series(series) => series.metric.benchmark.clone(),
            Frame::Progress(progress) => progress.benchmark.clone(),
            Frame::Finished(finished) => finished.name.clone(),
            Frame::Facts(facts) => {
                // `disk` is a collector and a benchmark; collectors come first.
                let look = format!("collect/{}", facts.collector);
                if self.open.contains(&look) { look } else { facts.collector.clone() }
            }
            _ => return,
        };
        if !self.open.contains(&owner) {
            return;
        }
        let (progress, results) = held.entry(owner.clone()).or_default();
        match frame {
            Frame::Progress(_) => progress.push(frame),
            Frame::Finished(finished) => {
                self.open.retain(|name| *name != owner);
                let (progress, results) = (std::mem::take(progress), std::mem::take(results));
                self.works.insert(owner, Work { progress, results, finished });
            }
            _ => results.push(frame),
        }
    }

    /// What was said of the work called `name`, if it was recorded.
    pub(super) fn work(&self, name: &str) -> Option<&Work> {
        self.works.get(name)
    }
}

/// Works of a request, by the names under which a probe finishes them.
pub(super) fn names(request: &Request) -> Vec<String> {
    let Request::Run { collectors, benchmarks, .. } = request else { return Vec::new() };
    collectors.iter().map(|name| format!("collect/{name}")).chain(benchmarks.iter().cloned()).collect()
}

fn silent(why: &str) -> DemoError {
    DemoError::Recording(why.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use muster_wire::{Bye, Facts, Outcome, Profile, Progress, encode};

    #[test]
    fn frames_are_kept_with_the_work_that_they_belong_to_and_a_cut_stream_is_an_error() {
        let done =
            |name: &str| Frame::Finished(Finished { name: name.to_owned(), outcome: Outcome::Done, elapsed_ns: 7 });
        let facts = |name: &str| Frame::Facts(Facts { collector: name.to_owned(), facts: Vec::new() });
        let progress = Progress { benchmark: "disk".to_owned(), done: 0.5, note: String::new() };
        let bye = Bye { frames: 0, series: 0, dropped: 0, reason: "finished".to_owned() };
        let said = [
            facts("disk"),
            done("collect/disk"),
            Frame::Progress(progress),
            facts("disk"),
            facts("load"),
            done("disk"),
        ];
        let mut stream = MAGIC.to_vec();
        said.iter().for_each(|frame| stream.extend(encode(frame).unwrap()));
        let [collectors, benchmarks] = [vec!["disk".to_owned()], vec!["disk".to_owned()]];
        let (profile, steps) = (Profile::Smoke, BTreeMap::new());
        let request = Request::Run { collectors, benchmarks, profile, scratch: None, steps };
        assert!(Recording::heard(&request, Vec::new(), stream.as_slice()).is_err());
        stream.extend(encode(&Frame::Bye(bye)).unwrap());
        let recording = Recording::heard(&request, Vec::new(), stream.as_slice()).unwrap();
        let sizes = |name: &str| recording.work(name).map(|work| (work.progress.len(), work.results.len()));
        assert_eq!((sizes("collect/disk"), sizes("disk"), sizes("load")), (Some((0, 1)), Some((1, 1)), None));
    }
}
