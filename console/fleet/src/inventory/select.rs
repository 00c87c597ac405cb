//! Which nodes do `-w` and `-x` mean?

use std::collections::HashSet;
use std::path::Path;

use super::nearest::nearest;
use super::{Inventory, Node, SelectError};
use crate::hostlist::{HostListError, expand, fold, terms};

/// What the operator wrote after `-w` and `-x`.
///
/// Each item is a list of terms separated by commas or spaces: a host list (`node[001-128]`), a group (`@canary`), a
/// label (`@rack=r3`, `@rack=r[1-3]`), every node (`@all`), or a file of such terms (`^nodes.txt`, `#` begins a comment).
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Selection {
    /// Nodes to take; every node when empty.
    pub include: Vec<String>,
    /// Nodes to leave out again.
    pub exclude: Vec<String>,
}

impl Inventory {
    /// The selected nodes, in the order of the inventory, each once.
    ///
    /// Names that are unknown are errors in `-x` too: an exclusion with a slip in it would touch the node meant to be
    /// spared. A selection that leaves nothing is an error.
    pub fn select(&self, selection: &Selection) -> Result<Vec<Node>, SelectError> {
        let mut excluded = HashSet::new();
        for list in &selection.exclude {
            self.collect(list, Files::Allowed, &mut excluded)?;
        }
        let mut included = HashSet::new();
        for list in &selection.include {
            self.collect(list, Files::Allowed, &mut included)?;
        }
        let all = selection.include.is_empty();
        let wanted = |place: &usize| (all || included.contains(place)) && !excluded.contains(place);
        let nodes: Vec<Node> =
            (0..self.nodes().len()).filter(wanted).map(|place| self.nodes()[place].clone()).collect();
        if nodes.is_empty() { Err(SelectError::Empty) } else { Ok(nodes) }
    }

    /// Adds the places of the nodes that `list` stands for.
    fn collect(&self, list: &str, files: Files, places: &mut HashSet<usize>) -> Result<(), SelectError> {
        let mut unknown = Vec::new();
        for (at, term) in terms(list)? {
            if let Some(group) = term.strip_prefix('@') {
                self.collect_group(group, places)?;
            } else if let Some(file) = term.strip_prefix('^') {
                match files {
                    Files::Allowed => self.collect_file(Path::new(file), places)?,
                    Files::Nested => {
                        let message = format!("a file of nodes cannot name another one ({term})");
                        return Err(SelectError::Misplaced(message));
                    }
                }
            } else {
                for name in expand(term).map_err(|error| shift(error, list, at))? {
                    match self.place(&name) {
                        Some(place) => _ = places.insert(place),
                        None => unknown.push(name),
                    }
                }
            }
        }
        let Some(first) = unknown.first() else { return Ok(()) };
        let nearest = nearest(first, self.nodes().iter().map(|node| node.name.as_str()));
        Err(SelectError::Unknown { names: fold(unknown.iter().map(String::as_str)), nearest })
    }

    fn collect_group(&self, group: &str, places: &mut HashSet<usize>) -> Result<(), SelectError> {
        let before = places.len();
        let label = match group.split_once('=') {
            Some((key, value)) => Some((key, label_values(value)?)),
            None => None,
        };
        let mut found = false;
        for (place, node) in self.nodes().iter().enumerate() {
            let wanted = match &label {
                Some((key, values)) => node.labels.get(*key).is_some_and(|own| values.contains(own)),
                None => node.groups.iter().any(|own| own == group),
            };
            if wanted {
                found = true;
                places.insert(place);
            }
        }
        if !found && group == "all" {
            places.extend(0..self.nodes().len());
            found = true;
        }
        if found || places.len() > before {
            return Ok(());
        }
        Err(SelectError::UnknownGroup { term: format!("@{group}"), nearest: self.nearest_group(group) })
    }

    fn nearest_group(&self, group: &str) -> Option<String> {
        let mut known: Vec<String> = self.groups().into_keys().map(str::to_owned).collect();
        if group.contains('=') {
            for node in self.nodes() {
                known.extend(node.labels.iter().map(|(key, value)| format!("{key}={value}")));
            }
            known.sort();
            known.dedup();
        }
        nearest(group, known.iter().map(String::as_str)).map(|group| format!("@{group}"))
    }

    fn collect_file(&self, file: &Path, places: &mut HashSet<usize>) -> Result<(), SelectError> {
        let wrong = |line, message| SelectError::File { file: file.to_owned(), line, message };
        let text = std::fs::read_to_string(file)
            .map_err(|error| wrong(0, format!("cannot read the file of nodes: {error}")))?;
        for (index, line) in text.lines().enumerate() {
            let line = line.split('#').next().unwrap_or_default().trim().trim_end_matches(',');
            self.collect(line, Files::Nested, places).map_err(|error| wrong(index + 1, error.to_string()))?;
        }
        Ok(())
    }
}

