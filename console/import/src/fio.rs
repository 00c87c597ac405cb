//! What `fio --output-format=json` says: requests per second, bytes per second, and latencies by percentile.

use std::collections::BTreeMap;
use std::io::BufRead;

use muster_wire::MetricId;
use serde::Deserialize;

use crate::lines::whole;
use crate::meaning::{BYTES_PER_S, IOPS, MICROS, NANOS};
use crate::series::Gather;
use crate::{Bad, Limits, Meaning, Series, component};

/// Percentiles kept; fio prints seventeen, most of them between these.
const PERCENTILES: [(&str, &str); 4] =
    [("50.000000", "p50"), ("95.000000", "p95"), ("99.000000", "p99"), ("99.900000", "p99.9")];

/// What fio delivered.
#[derive(Debug)]
pub struct Output {
    /// `disk/{job}_{read|write}_{iops|bw|lat_mean|lat_p50|lat_p95|lat_p99|lat_p99.9}@fio`; jobs of one name share a
    /// series. Only the directions in which requests were made are here.
    pub series: Vec<Series>,
    /// Jobs that failed, with their error number.
    pub failed: Vec<(String, i64)>,
    /// Jobs that say that they did not fail and made no request: they measured nothing.
    pub idle: Vec<String>,
}

#[derive(Deserialize)]
struct File {
    jobs: Vec<Job>,
}

#[derive(Deserialize)]
struct Job {
    jobname: String,
    #[serde(default)]
    error: i64,
    #[serde(default)]
    read: Flow,
    #[serde(default)]
    write: Flow,
    /// Not taken over; a job of nothing else was not idle.
    #[serde(default)]
    trim: Flow,
}

#[derive(Default, Deserialize)]
struct Flow {
    #[serde(default)]
    iops: f64,
    /// Bytes per second; absent before fio 3.
    bw_bytes: Option<f64>,
    /// KiB per second.
    #[serde(default)]
    bw: f64,
    #[serde(default)]
    total_ios: u64,
    lat_ns: Option<Latency>,
    clat_ns: Option<Latency>,
    lat: Option<Latency>,
    clat: Option<Latency>,
}

#[derive(Deserialize)]
struct Latency {
    #[serde(default)]
    mean: f64,
    #[serde(default)]
    percentile: BTreeMap<String, f64>,
}

/// Reads fio's JSON; lines before the first `{`, which fio prints for warnings, are passed over.
///
/// # Errors
/// With the line: when it is not fio's JSON, or longer than `limits` allow.
pub fn read(input: impl BufRead, node: &str, limits: Limits) -> Result<Output, Bad> {
    let text = whole(input, limits)?;
    let start = text.find("\n{").map_or(0, |at| at + 1);
    let start = if text.trim_start().starts_with('{') { 0 } else { start };
    let line = 1 + text[..start].matches('\n').count();
    // What follows the document (fio writes to the same stream) is not ours to judge.
    let mut documents = serde_json::Deserializer::from_str(&text[start..]).into_iter::<File>();
    let file = documents.next().ok_or_else(|| Bad::format(line, "empty"))?.map_err(|e| Bad::json(line, &e))?;
    let mut gather = Gather::new(node, limits, component::fio);
    let (mut failed, mut idle) = (Vec::new(), Vec::new());
    for job in file.jobs {
        let name = muster_wire::clean(&job.jobname, 120);
        if job.error != 0 {
            failed.push((name, job.error));
            continue;
        }
        if ![&job.read, &job.write, &job.trim].into_iter().any(Flow::flowed) {
            idle.push(name);
            continue;
        }
        for (way, flow) in [("read", job.read), ("write", job.write)] {
            if flow.flowed() {
                flow.take(&format!("{name}_{way}"), &mut gather)?;
            }
        }
    }
    Ok(Output { series: gather.done(), failed, idle })
}

impl Flow {
    /// Whether a request was made.
    fn flowed(&self) -> bool {
        self.total_ios > 0 || self.iops > 0.0
    }

