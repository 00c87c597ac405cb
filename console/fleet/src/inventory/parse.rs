//! How is an inventory file read, so that every mistake is told with its line?

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use toml::Spanned;

use super::nearest::nearest;
use super::{Inventory, InventoryError, Node};
use crate::hostlist::{expand, fold};
use crate::slurm_options::Options;
use crate::transport::Transport;

#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields)]
struct File {
    transport: Option<Spanned<String>>,
    slurm: Option<Spanned<Options>>,
    #[serde(default)]
    defaults: Defaults,
    #[serde(default)]
    nodes: Vec<Spanned<Entry>>,
    #[serde(default)]
    groups: BTreeMap<Spanned<String>, Spanned<String>>,
}

#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields)]
struct Defaults {
    user: Option<Spanned<String>>,
    port: Option<Spanned<i64>>,
    identity: Option<PathBuf>,
    jump: Option<Spanned<String>>,
    #[serde(default)]
    labels: BTreeMap<String, String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    names: Option<Spanned<String>>,
    name: Option<Spanned<String>>,
    host: Option<Spanned<String>>,
    port: Option<Spanned<i64>>,
    user: Option<Spanned<String>>,
    identity: Option<PathBuf>,
    jump: Option<Spanned<String>>,
    #[serde(default)]
    groups: Vec<Spanned<String>>,
    rack: Option<Spanned<String>>,
    #[serde(default)]
    labels: BTreeMap<String, String>,
}

impl Inventory {
    /// Reads and parses an inventory file.
    pub fn load(file: impl AsRef<Path>) -> Result<Self, InventoryError> {
        let file = file.as_ref();
        let text = std::fs::read_to_string(file).map_err(|error| InventoryError {
            file: file.to_owned(),
            line: 0,
            message: format!("cannot read the inventory: {error}"),
        })?;
        Self::parse(&text, file)
    }

    /// Parses an inventory; `file` is only named in errors.
    pub fn parse(text: &str, file: impl AsRef<Path>) -> Result<Self, InventoryError> {
        let source = Source { text, file: file.as_ref() };
        let parsed: File = toml::from_str(text).map_err(|error| {
            let at = error.span().map_or(0, |span| span.start);
            InventoryError::at(source.file, text, at, error.message())
        })?;
        let mut inventory = Self::default();
        inventory.transport = source.transport(parsed.transport.as_ref())?;
        inventory.slurm = source.slurm(parsed.slurm)?;
        let mut lines = BTreeMap::new();
        for entry in &parsed.nodes {
            source.add_entry(entry, &parsed.defaults, &mut inventory, &mut lines)?;
        }
        for (group, list) in &parsed.groups {
            source.add_group(group, list, &mut inventory)?;
        }
        Ok(inventory)
    }
}

struct Source<'a> {
    text: &'a str,
    file: &'a Path,
}