/// Whether `^file` may stand here.
#[derive(Clone, Copy)]
enum Files {
    Allowed,
    Nested,
}

/// `r[1-3]` stands for three values; a value without brackets is taken as it is.
fn label_values(value: &str) -> Result<Vec<String>, HostListError> {
    if value.contains('[') { expand(value) } else { Ok(vec![value.to_owned()]) }
}

/// Moves an error in one term to where the term stands in the whole list.
fn shift(error: HostListError, list: &str, at: usize) -> HostListError {
    let before = list[..at].chars().count();
    HostListError { column: error.column + before, list: list.to_owned(), ..error }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FLEET: &str = r#"
[[nodes]]
names = "node[001-008]"
groups = ["h100"]
rack = "r1"
[[nodes]]
names = "gpu[1-4]"
rack = "r3"
labels = { leaf = "leaf1" }
[groups]
canary = "node[001-002],gpu1"
"#;

    fn fleet() -> Inventory {
        Inventory::parse(FLEET, "fleet.toml").unwrap()
    }

    fn select(include: &[&str], exclude: &[&str]) -> Result<String, SelectError> {
        let own = |items: &[&str]| items.iter().map(|item| (*item).to_owned()).collect();
        let nodes = fleet().select(&Selection { include: own(include), exclude: own(exclude) })?;
        Ok(fold(nodes.iter().map(|node| node.name.as_str())))
    }

    #[test]
    fn names_groups_labels_and_exclusions_combine() {
        for (include, exclude, expected) in [
            (&[][..], &[][..], "gpu[1-4],node[001-008]"),
            (&["@all"], &["@h100"], "gpu[1-4]"),
            (&["node[003-005],@canary"], &["node004"], "gpu1,node[001-003,005]"),
            (&["@rack=r3"], &["gpu2"], "gpu[1,3-4]"),
            (&["@rack=r[1-3]"], &["@canary"], "gpu[2-4],node[003-008]"),
            (&["@leaf=leaf1", "node001"], &[], "gpu[1-4],node001"),
        ] {
            assert_eq!(select(include, exclude).unwrap(), expected, "{include:?} without {exclude:?}");
        }
    }

    #[test]
    fn unknown_names_are_told_folded_with_the_nearest_known_one() {
        let text = select(&["node[007-011]"], &[]).unwrap_err().to_string();
        assert_eq!(text, "not in the inventory: node[009-011]; did you mean node001?");
        let text = select(&[], &["gpu01"]).unwrap_err().to_string();
        assert_eq!(text, "not in the inventory: gpu01; did you mean gpu1?");
        let text = select(&["@can"], &[]).unwrap_err().to_string();
        assert_eq!(text, "no node is in @can; did you mean @canary?");
        assert!(matches!(select(&[], &["nod001"]), Err(SelectError::Unknown { .. })));
        let text = select(&["@canari"], &[]).unwrap_err().to_string();
        assert_eq!(text, "no node is in @canari; did you mean @canary?");
        let text = select(&["@rack=r4"], &[]).unwrap_err().to_string();
        assert!(text.starts_with("no node is in @rack=r4; did you mean @rack=r"), "{text}");
        assert_eq!(select(&["gpu1"], &["gpu1"]).unwrap_err(), SelectError::Empty);
    }

    #[test]
    fn a_mistake_in_the_second_term_points_into_the_whole_list() {
        let Err(SelectError::List(error)) = select(&["gpu1,node[001-]"], &[]) else { panic!("not a list error") };
        assert_eq!(error.column, 15);
        assert!(error.to_string().contains("  gpu1,node[001-]\n                ^"));
    }

    #[test]
    fn a_file_of_nodes_may_have_comments_lists_and_groups() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("nodes.txt");
        std::fs::write(&file, "# bad ones\nnode[001-002], # two\n\n@rack=r3\r\nnode003 node004\n").unwrap();
        let term = format!("^{}", file.display());
        assert_eq!(select(&[&format!("{term},node008")], &["gpu[2-4]"]).unwrap(), "gpu1,node[001-004,008]");
        std::fs::write(&file, "node001\nnode009\n").unwrap();
        let Err(SelectError::File { line, message, .. }) = select(&[&term], &[]) else { panic!("accepted") };
        assert_eq!(line, 2);
        assert!(message.contains("node009"), "{message}");
        std::fs::write(&file, "^other\n").unwrap();
        assert!(select(&[&term], &[]).unwrap_err().to_string().contains(":1: a file of nodes cannot"));
        assert!(select(&["^/nonexistent/x"], &[]).unwrap_err().to_string().contains("cannot read"));
    }
}
