//! Which tool wrote a file, by its beginning.

use std::io::BufRead;

use muster_analysis::Table;
use muster_analysis::rules::{Baseline, RuleFile};

use crate::lines::whole;
use crate::superbench::{raw, summary};
use crate::{Bad, Limits, Series, dcgm, fio, nccl, nvbandwidth, perftest};

/// Bytes of a file that [`Format::of`] needs to see.
pub const HEAD: usize = 64 << 10;

/// A kind of file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// `node,metric,value` rows; read by the caller.
    Csv,
    /// SuperBench's `results-summary.jsonl`.
    Superbench,
    /// SuperBench's `results.json` of one rank.
    SuperbenchRaw,
    /// SuperBench's `baseline.json`.
    SuperbenchBaseline,
    /// SuperBench's rule file.
    SuperbenchRules,
    /// nccl-tests or rccl-tests.
    NcclTests,
    /// perftest.
    Perftest,
    /// fio's JSON.
    Fio,
    /// nvbandwidth.
    Nvbandwidth,
    /// `dcgmi diag -j`.
    Dcgm,
}

impl Format {
    /// All of them.
    pub const ALL: [Self; 10] = [
        Self::Csv,
        Self::Superbench,
        Self::SuperbenchRaw,
        Self::SuperbenchBaseline,
        Self::SuperbenchRules,
        Self::NcclTests,
        Self::Perftest,
        Self::Fio,
        Self::Nvbandwidth,
        Self::Dcgm,
    ];

    /// The format of that name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|format| format.name() == name)
    }

    /// The word used on the command line and in run names.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Csv => "csv",
            Self::Superbench => "superbench",
            Self::SuperbenchRaw => "superbench-raw",
            Self::SuperbenchBaseline => "superbench-baseline",
            Self::SuperbenchRules => "superbench-rules",
            Self::NcclTests => "nccl-tests",
            Self::Perftest => "perftest",
            Self::Fio => "fio",
            Self::Nvbandwidth => "nvbandwidth",
            Self::Dcgm => "dcgm",
        }
    }

    /// Format of a file that begins with `head`; `None` where nothing known is in it.
    #[must_use]
    pub fn of(head: &[u8]) -> Option<Self> {
        let text = String::from_utf8_lossy(&head[..head.len().min(HEAD)]);
        let has = |part: &str| text.contains(part);
        let line = text.lines().map(str::trim).find(|l| !l.is_empty() && !l.starts_with('#')).unwrap_or_default();
        match () {
            () if has("\"DCGM Diagnostic\"") || has("\"DCGM GPU Diagnostic\"") => Some(Self::Dcgm),
            () if has("\"fio version\"") => Some(Self::Fio),
            () if line.starts_with('[') && (has("\"raw_data\"") || has("\"return_code\"")) => Some(Self::SuperbenchRaw),
            // One object a line, with its node; a baseline has none.
            () if line.starts_with('{') && has("\"node\"") => Some(Self::Superbench),
            () if line.starts_with('{') && has("/") => Some(Self::SuperbenchBaseline),
            () if line.starts_with('{') && line.len() > HEAD / 2 => Some(Self::Superbench),
            () if has("algbw") && has("busbw") => Some(Self::NcclTests),
            () if has("#bytes") && (has("BW average") || has("t_avg") || has("t_typical")) => Some(Self::Perftest),
            () if has("nvbandwidth Version") || has("memcpy CE") || has("memcpy SM") => Some(Self::Nvbandwidth),
            () if text.lines().any(|l| l == "superbench:") && has("rules:") => Some(Self::SuperbenchRules),
            () if line.contains(',') && !line.starts_with('{') => Some(Self::Csv),
            () => None,
        }
    }
}

/// What is not in the file and has to be said.
#[derive(Clone, Copy, Debug)]
pub struct Told<'a> {
    /// Node that the output of one node's tool is of.
    pub node: &'a str,
    /// Benchmark and rank of a `results.json`.
    pub benchmark: &'a str,
    /// See [`raw::Place::rank`].
    pub rank: Option<u32>,
    /// Collective of nccl-tests, such as `allreduce`.
    pub operation: &'a str,
}

