//! What do the files say that the operator names, and how is a matrix written as one?

use std::collections::{BTreeMap, HashMap};
use std::path::Path;

use anyhow::{Context, anyhow, bail};
use muster_analysis::network::{Matrix, Topology, topology};
use muster_fleet::hostlist;

use crate::exit::{CONFIG, Code, IO, Problem};

pub(super) fn read(file: &Path) -> Result<String, Problem> {
    std::fs::read_to_string(file).with_context(|| file.display().to_string()).code(CONFIG)
}

/// The topology in a file of any known form.
pub(in crate::cli) fn topology(file: &Path) -> Result<Topology, Problem> {
    parse(&read(file)?).with_context(|| file.display().to_string()).code(CONFIG)
}

/// The forms are told apart by words that only one of them has.
fn parse(text: &str) -> anyhow::Result<Topology> {
    if text.lines().any(|line| line.trim_start().to_ascii_lowercase().starts_with("switchname=")) {
        return Ok(topology::slurm(text, hostlist::expand)?);
    }
    if text.contains("vendid=") || text.contains("switchguid=") {
        let fabric = topology::ibnetdiscover(text)?;
        return fabric.topology(|hca| Some(hca.host().to_owned())).map_err(|why| anyhow!(why));
    }
    Ok(topology::from_csv(text)?)
}

/// Uplinks by sender and receiver.
pub(super) fn routes(file: &Path) -> Result<HashMap<(String, String), String>, Problem> {
    parse_routes(&read(file)?).with_context(|| file.display().to_string()).code(CONFIG)
}

fn parse_routes(text: &str) -> anyhow::Result<HashMap<(String, String), String>> {
    let mut reader = csv::ReaderBuilder::new().trim(csv::Trim::All).from_reader(text.as_bytes());
    let header = reader.headers()?.clone();
    let column = |name: &str| {
        header
            .iter()
            .position(|h| h.eq_ignore_ascii_case(name))
            .with_context(|| format!("the header has no column {name}"))
    };
    let columns = [column("src")?, column("dst")?, column("up")?];
    let mut out = HashMap::new();
    for row in reader.records() {
        let row = row?;
        let line = row.position().map_or(0, csv::Position::line);
        let [src, dst, up] = columns.map(|at| row.get(at).unwrap_or_default().to_owned());
        if src.is_empty() || dst.is_empty() {
            bail!("line {line}: expected src,dst,up");
        }
        if !up.is_empty() {
            out.insert((src, dst), up);
        }
    }
    Ok(out)
}

/// Rows that `--from` reads back; a failed visit has an empty value.
pub(super) fn csv_text(matrices: &BTreeMap<String, Matrix>) -> Result<String, Problem> {
    let mut writer = csv::Writer::from_writer(Vec::new());
    writer.write_record(["src", "dst", "metric", "value", "up"]).code(IO)?;
    for (metric, matrix) in matrices {
        let name = |node: u32| matrix.endpoints()[node as usize].as_str();
        for (at, cell) in matrix.cells().iter().enumerate() {
            let up = matrix.up(at).unwrap_or_default();
            let values: Vec<String> = matrix.values(at).iter().map(f32::to_string).collect();
            let failed = [String::new()];
            for value in if values.is_empty() { &failed[..] } else { &values } {
                writer.write_record([name(cell.src), name(cell.dst), metric, value, up]).code(IO)?;
            }
        }
    }
    text(writer)
}

/// When each pair was measured.
pub(super) fn visits_text(visits: &[[String; 7]]) -> Result<String, Problem> {
    let mut writer = csv::Writer::from_writer(Vec::new());
    writer.write_record(["src", "dst", "round", "begin_ms", "end_ms", "clock_error_ms", "outcome"]).code(IO)?;
    visits.iter().try_for_each(|visit| writer.write_record(visit)).code(IO)?;
    text(writer)
}

fn text(writer: csv::Writer<Vec<u8>>) -> Result<String, Problem> {
    let bytes = writer.into_inner().map_err(|e| anyhow!("{e}")).code(IO)?;
    String::from_utf8(bytes).code(IO)
}

#[cfg(test)]
mod tests {
    use muster_analysis::network::read_matrix;
    use muster_wire::Direction;

    use super::*;

    #[test]
    fn a_matrix_written_is_read_back() {
        let mut matrix = Matrix::new("throughput", Direction::HigherIsBetter);
        matrix.push_named("a", "b", &[1.5e9, 2.25e9], Some("l1-s1"));
        matrix.push_named("b", "a", &[], None);
        let text = csv_text(&BTreeMap::from([("throughput".to_owned(), matrix)])).unwrap();
        let back = &read_matrix(&text, |_| Direction::HigherIsBetter).unwrap()["throughput"];
        assert_eq!((back.values(0), back.values(1)), (&[1.5e9_f32, 2.25e9][..], &[][..]));
        assert_eq!((back.up(0), back.up(1)), (Some("l1-s1"), None));
    }

    #[test]
    fn routes_name_their_line() {
        let routes = parse_routes("src,dst,up\na,b,l1-s1\nb,a,\n").unwrap();
        assert_eq!(routes.get(&("a".into(), "b".into())).map(String::as_str), Some("l1-s1"));
        assert_eq!(routes.len(), 1);
        assert_eq!(parse_routes("src,dst,up\na,b,x\n,b,x\n").unwrap_err().to_string(), "line 3: expected src,dst,up");
        assert_eq!(parse_routes("src,dst\n").unwrap_err().to_string(), "the header has no column up");
    }
}
