//! What an export does not say: host names, addresses and serial numbers become stand-ins, the same throughout one
//! document.

use std::collections::hash_map::Entry;
use std::collections::{BTreeSet, HashMap};
use std::net::Ipv6Addr;
use std::sync::Arc;

use anyhow::Result;
use clap::ValueEnum;
use muster_playbook::report::{MetricReport, NodeReport, RunReport};
use muster_run::{Record, Run};
use muster_wire::Datum;
use regex::{Captures, Regex};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

/// A kind of name that is replaced.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Redact {
    /// Nothing at all.
    None,
    /// Host names.
    Names,
    /// IP, MAC and InfiniBand addresses.
    Addresses,
    /// Serial numbers and UUIDs.
    Serials,
}

/// Addresses of version 4, MAC and port addresses, and what may be one of version 6; of numbers such as `0x506b4b0300c1a2b0`, only
/// those that are called a GUID count.
const ADDRESSES: &str = r"(?i)\b\d{1,3}(?:\.\d{1,3}){3}\b|\b(?:[0-9a-f]{2}:){5,19}[0-9a-f]{2}\b|\b0x[0-9a-f]{16}\b|[0-9a-f]*(?::[0-9a-f]*){2,8}";
/// UUIDs, such as NVIDIA's of a GPU.
const SERIALS: &str = r"(?i)\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b";

/// Replaces names in one document.
#[derive(Debug)]
pub struct Redaction {
    addresses: Option<Regex>,
    serials: Option<Regex>,
    /// Words that are replaced wherever they stand.
    words: Option<Regex>,
    kinds: HashMap<String, &'static str>,
    given: HashMap<String, String>,
    counts: HashMap<&'static str, usize>,
    metrics: HashMap<usize, Replaced>,
}

/// A metric as it was and as it is said.
type Replaced = (Arc<MetricReport>, Arc<MetricReport>);

impl Redaction {
    /// Of the kinds `chosen`; the names are those of `run`, the serial numbers those that its nodes told.
    #[must_use]
    pub fn of(chosen: &[Redact], run: &Run, records: &[Record]) -> Self {
        Self::new(chosen, &run.nodes, serials(records))
    }

    /// Of the kinds `chosen`, with these names of nodes and these serial numbers beside those that look like one.
    #[must_use]
    pub fn new(chosen: &[Redact], nodes: &[String], serials: impl IntoIterator<Item = String>) -> Self {
        let wanted = |what| !chosen.contains(&Redact::None) && chosen.contains(&what);
        let mut kinds: HashMap<String, &'static str> = HashMap::new();
        if wanted(Redact::Serials) {
            kinds.extend(serials.into_iter().map(|serial| (serial, "serial")));
        }
        if wanted(Redact::Names) {
            kinds.extend(nodes.iter().map(|node| (node.clone(), "node")));
        }
        let regex = |text: &str, what| wanted(what).then(|| Regex::new(text).ok()).flatten();
        let mut redaction = Self {
            addresses: regex(ADDRESSES, Redact::Addresses),
            serials: regex(SERIALS, Redact::Serials),
            words: words(kinds.keys()),
            kinds,
            given: HashMap::new(),
            counts: HashMap::new(),
            metrics: HashMap::new(),
        };
        // In their order, so that stand-ins sort as the nodes do.
        for node in nodes.iter().filter(|_| wanted(Redact::Names)) {
            redaction.stand_in("node", node);
        }
        redaction
    }

    /// A document with every text in it replaced.
    ///
    /// # Errors
    /// When it has no JSON.
    pub fn document(&mut self, document: &impl Serialize) -> Result<Value> {
        let mut value = serde_json::to_value(document)?;
        self.walk(&mut value);
        Ok(value)
    }

    /// The same as the type it was.
    ///
    /// # Errors
    /// When it does not read back.
    pub fn report<T: Serialize + DeserializeOwned>(&mut self, report: &T) -> Result<T> {
        Ok(serde_json::from_value(self.document(report)?)?)
    }

    /// The document of a run.
    ///
    /// # Errors
    /// When it does not read back.
    pub fn run(&mut self, mut report: RunReport) -> Result<RunReport> {
        let nodes = std::mem::take(&mut report.nodes);
        let mut report = self.report(&report)?;
        report.nodes = nodes.into_iter().map(|node| self.node(node)).collect::<Result<_>>()?;
        Ok(report)
    }