/// What was read.
#[derive(Debug)]
pub enum Content {
    /// Values of a whole fleet in SuperBench's units.
    Table(Table),
    /// Series of one node, and what failed on it.
    Node(Node),
    /// Checks of one node.
    Checks(Vec<dcgm::Check>),
    /// Expected values.
    Baseline(Baseline),
    /// Rules.
    Rules(RuleFile),
}

/// What one tool said of one node.
#[derive(Debug, Default)]
pub struct Node {
    /// Values.
    pub series: Vec<Series>,
    /// Benchmarks that failed, and why.
    pub failed: Vec<(String, String)>,
    /// Benchmarks that did not come to their end, or measured nothing, and why: what is missing of them is no pass.
    pub open: Vec<(String, String)>,
    /// What was left out, in words.
    pub left_out: Vec<String>,
}

impl Node {
    fn of(series: Vec<Series>) -> Self {
        Self { series, ..Self::default() }
    }

    fn leave_out(&mut self, count: usize, what: &str) {
        if count > 0 {
            self.left_out.push(format!("{count} {what}"));
        }
    }
}

/// Reads `input` as `format`; CSV is the caller's.
///
/// # Errors
/// With the line, as the reader of each format says.
pub fn read(input: impl BufRead, format: Format, told: &Told<'_>, limits: Limits) -> Result<Content, Bad> {
    Ok(match format {
        Format::Csv => return Err(Bad::format(1, "rows of values are not read here")),
        Format::Superbench => Content::Table(summary::read(input, limits)?.table),
        Format::SuperbenchRaw => {
            let place = raw::Place { node: told.node, benchmark: told.benchmark, rank: told.rank };
            Content::Node(of_raw(raw::read(input, place, limits)?, told.benchmark))
        }
        Format::SuperbenchBaseline => {
            let text = whole(input, limits)?;
            Content::Baseline(Baseline::parse(&text).map_err(|e| Bad::format(e.line, e.why))?)
        }
        Format::SuperbenchRules => {
            let text = whole(input, limits)?;
            Content::Rules(RuleFile::parse(&text).map_err(|e| Bad::format(e.line, e.why))?)
        }
        Format::NcclTests => Content::Node(of_nccl(nccl::read(input, told.node, told.operation, limits)?)),
        Format::Perftest => Content::Node(Node::of(perftest::read(input, told.node, limits)?)),
        Format::Fio => {
            let out = fio::read(input, told.node, limits)?;
            let failed = out.failed.into_iter().map(|(job, code)| ("disk".into(), format!("{job}: error {code}")));
            let open = out.idle.into_iter().map(|job| ("disk".into(), format!("{job}: it made no request")));
            Content::Node(Node { failed: failed.collect(), open: open.collect(), ..Node::of(out.series) })
        }
        Format::Nvbandwidth => {
            let out = nvbandwidth::read(input, told.node, limits)?;
            let mut node = Node::of(out.series);
            node.leave_out(out.waived, "tests waived, they cannot run there");
            node.failed = out.errors.into_iter().map(|why| ("nvbandwidth".into(), why)).collect();
            Content::Node(node)
        }
        Format::Dcgm => Content::Checks(dcgm::read(input, told.node, limits)?),
    })
}

fn of_raw(raw: raw::Raw, benchmark: &str) -> Node {
    let mut node = Node::of(raw.series);
    node.failed = raw
        .failed
        .into_iter()
        .map(|(name, code)| {
            let model = benchmark.split(':').next() != Some(name.as_str());
            let work = if model { format!("{benchmark}/{name}") } else { benchmark.to_owned() };
            (work, format!("return code {code}"))
        })
        .collect();
    if raw.lost > 0 {
        node.failed.push((benchmark.to_owned(), format!("{} contexts could not be started", raw.lost)));
    }
    if !raw.left_out.is_empty() {
        node.left_out.push(format!("no measurements: {}", raw.left_out.join(", ")));
    }
    node
}

