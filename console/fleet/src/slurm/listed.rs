//! What does Slurm say of each node? Its JSON and its one-line text come to the same.

use std::collections::HashSet;

use muster_wire::clean;
use serde_json::Value;

use super::spelling::{
    ADDRESS, FEATURES, FLAGS, GRES, MARKS, NAME, NODES, OUT, PARTITIONS, REASON, REASON_BY, SAME, STATE, Spelling,
    VERSION,
};

/// Most nodes of one Slurm; it knows no more than 65,533 itself.
const NODES_MOST: usize = 100_000;
/// Most words of a list, such as partitions of a node.
const WORDS_MOST: usize = 256;
/// Most characters of a text.
const TEXT_MOST: usize = 400;

/// A node as Slurm describes it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Listed {
    /// `NodeName`: letters, digits, `.`, `_` and `-`.
    pub name: String,
    /// `NodeAddr`; the name where Slurm says nothing else.
    pub address: String,
    /// State and flags in capitals, such as `IDLE` and `DRAIN`; sorted, each once, but the state itself comes first.
    pub states: Vec<String>,
    /// Why it is drained or down; empty where nobody said.
    pub reason: String,
    /// Who said so; empty where Slurm does not tell.
    pub reason_by: String,
    /// Version of Slurm on it, such as `24.11.5`; empty where Slurm does not tell.
    pub version: String,
    /// Partitions that it is in.
    pub partitions: Vec<String>,
    /// Features that it has now.
    pub features: Vec<String>,
    /// Generic resources without the sockets they hang on, such as `gpu:h100:8`; empty without any.
    pub gres: String,
}

/// An answer of Slurm that is not understood.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Malformed(String);

impl Listed {
    /// Whether it is in the state `word`, given in capitals.
    #[must_use]
    pub fn is(&self, word: &str) -> bool {
        self.states.iter().any(|state| state == word)
    }

    /// The states with plus signs between, as scontrol prints them.
    #[must_use]
    pub fn state(&self) -> String {
        self.states.join("+")
    }

    /// Whether Slurm gives it to no job now.
    #[must_use]
    pub fn out(&self) -> bool {
        OUT.iter().any(|state| self.is(state))
    }

    fn new(name: &str, address: &str) -> Result<Self, Malformed> {
        if !is_name(name) {
            return Err(Malformed(format!("'{}' is no name of a node", clean(name, 80))));
        }
        let address = if is_address(address) { address } else { name };
        Ok(Self { name: name.to_owned(), address: address.to_owned(), ..Self::default() })
    }
}

/// The nodes of `sinfo --json` (22.05) or `scontrol show nodes --json` (23.02 and later), in its order, each once.
///
/// # Errors
/// When it is no such document: cut short, another schema, or a name that is none.
pub fn from_json(text: &str) -> Result<Vec<Listed>, Malformed> {
    let document: Value = serde_json::from_str(text).map_err(|why| Malformed(format!("no JSON: {why}")))?;
    let nodes = NODES.iter().find_map(|key| document.get(key)?.as_array());
    let nodes = nodes.ok_or_else(|| Malformed("the JSON has no list of nodes".to_owned()))?;
    once(nodes.iter().map(|node| {
        let text = |what: Spelling| member(node, what).map(plain).unwrap_or_default();
        let words = |what: Spelling| member(node, what).map(list).unwrap_or_default();
        let states = words(STATE).into_iter().chain(words(FLAGS)).map(|state| clean(&state, TEXT_MOST));
        Ok(Listed {
            states: states_of(states.flat_map(|state| split_state(&state))),
            reason: clean(text(REASON).trim(), TEXT_MOST),
            reason_by: clean(&text(REASON_BY), TEXT_MOST),
            version: clean(&text(VERSION), TEXT_MOST),
            partitions: words(PARTITIONS),
            features: words(FEATURES),
            gres: gres(&words(GRES).join(",")),
            ..Listed::new(&text(NAME), &text(ADDRESS))?
        })
    }))
}

/// The nodes of `scontrol -o show nodes`, one on each line.
///
/// # Errors
/// When a line is not about a node, or its name is none.
pub fn from_text(text: &str) -> Result<Vec<Listed>, Malformed> {
    once(text.lines().filter(|line| !line.trim().is_empty()).map(|line| {
        let word = |what: Spelling| field(line, what).and_then(|value| value.split(' ').next()).unwrap_or_default();
        let words = |what: Spelling| split(word(what));
        if !line.starts_with("NodeName=") {
            return Err(Malformed(format!("a line about no node: '{}'", clean(line, 80))));
        }
        // Why it is out may hold spaces, and may be followed by who said so and when.
        let reason = field(line, REASON).unwrap_or_default();
        let (reason, reason_by) = signed(reason).unwrap_or((reason, ""));
        Ok(Listed {
            states: states_of(split_state(word(STATE))),
            reason: known(&clean(reason.trim(), TEXT_MOST)).to_owned(),
            reason_by: clean(reason_by, TEXT_MOST),
            version: clean(word(VERSION), TEXT_MOST),
            partitions: words(PARTITIONS),
            features: words(FEATURES),
            gres: gres(word(GRES)),
            ..Listed::new(word(NAME), word(ADDRESS))?
        })
    }))
}