    /// What is said of a node. Verdicts are millions, of which many share one metric; that is replaced once.
    ///
    /// # Errors
    /// When it does not read back.
    pub fn node(&mut self, mut node: NodeReport) -> Result<NodeReport> {
        let mut verdicts = std::mem::take(&mut node.verdicts);
        let mut metrics = std::mem::take(&mut self.metrics);
        for of in verdicts.iter_mut().map(|verdict| &mut verdict.of) {
            // The old one is kept as long as its address means it.
            let known = match metrics.entry(Arc::as_ptr(of).addr()) {
                Entry::Occupied(known) => known.into_mut(),
                Entry::Vacant(new) => new.insert((of.clone(), Arc::new(self.report(&**of)?))),
            };
            *of = known.1.clone();
        }
        self.metrics = metrics;
        Ok(NodeReport { verdicts, ..self.report(&node)? })
    }

    fn walk(&mut self, value: &mut Value) {
        match value {
            Value::String(text) => *text = self.text(text),
            Value::Array(items) => items.iter_mut().for_each(|item| self.walk(item)),
            Value::Object(members) => members.values_mut().for_each(|member| self.walk(member)),
            _ => {}
        }
    }

    /// What a reader has to be told where names of nodes are replaced: a stand-in looks like a name, and a node may be called so.
    #[must_use]
    pub fn remark(&self) -> Option<String> {
        let replaced = self.counts.contains_key("node");
        replaced.then(|| "Names are replaced: node-001 is no host name.".to_owned())
    }

    /// A text with every name in it replaced.
    pub fn text(&mut self, text: &str) -> String {
        let mut text = text.to_owned();
        for (regex, kind) in
            [(self.words.clone(), ""), (self.serials.clone(), "serial"), (self.addresses.clone(), "address")]
        {
            let Some(regex) = regex else { continue };
            let replaced = regex.replace_all(&text, |found: &Captures<'_>| {
                let word = &found[0];
                let before = found.get(0).and_then(|found| text.get(..found.start())).unwrap_or_default();
                let address = kind != "address" || is_address(word, before);
                let kind = if kind.is_empty() { self.kinds.get(word).copied().unwrap_or("node") } else { kind };
                if address { self.stand_in(kind, word) } else { word.to_owned() }
            });
            text = replaced.into_owned();
        }
        text
    }

    fn stand_in(&mut self, kind: &'static str, word: &str) -> String {
        if let Some(given) = self.given.get(word) {
            return given.clone();
        }
        let count = self.counts.entry(kind).or_default();
        *count += 1;
        let given = format!("{kind}-{count:03}");
        self.given.insert(word.to_owned(), given.clone());
        given
    }
}

/// A document that says so where names are replaced.
#[derive(Debug, Serialize)]
pub struct Remarked<'d, D> {
    /// The document, an object.
    #[serde(flatten)]
    pub document: &'d D,
    /// As of [`Redaction::remark`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub names_replaced: Option<String>,
}

/// Markdown with the `remark` below its title.
#[must_use]
pub fn noted(remark: Option<String>, text: &str) -> String {
    let Some(remark) = remark else { return text.to_owned() };
    match text.split_once("\n\n") {
        Some((title, rest)) if title.starts_with('#') => format!("{title}\n\n> {remark}\n\n{rest}"),
        _ => format!("> {remark}\n\n{text}"),
    }
}

/// Whether `word`, which may be an address, is one behind this text. A time of day is none, and no bare number either: the hash of a
/// communicator is what to search logs of NCCL for.
fn is_address(word: &str, before: &str) -> bool {
    if word.to_ascii_lowercase().starts_with("0x") {
        let words = before.rsplit(|c: char| !(c.is_alphanumeric() || c == '_')).filter(|word| !word.is_empty());
        return words.take(1).any(|word| word.to_ascii_lowercase().ends_with("guid"));
    }
    !word.contains(':') || word.len() >= 17 || word.parse::<Ipv6Addr>().is_ok()
}

/// Whole words only, the longest first, so that `n1` is not found in `n10`.
fn words<'a>(all: impl Iterator<Item = &'a String>) -> Option<Regex> {
    let mut all: Vec<&String> = all.filter(|word| !word.is_empty()).collect();
    all.sort_by_key(|word| std::cmp::Reverse(word.len()));
    let escaped: Vec<String> = all.iter().map(|word| whole(word)).collect();
    let text = escaped.join("|");
    if escaped.is_empty() { None } else { regex::RegexBuilder::new(&text).size_limit(256 << 20).build().ok() }
}

/// `word` and nothing longer; an edge that is no letter of words, such as `<`, ends one by itself.
fn whole(word: &str) -> String {
    let edge = |c: Option<char>| if c.is_some_and(|c| c.is_alphanumeric() || c == '_') { r"\b" } else { "" };
    format!("{}{}{}", edge(word.chars().next()), regex::escape(word), edge(word.chars().next_back()))
}