impl Source<'_> {
    fn error(&self, at: usize, message: impl Into<String>) -> InventoryError {
        InventoryError::at(self.file, self.text, at, message)
    }

    fn transport(&self, word: Option<&Spanned<String>>) -> Result<Option<Transport>, InventoryError> {
        let Some(word) = word else { return Ok(None) };
        let known = || Transport::WORDS.map(|(word, _)| word).join(", ");
        let wrong = || self.error(word.span().start, format!("transport is {:?}; one of {}", word.get_ref(), known()));
        Transport::from_word(word.get_ref()).ok_or_else(wrong).map(Some)
    }

    fn slurm(&self, options: Option<Spanned<Options>>) -> Result<Option<Options>, InventoryError> {
        let Some(options) = options else { return Ok(None) };
        let at = options.span().start;
        options.into_inner().checked().map(Some).map_err(|why| self.error(at, format!("slurm: {why}")))
    }

    fn add_entry(
        &self,
        entry: &Spanned<Entry>,
        defaults: &Defaults,
        inventory: &mut Inventory,
        places: &mut BTreeMap<String, usize>,
    ) -> Result<(), InventoryError> {
        let at = entry.span().start;
        let entry = entry.get_ref();
        let (names, list) = self.names(entry, at)?;
        let hosts = self.hosts(entry, &names)?;
        let pattern = self.pattern(entry, defaults)?;
        let start = list.span().start;
        for (name, host) in names.into_iter().zip(hosts) {
            let node = Node { name, host, ..pattern.clone() };
            places.entry(node.name.clone()).or_insert(start);
            inventory.push(node).map_err(|name| {
                // Lines are counted where one is said: a file of ten thousand nodes would be read ten thousand times.
                let line = self.error(places[&name], "").line;
                self.error(start, format!("node {name} is already defined on line {line}"))
            })?;
        }
        Ok(())
    }

    fn names<'e>(&self, entry: &'e Entry, at: usize) -> Result<(Vec<String>, &'e Spanned<String>), InventoryError> {
        let list = match (&entry.names, &entry.name) {
            (Some(list), None) | (None, Some(list)) => list,
            (Some(_), Some(name)) => {
                return Err(self.error(name.span().start, "give either `name` or `names`, not both"));
            }
            (None, None) => return Err(self.error(at, "a [[nodes]] entry needs `name` or `names`")),
        };
        let names = self.expand(list)?;
        match names.len() {
            0 => Err(self.error(list.span().start, "expected at least one node name, found an empty list")),
            count if count > 1 && entry.name.is_some() => {
                let message = format!("`name` stands for one node, this list has {count}: write `names`");
                Err(self.error(list.span().start, message))
            }
            _ => Ok((names, list)),
        }
    }

    /// The address of each name, in the same order; the names themselves where no address is given.
    fn hosts(&self, entry: &Entry, names: &[String]) -> Result<Vec<String>, InventoryError> {
        let Some(list) = &entry.host else { return Ok(names.to_vec()) };
        let hosts = self.expand(list)?;
        if hosts.len() != names.len() {
            let count = |of: usize, one, some| format!("{of} {}", if of == 1 { one } else { some });
            let hosts = count(hosts.len(), "address", "addresses");
            let names = count(names.len(), "name", "names");
            let message = format!("`host` has {hosts} for {names}; expected one for each");
            return Err(self.error(list.span().start, message));
        }
        Ok(hosts)
    }

    /// What all nodes of an entry share.
    fn pattern(&self, entry: &Entry, defaults: &Defaults) -> Result<Node, InventoryError> {
        let mut labels = defaults.labels.clone();
        if let Some(rack) = &entry.rack {
            if entry.labels.contains_key("rack") {
                return Err(self.error(rack.span().start, "the rack is given twice: as `rack` and in `labels`"));
            }
            labels.insert("rack".to_owned(), rack.get_ref().clone());
        }
        labels.extend(entry.labels.clone());
        let mut groups = Vec::with_capacity(entry.groups.len());
        for group in &entry.groups {
            groups.push(self.group_name(group)?);
        }
        groups.sort();
        groups.dedup();
        Ok(Node {
            port: self.port(entry.port.as_ref().or(defaults.port.as_ref()))?,
            user: self.word("user", entry.user.as_ref().or(defaults.user.as_ref()))?,
            identity: entry.identity.clone().or_else(|| defaults.identity.clone()),
            jump: self.word("jump", entry.jump.as_ref().or(defaults.jump.as_ref()))?,
            groups,
            labels,
            ..Node::default()
        })
    }

    fn port(&self, port: Option<&Spanned<i64>>) -> Result<u16, InventoryError> {
        let Some(port) = port else { return Ok(0) };
        let number = *port.get_ref();
        u16::try_from(number).ok().filter(|port| *port > 0).ok_or_else(|| {
            self.error(port.span().start, format!("{number} is not a port; expected a number from 1 to 65535"))
        })
    }

    /// A user or jump host: one word that no program could take for an option.
    fn word(&self, field: &str, word: Option<&Spanned<String>>) -> Result<Option<String>, InventoryError> {
        let Some(word) = word else { return Ok(None) };
        let text = word.get_ref();
        let bad = |c: char| c.is_whitespace() || c.is_control();
        if text.is_empty() || text.starts_with('-') || text.contains(bad) {
            let message = format!("`{field}` is {text:?}; expected one word that does not begin with '-'");
            return Err(self.error(word.span().start, message));
        }
        Ok(Some(text.clone()))
    }

    fn group_name(&self, group: &Spanned<String>) -> Result<String, InventoryError> {
        let name = group.get_ref();
        let legal = |c: char| c.is_alphanumeric() || "._-:/+".contains(c);
        if name.is_empty() || !name.chars().all(legal) {
            let message = format!("{name:?} is not a group name; expected letters, digits and . _ - : / +");
            return Err(self.error(group.span().start, message));
        }
        Ok(name.clone())
    }

    fn expand(&self, list: &Spanned<String>) -> Result<Vec<String>, InventoryError> {
        expand(list.get_ref()).map_err(|error| self.error(list.span().start, error.to_string()))
    }

    fn add_group(
        &self,
        group: &Spanned<String>,
        list: &Spanned<String>,
        inventory: &mut Inventory,
    ) -> Result<(), InventoryError> {
        let group = self.group_name(group)?;
        let names = self.expand(list)?;
        let mut unknown = Vec::new();
        for name in &names {
            if !inventory.join_group(name, &group) {
                unknown.push(name.as_str());
            }
        }
        let Some(first) = unknown.first() else { return Ok(()) };
        let known = inventory.nodes().iter().map(|node| node.name.as_str());
        let hint = nearest(first, known).map(|name| format!("; did you mean {name}?")).unwrap_or_default();
        let message = format!("group {group} names nodes that are not defined: {}{hint}", fold(unknown));
        Err(self.error(list.span().start, message))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn parse(text: &str) -> Result<Inventory, InventoryError> {
        Inventory::parse(text, "fleet.toml")
    }

    #[test]
    fn an_inventory_with_defaults_zipped_hosts_and_groups_is_read() {
        let text = r#"
[defaults]
user = "root"
port = 2222
labels = { site = "ams", sku = "none" }

[[nodes]]
names = "node[001-128]"
host = "10.0.0.[1-128]"
groups = ["h100", "batch", "h100"]
rack = "r1"
labels = { leaf = "leaf1", sku = "h100-8" }

[[nodes]]
name = "login"
user = "ops"
port = 22
jump = "bastion"
identity = "~/.ssh/ops"

[groups]
canary = "node[001-004]"
"#;
        let inventory = parse(text).unwrap();
        assert_eq!(inventory.nodes().len(), 129);
        let last = inventory.node("node128").unwrap();
        assert_eq!((last.host.as_str(), last.port, last.user.as_deref()), ("10.0.0.128", 2222, Some("root")));
        assert_eq!(last.groups, ["batch", "h100"]);
        let labels: Vec<_> = last.labels.iter().map(|(key, value)| format!("{key}={value}")).collect();
        assert_eq!(labels, ["leaf=leaf1", "rack=r1", "site=ams", "sku=h100-8"]);
        let login = inventory.node("login").unwrap();
        assert_eq!((login.host.as_str(), login.port, login.user.as_deref()), ("login", 22, Some("ops")));
        assert_eq!(
            (login.jump.as_deref(), login.identity.as_deref()),
            (Some("bastion"), Some(Path::new("~/.ssh/ops")))
        );
        assert_eq!(inventory.groups()["canary"], ["node001", "node002", "node003", "node004"]);
        assert_eq!(inventory.node("node001").unwrap().groups, ["batch", "canary", "h100"]);
    }

    #[test]
    fn every_mistake_names_its_line_and_what_is_expected() {
        for (text, line, words) in [
            ("[[nodes]]\nname = \"a\"\nprot = 22\n", 3, "unknown field `prot`"),
            ("[[nodes]]\nname = \"a\"\n\n[[nodes]]\nname = \"a\"\n", 5, "already defined on line 2"),
            ("[[nodes]]\nnames = \"a,b,a\"\n", 2, "already defined"),
            ("[[nodes]]\nnames = \"a[1-3]\"\nhost = \"b[1-2]\"\n", 3, "2 addresses for 3 names"),
            ("[[nodes]]\nnames = \"a[1-2]\"\nhost = \"b\"\n", 3, "1 address for 2 names"),
            ("[[nodes]]\nname = \"a\"\nport = 0\n", 3, "1 to 65535"),
            ("[[nodes]]\nname = \"a\"\nport = 65536\n", 3, "1 to 65535"),
            ("[[nodes]]\nname = \"a\"\nport = \"x\"\n", 3, "invalid type"),
            ("[[nodes]]\nnames = \"a[1-\"\n", 2, "never closed"),
            ("[[nodes]]\nname = \"a[1-2]\"\n", 2, "write `names`"),
            ("\n[[nodes]]\nrack = \"r\"\n", 2, "needs `name`"),
            ("[[nodes]]\nname = \"a\"\nnames = \"b\"\n", 2, "not both"),
            ("[[nodes]]\nname = \"a\"\nuser = \"-oX\"\n", 3, "one word"),
            ("[[nodes]]\nname = \"a\"\n[groups]\ng = \"b\"\n", 4, "not defined: b"),
            ("[[nodes]]\nname = \"a\"\ngroups = [\"x y\"]\n", 3, "not a group name"),
            ("[[nodes]]\nname = \"a\"\nrack = \"r\"\nlabels = { rack = \"s\" }\n", 3, "given twice"),
            ("[[nodes]\nname = \"a\"\n", 1, ""),
            ("[default]\n", 1, "unknown field `default`"),
        ] {
            let error = parse(text).unwrap_err();
            assert_eq!(error.line, line, "{text}: {error}");
            assert!(error.to_string().starts_with(&format!("fleet.toml:{line}: ")), "{error}");
            assert!(error.message.contains(words), "{text}: {error}");
        }
    }

    #[test]
    fn an_inventory_may_leave_its_nodes_to_slurm() {
        let inventory = parse("transport = \"slurm\"\n[slurm]\npartition = \"batch\"\nwait = 60\n").unwrap();
        assert_eq!((inventory.transport, inventory.nodes().len()), (Some(Transport::Slurm), 0));
        let options = inventory.slurm.unwrap();
        assert_eq!((options.partition.as_deref(), options.wait, options.ssh), (Some("batch"), Some(60), false));
        for (text, line) in [
            ("transport = \"rsh\"\n", 1),
            ("transport = \"slurm\"\n[slurm]\nnodes = 4\n", 3),
            ("transport = \"slurm\"\n\n[slurm]\npartition = \"-w x\"\n", 3),
        ] {
            assert_eq!(parse(text).unwrap_err().line, line, "{text}");
        }
    }

    #[test]
    fn a_file_that_is_not_there_is_told_without_a_line() {
        let text = Inventory::load("/nonexistent/fleet.toml").unwrap_err().to_string();
        assert!(text.starts_with("/nonexistent/fleet.toml: cannot read the inventory: "), "{text}");
    }

    proptest! {
        #[test]
        fn any_text_is_answered_without_a_panic(text in "\\PC{0,80}|([a-z]{1,5} = (\"[a-z\\[\\]0-9-]{0,8}\"|[0-9-]{1,6})\n|\\[\\[nodes\\]\\]\n){0,6}") {
            if let Err(error) = parse(&text) {
                prop_assert!(error.line >= 1);
            }
        }
    }
}