fn of_nccl(out: nccl::Output) -> Node {
    let mut node = Node::of(out.series);
    node.leave_out(out.rounded_to_zero, "bandwidths printed as 0.00");
    node.open = out.unfinished.into_iter().map(|why| (nccl::BENCHMARK.to_owned(), why)).collect();
    // Wrong results are no slow results. A test that died has no sum of them, only its lines.
    let sum = out.out_of_bounds.filter(|n| *n > 0).map(|wrong| format!("{wrong} values out of bounds"));
    let lines = || out.wrong.map(|(wrong, size)| format!("{wrong} wrong values, the first at {size} bytes"));
    node.failed = sum.or_else(lines).into_iter().map(|why| (nccl::BENCHMARK.to_owned(), why)).collect();
    node
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formats_are_told_apart_by_their_beginning() {
        for (text, expected) in [
            ("{\"nccl-bw/return_code\": 0, \"node\": \"a\"}\n", Some(Format::Superbench)),
            ("{\n  \"mem-bw/h2d_bw\": 26.1\n}", Some(Format::SuperbenchBaseline)),
            ("[\n null,\n {\"name\": \"x\", \"return_code\": 0}]", Some(Format::SuperbenchRaw)),
            ("# SuperBench rules\nversion: v0.4\nsuperbench:\n  rules:\n", Some(Format::SuperbenchRules)),
            ("#       size  count  type  redop  root  time  algbw  busbw\n", Some(Format::NcclTests)),
            (" #bytes     #iterations    BW peak[MB/sec]    BW average[MB/sec]\n", Some(Format::Perftest)),
            ("fio: this platform warns\n{\n  \"fio version\" : \"fio-3.16\",", Some(Format::Fio)),
            ("nvbandwidth Version: v0.8\nRunning host_to_device_memcpy_ce.\n", Some(Format::Nvbandwidth)),
            ("{\"DCGM Diagnostic\": {}}", Some(Format::Dcgm)),
            ("# made by hand\nnode,metric,value\na,m,1\n", Some(Format::Csv)),
            ("hello", None),
            ("", None),
        ] {
            assert_eq!(Format::of(text.as_bytes()), expected, "{text}");
        }
    }

    fn of_nccl_tests(text: &str) -> Node {
        let told = Told { node: "n", benchmark: "", rank: None, operation: "allreduce" };
        match read(text.as_bytes(), Format::NcclTests, &told, Limits::default()).unwrap() {
            Content::Node(node) => node,
            other => panic!("nccl-tests give series, not {other:?}"),
        }
    }

    #[test]
    fn wrong_results_fail_the_benchmark() {
        let text = "# size count type redop root time algbw busbw #wrong time algbw busbw #wrong\n\
                    8 2 float sum -1 10.0 1.00 2.00 0 10.0 1.00 2.00 0\n# Out of bounds values : 3 FAILED\n";
        let node = of_nccl_tests(text);
        assert_eq!(node.failed, [("nccl-bw".to_owned(), "3 values out of bounds".to_owned())]);
        assert_eq!(node.open, []);
    }

    #[test]
    fn a_test_that_died_is_open_and_fails_by_what_its_lines_say_is_wrong() {
        let line = |wrong: u32| {
            format!(
                "# size count type redop root time algbw busbw #wrong time algbw busbw #wrong\n\
                 8 2 float sum -1 10.0 1.00 2.00 {wrong} 10.0 1.00 2.00 0\n"
            )
        };
        let died = of_nccl_tests(&line(0));
        assert_eq!((died.failed.len(), died.open.len(), died.series.len()), (0, 1, 6));
        assert!(died.open[0].1.starts_with("the test did not end"), "{:?}", died.open);
        let wrong = of_nccl_tests(&line(7));
        assert_eq!(wrong.failed, [("nccl-bw".to_owned(), "7 wrong values, the first at 8 bytes".to_owned())]);
        // What a summary sums up as right is not right where a line says otherwise.
        let said = of_nccl_tests(&format!("{}# Out of bounds values : 0 OK\n", line(7)));
        assert_eq!((said.failed, said.open), (wrong.failed, Vec::new()));
    }

    #[test]
    fn a_job_of_fio_without_requests_is_open() {
        let text = "{\"fio version\": \"fio-3.16\", \"jobs\": [{\"jobname\": \"seq\", \"error\": 0}]}";
        let told = Told { node: "n", benchmark: "", rank: None, operation: "" };
        let Content::Node(node) = read(text.as_bytes(), Format::Fio, &told, Limits::default()).unwrap() else {
            panic!("fio gives series")
        };
        assert_eq!(node.open, [("disk".to_owned(), "seq: it made no request".to_owned())]);
    }
}
