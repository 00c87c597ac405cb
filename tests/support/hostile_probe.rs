//! A node that means harm: answers the console's install script as a login shell would, and then speaks as its kind does.
//!
//! `hostile-probe KIND -c COMMAND` stands in place of the login shell, between the real sshd and a real console.

use std::io::{self, Read, Write};
use std::time::{Duration, Instant};

use muster_wire::limits::SERIES_VALUES;
use muster_wire::{
    Beat, Bye, Datum, Decoder, Direction, Fact, Facts, Finished, Frame, Hello, Listening, MAGIC, MetricId, Outcome,
    Paired, Reading, Request, Series, Unit, encode,
};

/// How long it goes on where nobody stops it.
const STAMINA: Duration = Duration::from_secs(30);

struct Liar {
    out: io::Stdout,
    until: Instant,
}

/// What it was told to do: names as the console keeps them.
type Works = Vec<String>;

impl Liar {
    fn say(&mut self, frame: &Frame) -> io::Result<()> {
        let bytes = encode(frame).map_err(io::Error::other)?;
        self.raw(&bytes)
    }

    fn raw(&mut self, bytes: &[u8]) -> io::Result<()> {
        if Instant::now() > self.until {
            return Err(io::ErrorKind::TimedOut.into());
        }
        self.out.write_all(bytes)?;
        self.out.flush()
    }

    /// Says the same for ever, after a `pause` each time.
    fn again(&mut self, frames: &[Frame], pause: Duration) -> io::Result<()> {
        loop {
            for frame in frames {
                self.say(frame)?;
            }
            std::thread::sleep(pause);
        }
    }

    fn bytes_for_ever(&mut self, seed: u64) -> io::Result<()> {
        let mut state = seed;
        let mut chunk = vec![0; 64 << 10];
        loop {
            for byte in &mut chunk {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                *byte = (state >> 56) as u8;
            }
            self.raw(&chunk)?;
        }
    }

    /// Does what an honest node would, with numbers of its own.
    fn finish(&mut self, works: &Works) -> io::Result<()> {
        for name in works {
            self.say(&finished(name))?;
        }
        self.say(&Frame::Bye(Bye { frames: 0, series: 0, dropped: 0, reason: "finished".into() }))
    }

    /// Says `frames` slowly for a while, then ends as if nothing had been.
    fn slip_in(&mut self, frames: &[Frame], works: &Works) -> io::Result<()> {
        let end = Instant::now() + Duration::from_secs(8);
        while Instant::now() < end {
            for frame in frames {
                self.say(frame)?;
            }
            std::thread::sleep(Duration::from_millis(200));
        }
        self.finish(works)
    }
}

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let (kind, command) =
        (arguments.get(1).cloned().unwrap_or_default(), arguments.last().cloned().unwrap_or_default());
    let value = |name: &str| command.split(name).nth(1).and_then(|rest| rest.split(';').next());
    let (Some(word), Some(file)) = (value("n="), value("; f=")) else { return };
    let mut liar = Liar { out: io::stdout(), until: Instant::now() + STAMINA };
    // Whoever stops it closes its output: there is nothing more to do then.
    let _ = act(&mut liar, &kind, (word, file));
}

fn act(liar: &mut Liar, kind: &str, (word, file): (&str, &str)) -> io::Result<()> {
    if kind == "upload" {
        liar.raw(format!("\n{word} SEND plain {file} /tmp\n").as_bytes())?;
        return liar.bytes_for_ever(7);
    }
    liar.raw(format!("\n{word} READY {} kept /tmp/probe\n", std::process::id()).as_bytes())?;
    if kind == "garbage" {
        return liar.bytes_for_ever(1);
    }
    liar.raw(&MAGIC)?;
    liar.say(&hello())?;
    if kind == "twice" {
        return liar.again(&[hello()], Duration::from_millis(500));
    }
    if kind == "stalls" {
        // Says that it lives, and nothing else, for as long as somebody listens.
        liar.until += 20 * STAMINA;
        return liar.again(&[Frame::Beat(Beat { wall_ns: 0, monotonic_ns: 0, nonce: 0 })], Duration::from_millis(500));
    }
    let works = ordered()?;
    let first = works.last().cloned().unwrap_or_default();
    match kind {
        "asked" => liar.slip_in(&[asked(), finished("console/asked")], &works),
        "link" => liar.slip_in(&[finished("link"), failed("link")], &works),
        "pairs" => liar.slip_in(&[series("net-pair", 8), failed("net-pair/n001"), failed("net-pair")], &works),
        "visit" => liar.slip_in(&[Frame::Listening(Listening { visit: 0, port: 22 }), paired()], &works),
        "unasked" => liar.slip_in(&[series("gpu-burn", 8), finished("gpu-burn"), finished("cpu-stream#2")], &works),
        "finished" => liar.again(&[finished(&first)], Duration::ZERO),
        "endless" => liar.again(&[series(&first, SERIES_VALUES)], Duration::ZERO),
        "greedy" => liar.greedy(&works),
        "facts" => liar.again(&[facts(&first)], Duration::ZERO),
        _ => liar.huge(),
    }
}