    fn take(&self, head: &str, gather: &mut Gather<'_>) -> Result<(), Bad> {
        let mut add = |name: &str, meaning, value| {
            gather.add(MetricId::new("disk", format!("{head}_{name}"), "fio"), meaning, value, 1)
        };
        add("iops", IOPS, self.iops)?;
        add("bw", BYTES_PER_S, self.bw_bytes.unwrap_or(self.bw * 1024.0))?;
        let Some((latency, meaning)) = self.latency() else { return Ok(()) };
        if latency.mean > 0.0 {
            add("lat_mean", meaning, latency.mean)?;
        }
        for (key, name) in PERCENTILES {
            if let Some(&value) = latency.percentile.get(key) {
                add(&format!("lat_{name}"), meaning, value)?;
            }
        }
        Ok(())
    }

    /// Total latency where it has percentiles (`lat_percentiles=1`), else completion latency; fio 2 counts in
    /// microseconds.
    fn latency(&self) -> Option<(&Latency, Meaning)> {
        let all = [(&self.lat_ns, NANOS), (&self.clat_ns, NANOS), (&self.lat, MICROS), (&self.clat, MICROS)];
        let there = || all.iter().filter_map(|(latency, meaning)| latency.as_ref().map(|l| (l, *meaning)));
        there().find(|(l, _)| !l.percentile.is_empty()).or_else(|| there().next())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const TEXT: &str = r#"fio: this platform has a warning
{
  "fio version": "fio-3.16",
  "jobs": [
    {"jobname": "rand_read", "error": 0,
     "read": {"iops": 85138.89, "bw_bytes": 348743777, "bw": 340570, "total_ios": 2554337,
       "clat_ns": {"mean": 9.0}, "lat_ns": {"mean": 1446562.1, "percentile": {"95.000000": 1941504, "99.000000": 2244608}}},
     "write": {"iops": 0.0, "total_ios": 0, "lat_ns": {"mean": 0.0}}},
    {"jobname": "seq", "error": 28}
  ]
}"#;

    #[test]
    fn only_what_was_done_is_reported() {
        let out = read(TEXT.as_bytes(), "n", Limits::default()).unwrap();
        let names: Vec<String> = out.series.iter().map(|s| s.metric.name.clone()).collect();
        assert_eq!(
            names,
            [
                "rand_read_read_iops",
                "rand_read_read_bw",
                "rand_read_read_lat_mean",
                "rand_read_read_lat_p95",
                "rand_read_read_lat_p99"
            ]
        );
        assert_eq!(out.series[1].values, [348_743_777.0]);
        assert_eq!(out.series[3].values, [1_941_504.0]);
        assert_eq!(out.failed, [("seq".to_owned(), 28)]);
    }

    #[test]
    fn a_job_that_made_no_request_is_named_and_one_that_only_trims_is_not() {
        let idle = TEXT.replace("85138.89", "0").replace("2554337", "0");
        let out = read(idle.as_bytes(), "n", Limits::default()).unwrap();
        assert_eq!((out.series.len(), out.idle, out.failed.len()), (0, vec!["rand_read".to_owned()], 1));
        let trims = idle.replace("\"write\":", "\"trim\": {\"total_ios\": 7},\n \"write\":");
        let out = read(trims.as_bytes(), "n", Limits::default()).unwrap();
        assert_eq!((out.series.len(), out.idle.len()), (0, 0));
        assert!(read(TEXT.as_bytes(), "n", Limits::default()).unwrap().idle.is_empty());
    }

    #[test]
    fn errors_count_lines_of_the_file() {
        let error = read(TEXT.replace("85138.89", "\"x\"").as_bytes(), "n", Limits::default()).unwrap_err();
        assert!(error.to_string().starts_with("line 6"), "{error}");
        assert!(read(&b""[..], "n", Limits::default()).is_err());
    }

    proptest! {
        #[test]
        fn no_output_is_too_strange(cut in 0usize..700, flip in 0usize..700, byte in any::<u8>()) {
            let mut bytes = TEXT.as_bytes()[..cut.min(TEXT.len())].to_vec();
            if let Some(b) = bytes.get_mut(flip) {
                *b = byte;
            }
            let _ = read(&bytes[..], "n", Limits::default());
        }
    }
}
