//! Which way a metric is better of which nobody said it: from words of its name that leave no doubt.

use muster_wire::Direction;

/// Something went wrong, however it is counted: an error rate is no rate.
const TROUBLE: [&str; 13] = [
    "error", "errors", "err", "errs", "failed", "failure", "drop", "dropped", "retry", "retries", "timeouts", "wrong",
    "loss",
];
/// How long something took.
const TIMES: [&str; 19] = [
    "latency",
    "latencies",
    "lat",
    "time",
    "duration",
    "elapsed",
    "delay",
    "jitter",
    "seconds",
    "secs",
    "ms",
    "us",
    "ns",
    "msec",
    "usec",
    "nsec",
    "steptime",
    "walltime",
    "runtime",
];
/// Percentiles are of a time, unless the name speaks of a rate.
const PERCENTILES: [&str; 5] = ["p50", "p90", "p95", "p99", "p999"];
/// How much came out.
const RATES: [&str; 15] = [
    "bw",
    "bandwidth",
    "busbw",
    "algbw",
    "throughput",
    "flops",
    "iops",
    "qps",
    "rps",
    "tps",
    "fps",
    "gbps",
    "mbps",
    "rate",
    "speed",
];
/// After `per`.
const UNITS: [&str; 8] = ["s", "sec", "second", "ms", "us", "ns", "min", "minute"];
/// Words of fewer letters are looked for as a whole only: `rate` is in `iterate`.
const LONG: usize = 5;

/// Which way the metric called `name` is better; `None` where its words say nothing, or both.
pub fn direction(name: &str) -> Option<Direction> {
    let name = name.to_ascii_lowercase();
    let words: Vec<&str> = name.split(|c: char| !c.is_ascii_alphanumeric()).filter(|word| !word.is_empty()).collect();
    let per_second = |two: &[&str]| two[0] == "per" && UNITS.contains(&two[1]);
    let rate = name.ends_with("/s") || words.windows(2).any(per_second) || words.iter().any(|word| says(word, &RATES));
    let is_time = |at: usize| says(words[at], &TIMES) && (at == 0 || words[at - 1] != "per");
    let tail = || !rate && words.iter().any(|word| PERCENTILES.contains(word));
    let time = (0..words.len()).any(is_time) || tail();
    let trouble = words.iter().any(|word| says(word, &TROUBLE));
    // An error rate is no rate; what was read per second, is one.
    let much = words.iter().any(|word| *word != "rate" && says(word, &RATES));
    match (trouble, time, rate) {
        (true, ..) if much => None,
        (true, ..) | (false, true, false) => Some(Direction::LowerIsBetter),
        (false, false, true) => Some(Direction::HigherIsBetter),
        _ => None,
    }
}

/// Whether `word` is one of `known`, with a number behind it or not, or holds a long one of them.
fn says(word: &str, known: &[&str]) -> bool {
    let word = word.trim_end_matches(|c: char| c.is_ascii_digit());
    known.iter().any(|known| word == *known || known.len() >= LONG && word.contains(known))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_words_that_leave_no_doubt_say_which_way_is_better() {
        for name in [
            "lat0",
            "net-latency",
            "ReadLatency",
            "step_time",
            "time_per_step",
            "ms_per_iter",
            "load_us",
            "errors",
            "error_rate",
            "ecc_error_count",
            "rpc-p99",
            "rand-read-p50",
            "wait_seconds",
            "packet_loss",
        ] {
            assert_eq!(direction(name), Some(Direction::LowerIsBetter), "{name}");
        }
        for name in [
            "busbw",
            "h2d_bw:3",
            "throughput-p99",
            "fp16_tflops",
            "disk_iops",
            "tokens_per_s",
            "samples_per_ms",
            "GB/s",
            "clock_rate",
            "triad bandwidth",
        ] {
            assert_eq!(direction(name), Some(Direction::HigherIsBetter), "{name}");
        }
        for name in ["", "m", "gemm", "triad", "iterate", "status", "latitude", "p100_gemm", "temperature", "perf"] {
            assert_eq!(direction(name), None, "{name}");
        }
        for name in ["latency_bandwidth", "drop_caches_read_bw", "loss_fwd_tflops", "retry_throughput"] {
            assert_eq!(direction(name), None, "{name}: words that say both say nothing");
        }
    }
}