impl Liar {
    /// As much for every work as any may send, and then the result.
    fn greedy(&mut self, works: &Works) -> io::Result<()> {
        for name in works {
            match name.strip_prefix("collect/") {
                Some(collector) => (0..2).try_for_each(|_| self.say(&facts(collector)))?,
                None => self.say(&series(name, SERIES_VALUES))?,
            }
            self.say(&finished(name))?;
        }
        self.finish(&Works::new())
    }

    /// Frames as large as they may be, of a kind that nobody knows, which decode to the most memory for their size.
    fn huge(&mut self) -> io::Result<()> {
        let count: u32 = 600_000;
        let mut body = b"\xa1\x64aura\x9a".to_vec();
        body.extend(count.to_be_bytes());
        body.resize(body.len() + count as usize, 0x80);
        let mut bytes = u32::try_from(body.len()).unwrap_or(0).to_be_bytes().to_vec();
        bytes.extend(body);
        loop {
            self.raw(&bytes)?;
        }
    }
}

/// The works of the run that the console orders.
fn ordered() -> io::Result<Works> {
    let (mut decoder, mut chunk, mut input) = (Decoder::new(), [0; 8_192], io::stdin().lock());
    loop {
        let count = input.read(&mut chunk)?;
        if count == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        decoder.push(&chunk[..count]);
        while let Some(request) = decoder.request().map_err(io::Error::other)? {
            if let Request::Run { collectors, benchmarks, .. } = request {
                return Ok(collectors.iter().map(|name| format!("collect/{name}")).chain(benchmarks).collect());
            }
        }
    }
}

fn hello() -> Frame {
    Frame::Hello(Hello {
        protocol: 1,
        build: "0".into(),
        boot_id: Reading::Absent,
        hostname: Reading::Absent,
        wall_ns: 0,
        monotonic_ns: 0,
        pid: std::process::id(),
        capabilities: Vec::new(),
    })
}

fn finished(name: &str) -> Frame {
    Frame::Finished(Finished { name: name.to_owned(), outcome: Outcome::Done, elapsed_ns: 1 })
}

fn failed(name: &str) -> Frame {
    Frame::Finished(Finished { name: name.to_owned(), outcome: Outcome::Failed("all is lost".into()), elapsed_ns: 1 })
}

fn series(benchmark: &str, count: usize) -> Frame {
    Frame::Series(Series {
        metric: MetricId::new(benchmark, "throughput", "own"),
        unit: Unit::BytesPerSec,
        direction: Direction::HigherIsBetter,
        values: vec![1e300; count],
        warmup: 0,
        started_ns: 0,
    })
}

fn fact(key: &str, text: &str) -> Fact {
    Fact { key: key.to_owned(), reading: Reading::Value(Datum::Text(text.to_owned())), unit: None }
}

/// What would make every node of the run fail, if it were believed.
fn asked() -> Frame {
    let facts = vec![fact("checks", "swap clock"), fact("demand", "swap clock")];
    Frame::Facts(Facts { collector: "console/asked".into(), facts })
}

fn facts(work: &str) -> Frame {
    let facts = (0..100).map(|at| fact(&format!("a.{at}"), &"x".repeat(4_000))).collect();
    Frame::Facts(Facts { collector: work.trim_start_matches("collect/").to_owned(), facts })
}

fn paired() -> Frame {
    let (outcome, series, facts) = (Outcome::Failed("n001 is slow".into()), Vec::new(), Vec::new());
    Frame::Paired(Paired { visit: 0, outcome, started_ns: 1, ended_ns: 2, series, facts })
}
