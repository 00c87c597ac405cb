//! What a SuperBench key says: `{benchmark}[:{annotation}][/{framework}-{model}]/[{run}/]{metric}[:{rank}]`.

use muster_wire::MetricId;

use crate::Meaning;
use crate::meaning::of_superbench;

/// A key of `results-summary.jsonl`, taken apart. Metrics hold colons and underscores themselves, so only a last
/// part of digits is a rank.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Key<'a> {
    /// Such as `nccl-bw`.
    pub benchmark: &'a str,
    /// Such as `nvlink` of `nccl-bw:nvlink`.
    pub annotation: Option<&'a str>,
    /// Such as `pytorch-bert-large`; empty for micro-benchmarks.
    pub model: &'a str,
    /// Which of several runs.
    pub run: Option<u32>,
    /// Such as `allreduce_8_busbw`.
    pub metric: &'a str,
    /// Which of several ranks.
    pub rank: Option<u32>,
}

impl<'a> Key<'a> {
    /// Takes `key` apart; `None` without a slash, as in keys that no benchmark made.
    #[must_use]
    pub fn parse(key: &'a str) -> Option<Self> {
        let (head, rest) = key.split_once('/')?;
        let (benchmark, annotation) = head.split_once(':').map_or((head, None), |(b, a)| (b, Some(a)));
        let (path, rank) = match rest.rsplit_once(':') {
            Some((path, rank)) if number(rank).is_some() => (path, number(rank)),
            _ => (rest, None),
        };
        let (model, metric) = path.rsplit_once('/').unwrap_or(("", path));
        let (model, run) = match model.rsplit_once('/') {
            Some((model, run)) if number(run).is_some() => (model, number(run)),
            None if number(model).is_some() => ("", number(model)),
            _ => (model, None),
        };
        Some(Self { benchmark, annotation, model, run, metric, rank })
    }

    /// Unit and direction.
    #[must_use]
    pub fn meaning(&self) -> Meaning {
        of_superbench(self.benchmark, self.metric)
    }

    /// Our identity of it: the benchmark with its annotation and model, the metric with its rank, engine
    /// `superbench`. Runs of one metric share it.
    #[must_use]
    pub fn metric_id(&self) -> MetricId {
        let mut benchmark = self.benchmark.to_owned();
        for (mark, part) in [(':', self.annotation.unwrap_or("")), ('/', self.model)] {
            if !part.is_empty() {
                benchmark.push(mark);
                benchmark.push_str(part);
            }
        }
        let metric = self.rank.map_or_else(|| self.metric.to_owned(), |rank| format!("{}:{rank}", self.metric));
        MetricId::new(benchmark, metric, "superbench")
    }
}

fn number(text: &str) -> Option<u32> {
    let digits = !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    text.parse().ok().filter(|_| digits)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn keys_of_the_documentation_are_taken_apart() {
        let key = Key::parse("nccl-bw:ib/allreduce_0_3:8589934592_busbw:0").unwrap();
        assert_eq!(
            (key.benchmark, key.annotation, key.metric, key.rank),
            ("nccl-bw", Some("ib"), "allreduce_0_3:8589934592_busbw", Some(0))
        );
        let key = Key::parse("bert_models/pytorch-bert-large/fp16_train_throughput").unwrap();
        assert_eq!((key.model, key.metric, key.rank), ("pytorch-bert-large", "fp16_train_throughput", None));
        assert_eq!(key.metric_id().to_string(), "bert_models/pytorch-bert-large/fp16_train_throughput@superbench");
        let key = Key::parse("k/1/event_time:12").unwrap();
        assert_eq!((key.model, key.run, key.metric, key.rank), ("", Some(1), "event_time", Some(12)));
        assert_eq!(key.metric_id().to_string(), "k/event_time:12@superbench");
        assert_eq!(Key::parse("ib-traffic/ib_write_bw_8_gpu-to-gpu_2_5:nodeA_nodeB:3").unwrap().rank, Some(3));
        assert_eq!(Key::parse("node"), None);
    }

    proptest! {
        #[test]
        fn no_key_is_too_strange(key in "[a-z0-9:/_]{0,24}") {
            if let Some(key) = Key::parse(&key) {
                let _ = (key.meaning(), key.metric_id());
            }
        }
    }
}
