//! What do `node,leaf[,aggregate…]` rows say, and rows like those of Alibaba's Lingjun data set (`ip,DSW,PSW,ASW`)?

use super::tree::Builder;
use super::{MAX_NODES, Source, Topology};
use crate::network::Malformed;
use crate::network::rows::{fields, rows};

/// Header words that name the outermost switch; such files list switches from the core to the leaf.
const OUTERMOST: [&str; 3] = ["dsw", "core", "spine"];
/// Header words that name the node's column.
const NODE: [&str; 5] = ["node", "host", "hostname", "ip", "name"];

/// Reads CSV rows. With a header whose last column is `ASW` or `leaf` and whose second is `DSW`, `core` or `spine`
/// (Lingjun: `ip,DSW,PSW,ASW`) switches run from the core to the leaf; in all other files from the leaf outwards. A
/// header is recognised by its first word (`node`, `host`, `hostname`, `ip`, `name`); lines starting with `#` are
/// skipped.
///
/// # Errors
/// Names the line: a row without a leaf, a node named twice, broken CSV, more than [`MAX_NODES`] nodes, no node.
pub fn from_csv(text: &str) -> Result<Topology, Malformed> {
    let mut tree = Builder::default();
    let mut inwards = false;
    let mut first = true;
    for (line, row) in rows(text) {
        let fields = fields(row).map_err(|what| Malformed::new(line, what))?;
        let fields: Vec<&str> = fields.iter().map(AsRef::as_ref).collect();
        if std::mem::take(&mut first) && is_header(&fields) {
            inwards = runs_inwards(&fields);
            continue;
        }
        add_row(&mut tree, &fields, inwards).map_err(|what| Malformed::new(line, what))?;
    }
    if tree.len() == 0 {
        return Err(Malformed::new(text.lines().count().max(1), "no node,leaf row in the whole text"));
    }
    Ok(tree.finish(Source::Csv))
}

fn is_header(fields: &[&str]) -> bool {
    fields.len() > 1 && NODE.contains(&fields[0].to_ascii_lowercase().as_str())
}

fn runs_inwards(fields: &[&str]) -> bool {
    fields.len() > 2 && OUTERMOST.contains(&fields[1].to_ascii_lowercase().as_str())
}

fn add_row(tree: &mut Builder, fields: &[&str], inwards: bool) -> Result<(), String> {
    let mut path: Vec<&str> = fields[1..].iter().copied().filter(|f| !f.is_empty()).collect();
    if !inwards {
        path.reverse();
    }
    if fields[0].is_empty() || path.is_empty() {
        return Err("expected node,leaf[,aggregate…]".to_owned());
    }
    add(tree, fields[0], &path)
}

fn add(tree: &mut Builder, node: &str, path: &[&str]) -> Result<(), String> {
    if tree.len() >= MAX_NODES {
        return Err(format!("more than {MAX_NODES} nodes"));
    }
    if tree.add(node, path) { Ok(()) } else { Err(format!("node {node} is there twice")) }
}

/// From labels of the inventory: `(node, [leaf, aggregate, …])`, leaf first. A node without a label shares the leaf
/// `unlabelled` with others like it.
///
/// # Errors
/// A node named twice or more than [`MAX_NODES`]; the line is the position in the list, from 1.
pub fn from_labels<S: AsRef<str>>(nodes: &[(S, Vec<S>)]) -> Result<Topology, Malformed> {
    let mut tree = Builder::default();
    for (position, (node, labels)) in nodes.iter().enumerate() {
        let mut path: Vec<&str> = labels.iter().rev().map(AsRef::as_ref).collect();
        if path.is_empty() {
            path.push("unlabelled");
        }
        add(&mut tree, node.as_ref(), &path).map_err(|what| Malformed::new(position + 1, what))?;
    }
    Ok(tree.finish(Source::Labels))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn distances_are_links_on_the_shortest_path() {
        let topology = from_csv("node,leaf,pod\na,l1,p1\nb,l1,p1\nc,l2,p1\nd,l3,p2\n").unwrap();
        let hops = |a: &str, b: &str| topology.hops(topology.find(a).unwrap(), topology.find(b).unwrap()).unwrap();
        assert_eq!([hops("a", "a"), hops("a", "b"), hops("a", "c"), hops("a", "d")], [0, 2, 4, 6]);
        assert_eq!(topology.tiers(), [2, 4, 6]);
        assert_eq!(topology.above(topology.leaf(3)), ["p2"]);
    }

    #[test]
    fn lingjun_rows_run_from_the_core_inwards_and_leaf_names_repeat_between_pods() {
        let topology = from_csv("ip,DSW,PSW,ASW\na,G6,P10,S14\nb,G6,P12,S14\nc,G6,P10,S14\n").unwrap();
        assert_eq!(topology.leaves(), ["P10/S14", "P12/S14"]);
        assert_eq!((topology.hops(0, 1), topology.hops(0, 2)), (Some(6), Some(2)));
    }

    #[test]
    fn rows_without_a_header_or_of_uneven_depth_are_read() {
        let topology = from_csv("a,l1\nb,l2,p1\n\"c\",l2,p1\n").unwrap();
        // l1 is a root itself, l2 hangs one below another root: 1 link up from l2, then 2 across.
        assert_eq!((topology.hops(0, 1), topology.hops(1, 2)), (Some(5), Some(2)));
    }

    #[test]
    fn mistakes_name_their_line() {
        let error = |text: &str| from_csv(text).unwrap_err().to_string();
        assert_eq!(error("node,leaf\na,l1\nb,\n"), "line 3: expected node,leaf[,aggregate…]");
        assert_eq!(error("node,leaf\na,l1\n\n# x\na,l2\n"), "line 5: node a is there twice");
        assert!(error("").contains("no node,leaf row"));
        let labels = [("a", vec!["l"]), ("a", vec!["l"])];
        assert_eq!(from_labels(&labels).unwrap_err().line, 2);
    }

    proptest! {
        #[test]
        fn no_text_makes_it_panic(text in "([a-c,\"# \n]|node,leaf|\\PC){0,60}") {
            let _ = from_csv(&text);
        }

        #[test]
        fn hops_are_symmetric_and_ultrametric(rows in proptest::collection::vec((0u8..4, 0u8..3), 2..12)) {
            let text: String =
                rows.iter().enumerate().map(|(i, (leaf, pod))| format!("n{i},l{leaf},p{pod}\n")).collect();
            let t = from_csv(&text).unwrap();
            let n = t.len() as u32;
            for (a, b, c) in (0..n).flat_map(|a| (0..n).flat_map(move |b| (0..n).map(move |c| (a, b, c)))) {
                prop_assert_eq!(t.hops(a, b), t.hops(b, a));
                if a != b && b != c && a != c {
                    prop_assert!(t.hops(a, c) <= t.hops(a, b).max(t.hops(b, c)));
                }
            }
        }
    }
}
