//! What does Slurm's topology.conf (plugin `topology/tree`) say?

use std::collections::HashMap;

use super::tree::Builder;
use super::{MAX_NODES, Source, Topology};
use crate::network::Malformed;

/// Deeper trees than this are taken for a cycle.
const MAX_DEPTH: usize = 16;

/// Reads `SwitchName=… Nodes=…` and `SwitchName=… Switches=…` lines (topology.conf(5)); keys in any case, comments
/// after `#`, a backslash continues a line. `expand` turns a host list such as `n[01-16],m3` into names.
///
/// # Errors
/// Names the line: a switch without a name or described twice, a key or host list that cannot be read, a switch under
/// two others or under itself, a node under two leaves, more than [`MAX_NODES`] nodes, no node at all.
pub fn slurm<E: ToString>(text: &str, expand: impl Fn(&str) -> Result<Vec<String>, E>) -> Result<Topology, Malformed> {
    let switches = read(text, &expand)?;
    let parents = parents(&switches)?;
    let mut tree = Builder::default();
    for (at, switch) in switches.iter().enumerate() {
        let path = path(at, &parents, &switches)?;
        for node in &switch.nodes {
            if tree.len() >= MAX_NODES {
                return Err(Malformed::new(switch.line, format!("more than {MAX_NODES} nodes")));
            }
            if !tree.add(node, &path) {
                return Err(Malformed::new(switch.line, format!("node {node} is under two switches")));
            }
        }
    }
    if tree.len() == 0 {
        return Err(Malformed::new(text.lines().count().max(1), "no switch with nodes in the whole text"));
    }
    Ok(tree.finish(Source::Slurm))
}

struct Switch {
    name: String,
    line: usize,
    nodes: Vec<String>,
    below: Vec<String>,
}

fn read<E: ToString>(text: &str, expand: &impl Fn(&str) -> Result<Vec<String>, E>) -> Result<Vec<Switch>, Malformed> {
    let mut switches = Vec::new();
    let mut names = 0;
    for (line, text) in logical_lines(text) {
        let Some(switch) = read_line(line, &text, expand)? else { continue };
        names += switch.nodes.len() + switch.below.len();
        if names > 2 * MAX_NODES {
            return Err(Malformed::new(line, format!("more than {MAX_NODES} names")));
        }
        switches.push(switch);
    }
    Ok(switches)
}

/// Lines without comments, continued ones joined, with the number of their first line.
fn logical_lines(text: &str) -> Vec<(usize, String)> {
    let mut out: Vec<(usize, String)> = Vec::new();
    let mut open = false;
    for (number, line) in text.lines().enumerate() {
        let line = line.split('#').next().unwrap_or("").trim_end();
        let (line, continued) = line.strip_suffix('\\').map_or((line, false), |l| (l, true));
        match out.last_mut() {
            Some((_, before)) if open => {
                before.push(' ');
                before.push_str(line);
            }
            _ => out.push((number + 1, line.to_owned())),
        }
        open = continued;
    }
    out
}

fn read_line<E: ToString>(
    line: usize,
    text: &str,
    expand: &impl Fn(&str) -> Result<Vec<String>, E>,
) -> Result<Option<Switch>, Malformed> {
    let list = |value: &str| expand(value).map_err(|e| Malformed::new(line, e.to_string()));
    let mut switch = Switch { name: String::new(), line, nodes: Vec::new(), below: Vec::new() };
    for word in text.split_whitespace() {
        let Some((key, value)) = word.split_once('=') else {
            return Err(Malformed::new(line, format!("expected KEY=VALUE, not {word}")));
        };
        match key.to_ascii_lowercase().as_str() {
            "switchname" => value.clone_into(&mut switch.name),
            "nodes" => switch.nodes = list(value)?,
            "switches" => switch.below = list(value)?,
            "linkspeed" => {}
            _ => return Err(Malformed::new(line, format!("{key} is no key of a switch line"))),
        }
    }
    match (text.trim().is_empty(), switch.name.is_empty()) {
        (true, _) => Ok(None),
        (false, true) => Err(Malformed::new(line, "a switch line begins with SwitchName=")),
        (false, false) => Ok(Some(switch)),
    }
}

/// Index of the switch above each, if any.
fn parents(switches: &[Switch]) -> Result<Vec<Option<usize>>, Malformed> {
    let mut by_name: HashMap<&str, usize> = HashMap::new();
    for (at, switch) in switches.iter().enumerate() {
        if by_name.insert(&switch.name, at).is_some() {
            return Err(Malformed::new(switch.line, format!("switch {} is described twice", switch.name)));
        }
    }
    let mut above = vec![None; switches.len()];
    for (at, switch) in switches.iter().enumerate() {
        for below in &switch.below {
            // A switch that is only mentioned has no nodes and is of no interest.
            let Some(&child) = by_name.get(below.as_str()) else { continue };
            if above[child].is_some_and(|before| before != at) {
                return Err(Malformed::new(switch.line, format!("switch {below} is under two switches")));
            }
            above[child] = Some(at);
        }
    }
    Ok(above)
}

fn path<'a>(at: usize, parents: &[Option<usize>], switches: &'a [Switch]) -> Result<Vec<&'a str>, Malformed> {
    let up = std::iter::successors(Some(at), |&at| parents[at]);
    let mut path: Vec<&str> = up.take(MAX_DEPTH + 1).map(|at| switches[at].name.as_str()).collect();
    if path.len() > MAX_DEPTH {
        return Err(Malformed::new(switches[at].line, format!("switch {} is under itself", switches[at].name)));
    }
    path.reverse();
    Ok(path)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn commas(list: &str) -> Result<Vec<String>, String> {
        if list.is_empty() { Err("empty list".to_owned()) } else { Ok(list.split(',').map(str::to_owned).collect()) }
    }

    #[test]
    fn three_tiers_are_read_with_comments_and_continued_lines() {
        let text = "# site A\nSwitchName=s1 Nodes=a,b LinkSpeed=100\nswitchname=s2 \\\n  nodes=c\nSwitchName=s3 Nodes=d\n\
                    SwitchName=t1 Switches=s1,s2\nSwitchName=t2 Switches=s3\nSwitchName=u Switches=t1,t2";
        let topology = slurm(text, commas).unwrap();
        assert_eq!((topology.hops(0, 1), topology.hops(0, 2), topology.hops(0, 3)), (Some(2), Some(4), Some(6)));
        assert_eq!(topology.above(0), ["t1", "u"]);
        assert_eq!(topology.source(), Source::Slurm);
    }

    #[test]
    fn mistakes_name_their_line() {
        let error = |text: &str| slurm(text, commas).unwrap_err().to_string();
        assert_eq!(error("\nSwitchName=s1 Nodes="), "line 2: empty list");
        assert_eq!(error("SwitchName=s Nodes=a\nSwitchName=t Nodes=a"), "line 2: node a is under two switches");
        assert_eq!(error("SwitchName=s Nodes=a\nSwitchName=s Nodes=b"), "line 2: switch s is described twice");
        assert_eq!(error("SwitchName=s Nodes=a Switches=s"), "line 1: switch s is under itself");
        assert_eq!(error("BlockName=s Nodes=a"), "line 1: BlockName is no key of a switch line");
        assert!(error("").contains("no switch"));
    }

    proptest! {
        #[test]
        fn no_text_makes_it_panic(text in "(SwitchName=|Nodes=|Switches=|s[1-3]|[a-c,=#\\\\ \n]|\\PC){0,40}") {
            let _ = slurm(&text, commas);
        }
    }
}