/// Facts whose key says that they are a serial number or an identity.
fn serials(records: &[Record]) -> BTreeSet<String> {
    let facts = records.iter().flat_map(|r| &r.facts);
    let named = facts.filter(|f| {
        let key = f.key.to_ascii_lowercase();
        key.contains("serial") || key.contains("uuid")
    });
    let texts =
        named.filter_map(|f| if let Some(Datum::Text(text)) = f.reading.value() { Some(text.clone()) } else { None });
    // Short words are "none" and "0" more often than they are serial numbers.
    texts.filter(|text| text.len() >= 5).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use muster_run::RunState;
    use muster_wire::Profile;

    fn run() -> Run {
        Run {
            id: "r".into(),
            playbook: "cbd".into(),
            profile: Profile::Quick,
            started_ms: 0,
            ended_ms: None,
            nodes: vec!["n10".into(), "n1".into(), "a-b".into()],
            plan: Vec::new(),
            state: RunState::Finished,
        }
    }

    #[test]
    fn names_addresses_and_serials_have_the_same_stand_in_throughout() {
        let all = [Redact::Names, Redact::Addresses, Redact::Serials];
        let mut redaction = Redaction::of(&all, &run(), &[]);
        let said =
            redaction.text("n1 is slower than n10; n1: cannot connect to 10.0.0.8:22, not 10.0.0.9:22 nor 10.0.0.8");
        assert_eq!(
            said,
            "node-002 is slower than node-001; node-002: cannot connect to address-001:22, not address-002:22 nor address-001"
        );
        assert_eq!(redaction.text("GPU-b876c63f-396c-f826-5cd0-6b8409990352 of a-b"), "GPU-serial-001 of node-003");
        assert_eq!(redaction.text("fe80::1 and 0c:42:a1:00:11:22"), "address-003 and address-004");
    }

    #[test]
    fn a_name_with_odd_edges_is_replaced_as_well() {
        let nodes = ["<b>n1</b>".to_owned(), "n2.".to_owned(), "n2".to_owned()];
        let mut redaction = Redaction::new(&[Redact::Names], &nodes, []);
        assert_eq!(redaction.text("<b>n1</b>: as n2, n20 and n2.x"), "node-001: as node-003, n20 and node-002x");
    }

    #[test]
    fn a_communicators_hash_is_no_address_and_a_guid_is_one() {
        let mut redaction = Redaction::of(&[Redact::Names, Redact::Addresses], &run(), &[]);
        let text = "communicator 0x76872feea068891f of n1";
        assert_eq!(redaction.text(text), "communicator 0x76872feea068891f of node-002");
        assert_eq!(redaction.text("0x76872feea068891f"), "0x76872feea068891f");
        let text = "port_guid: 0x506b4b0300c1a2b0, Node GUID 0x506B4B0300C1A2B1";
        assert_eq!(redaction.text(text), "port_guid: address-001, Node GUID address-002");
    }

    #[test]
    fn a_reader_is_told_where_names_are_replaced_and_only_there() {
        let remark = |chosen: &[Redact]| Redaction::of(chosen, &run(), &[]).remark();
        assert_eq!(remark(&[Redact::Names]).as_deref(), Some("Names are replaced: node-001 is no host name."));
        assert_eq!((remark(&[Redact::Addresses, Redact::Serials]), remark(&[Redact::None])), (None, None));
        let document = &serde_json::json!({ "version": 1 });
        let said = |names_replaced| serde_json::to_value(Remarked { document, names_replaced }).unwrap();
        let replaced = Some("Replaced.".to_owned());
        assert_eq!(said(replaced), serde_json::json!({ "version": 1, "names_replaced": "Replaced." }));
        assert_eq!(&said(None), document);
        let below = |text: &str| noted(Some("Replaced.".to_owned()), text);
        assert_eq!(below("# Run\n\nSlow.\n"), "# Run\n\n> Replaced.\n\nSlow.\n");
        assert_eq!(below("Slow.\n"), "> Replaced.\n\nSlow.\n");
        assert_eq!(noted(None, "# Run\n"), "# Run\n");
    }

    #[test]
    fn times_metrics_and_versions_stay_and_none_replaces_nothing() {
        let mut redaction = Redaction::of(&[Redact::Names, Redact::Addresses], &run(), &[]);
        let text = "2026-11-21T14:30:08Z nccl-bw:nvlink/allreduce_8_busbw:0 at 0.95";
        assert_eq!(redaction.text(text), text);
        assert_eq!(Redaction::of(&[Redact::None], &run(), &[]).text("n1 at 10.0.0.8"), "n1 at 10.0.0.8");
    }
}