fn once(nodes: impl Iterator<Item = Result<Listed, Malformed>>) -> Result<Vec<Listed>, Malformed> {
    let (mut seen, mut listed) = (HashSet::new(), Vec::new());
    for node in nodes {
        let node = node?;
        if seen.insert(node.name.clone()) {
            listed.push(node);
        }
        if listed.len() > NODES_MOST {
            return Err(Malformed(format!("more than {NODES_MOST} nodes")));
        }
    }
    Ok(listed)
}

fn member(node: &Value, what: Spelling) -> Option<&Value> {
    what.json.iter().find_map(|key| node.get(key))
}

fn plain(value: &Value) -> String {
    value.as_str().map(known).unwrap_or_default().to_owned()
}

/// A list, or a text with commas.
fn list(value: &Value) -> Vec<String> {
    match value {
        Value::String(text) => split(text),
        Value::Array(words) => words.iter().filter_map(Value::as_str).flat_map(split).take(WORDS_MOST).collect(),
        _ => Vec::new(),
    }
}

fn split(text: &str) -> Vec<String> {
    let words = known(text).split(',').map(str::trim).filter(|word| !word.is_empty());
    words.take(WORDS_MOST).map(|word| clean(word, TEXT_MOST)).collect()
}

/// What stands for nothing is nothing.
fn known(text: &str) -> &str {
    if ["(null)", "N/A", "none", "None"].contains(&text) { "" } else { text }
}

/// What follows ` Key=` or begins the line with it, to the end of the line. The first one counts: free text, in which anything
/// may stand, comes last.
fn field(line: &str, what: Spelling) -> Option<&str> {
    let mut rest = line;
    loop {
        let at = rest.find(what.text)?;
        let (before, found) = rest.split_at(at);
        let after = found.get(what.text.len()..)?;
        if let Some(value) = after.strip_prefix('=')
            && (before.is_empty() && rest.len() == line.len() || before.ends_with(' '))
        {
            return Some(value);
        }
        rest = after;
    }
}

/// `bad fan [root@2026-11-25T08:00:00]`: the text and who wrote it.
fn signed(reason: &str) -> Option<(&str, &str)> {
    let mut ends = reason.match_indices(" [");
    ends.find_map(|(at, _)| {
        let signature = reason.get(at + 2..)?.split(']').next()?;
        let (user, time) = signature.rsplit_once('@')?;
        (!user.is_empty() && time.starts_with(|c: char| c.is_ascii_digit()) && !signature.contains(' '))
            .then(|| (reason.get(..at).unwrap_or_default(), user))
    })
}

/// `idle*+DRAIN`: its words, with marks as words.
fn split_state(text: &str) -> Vec<String> {
    let mut words = Vec::new();
    for part in text.split('+').take(WORDS_MOST) {
        let word = part.trim_end_matches(|c| MARKS.iter().any(|(mark, _)| *mark == c));
        let marks = part.get(word.len()..).unwrap_or_default();
        words.push(word.to_uppercase());
        words.extend(marks.chars().filter_map(|c| MARKS.iter().find(|(mark, _)| *mark == c)).map(|m| m.1.to_owned()));
    }
    words
}

/// The state first, its flags sorted behind it.
fn states_of(words: impl IntoIterator<Item = String>) -> Vec<String> {
    let same = |word: String| SAME.iter().find(|(other, _)| *other == word).map_or(word, |(_, one)| (*one).to_owned());
    let mut words = words.into_iter().filter(|word| !word.is_empty()).map(same);
    let Some(first) = words.next() else { return vec!["UNKNOWN".to_owned()] };
    let mut flags: Vec<String> = words.filter(|word| *word != first).take(WORDS_MOST).collect();
    flags.sort();
    flags.dedup();
    flags.insert(0, first);
    flags
}

/// `gpu:h100:8(S:0-1),nic:2`: without what stands in parentheses.
fn gres(text: &str) -> String {
    let mut depth = 0_usize;
    let outside = known(text).chars().filter(|c| match c {
        '(' => {
            depth += 1;
            false
        }
        ')' => {
            depth = depth.saturating_sub(1);
            false
        }
        _ => depth == 0,
    });
    clean(&outside.collect::<String>(), TEXT_MOST)
}

/// Whether it names one node and nothing else, wherever it stands in a command.
pub(super) fn is_name(name: &str) -> bool {
    let legal = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
    (1..=255).contains(&name.len()) && !name.starts_with('-') && name.chars().all(legal)
}

fn is_address(address: &str) -> bool {
    let legal = |c: char| c.is_ascii_alphanumeric() || "._-:".contains(c);
    (1..=255).contains(&address.len()) && !address.starts_with('-') && address.chars().all(legal)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn words(words: &[&str]) -> Vec<String> {
        words.iter().map(|word| (*word).to_owned()).collect()
    }

    /// As 22.05.8 prints it, shortened.
    const TEXT: &str = "NodeName=n001 Arch=x86_64 CoresPerSocket=1 CPUAlloc=0 AvailableFeatures=h100,ib ActiveFeatures=h100,ib \
        Gres=gpu:h100:2(S:0-1) NodeAddr=10.79.1.1 NodeHostName=n001 Version=22.05.8 OS=Linux 6.1 #1 SMP RealMemory=1000 State=IDLE+DRAIN \
        ThreadsPerCore=1 Partitions=all,small BootTime=None Reason=bad fan, State=x [7] [ann@2026-11-25T08:00:00]\n\
        NodeName=n002 NodeAddr=n002 ActiveFeatures=(null) Gres=(null) State=DOWN* Partitions=all Reason=Not responding [slurm@2026-11-25T08:00:00]\n";

    #[test]
    fn the_text_form_is_read_with_reasons_that_hold_anything() {
        let nodes = from_text(TEXT).unwrap();
        let first = Listed {
            name: "n001".into(),
            address: "10.79.1.1".into(),
            states: words(&["IDLE", "DRAIN"]),
            reason: "bad fan, State=x [7]".into(),
            reason_by: "ann".into(),
            version: "22.05.8".into(),
            partitions: words(&["all", "small"]),
            features: words(&["h100", "ib"]),
            gres: "gpu:h100:2".into(),
        };
        assert_eq!(nodes[0], first);
        assert_eq!((nodes[1].state().as_str(), nodes[1].out()), ("DOWN+NOT_RESPONDING", true));
        assert_eq!((nodes[1].reason_by.as_str(), nodes[1].gres.as_str()), ("slurm", ""));
    }

    #[test]
    fn the_json_of_22_05_and_that_of_later_versions_come_to_the_same() {
        let old = r#"{"meta": {}, "errors": [], "nodes": [{"name": "n1", "address": "10.0.0.1", "state": "idle", "state_flags": ["DRAIN"],
            "reason": "bad fan", "reason_set_by_user": "ann", "partitions": ["all"], "active_features": "h100,ib", "gres": "gpu:h100:8(S:0-1)"}]}"#;
        let new = r#"{"nodes": [{"name": "n1", "address": "10.0.0.1", "state": ["IDLE", "DRAIN"], "reason": "bad fan", "extra": {"a": 1},
            "reason_set_by_user": "ann", "partitions": ["all"], "active_features": ["h100", "ib"], "gres": "gpu:h100:8(S:0-1)"}]}"#;
        let nodes = from_json(old).unwrap();
        assert_eq!(nodes, from_json(new).unwrap());
        assert_eq!((nodes[0].state().as_str(), nodes[0].gres.as_str()), ("IDLE+DRAIN", "gpu:h100:8"));
        assert_eq!(nodes[0].features, ["h100", "ib"]);
    }

    #[test]
    fn what_is_cut_short_or_no_list_of_nodes_is_refused_and_no_smaller_fleet() {
        for text in
            ["", "{\"nodes\": [{\"name\": \"n1\"}", "{\"sinfo\": []}", "{\"nodes\": [{\"name\": \"-w\"}]}", "[]"]
        {
            assert!(from_json(text).is_err(), "{text}");
        }
        for text in ["PartitionName=all\n", "NodeName=a;reboot State=IDLE\n", "NodeName= State=IDLE\n"] {
            assert!(from_text(text).is_err(), "{text}");
        }
        assert_eq!(from_text("NodeName=a State=IDLE\nNodeName=a State=DOWN\n").unwrap().len(), 1, "each once");
    }

    proptest! {
        #[test]
        fn no_text_makes_it_panic(text in "(NodeName=|State=|Reason=| \\[|[a-c0-9@,+*(){}\":\\[\\] \n]|\\PC){0,60}") {
            let _ = (from_text(&text), from_json(&text));
            let inside = serde_json::json!({"nodes": [{"name": "n", "state": text, "gres": text, "features": [text]}]});
            let _ = from_json(&inside.to_string());
        }
    }
}
