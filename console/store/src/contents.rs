//! Settles how a reader learns what a run file holds without reading all of it: its contents are kept beside it when the run
//! ends.
//!
//! Like the index they are a convenience, made of the log file and thrown away at will. They are believed where the log
//! file still has, at the place of the last record, the frame that they were made of, and where all that lies between the records
//! is whole; the records are checked when they are read. Whatever was written behind is read.

use std::fs;
use std::io;
use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::frame::{FrameHead, HEADER, Span, head_at, only_whole};
use crate::index::{ResultRow, RunRow};
use crate::packed::{pack, read, unpack, write};
use crate::place;

/// Changes whenever the layout of a row does; other contents are not read.
const FORMAT: u32 = 1;
const LEVEL: i32 = 3;
/// Largest contents before compression, bytes: ten million results.
const MOST: usize = 2 << 30;

/// What a run file holds.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Contents {
    format: u32,
    pub(crate) run: RunRow,
    pub(crate) rows: Vec<ResultRow>,
    /// Length and checksum of the frame of the last record.
    last: FrameHead,
}

impl Contents {
    /// Keeps what the file of run `row` holds. A reader does without them, so that nothing is lost where this fails.
    pub(crate) fn keep(dir: &Path, row: RunRow, rows: Vec<ResultRow>) -> io::Result<()> {
        let Some(last) = last(&rows) else { return Ok(()) };
        let last = head_at(&fs::File::open(place::run_file(dir, &row.run.id))?, last)?;
        let path = place::contents(dir, &row.run.id);
        let contents = Self { format: FORMAT, run: row, rows, last };
        write(&path, "contents", &[&pack(&contents, LEVEL)?])
    }

    /// The contents of the file of run `id`, of which there are `len` bytes; `None` where there are none that fit.
    pub(crate) fn of(dir: &Path, id: &str, len: u64) -> Option<Self> {
        let contents: Self = unpack(&read(&place::contents(dir, id))?, MOST)?;
        let file = fs::File::open(place::run_file(dir, id)).ok()?;
        let fits = contents.format == FORMAT
            && contents.run.run.id == id
            && contents.run.upto <= len
            && head_at(&file, last(&contents.rows)?).ok()? == contents.last
            && contents.whole_beside(&file).ok()?;
        fits.then_some(contents)
    }

    /// Whether what is no record of these is whole.
    fn whole_beside(&self, file: &fs::File) -> io::Result<bool> {
        let mut spans: Vec<Span> = self.rows.iter().map(ResultRow::span).collect();
        spans.sort_unstable_by_key(|span| span.offset);
        let mut at = HEADER;
        for span in spans {
            if span.offset < at || !only_whole(file, at, span.offset)? {
                return Ok(false);
            }
            at = span.offset + span.length;
        }
        only_whole(file, at, self.run.upto)
    }
}

/// Where the last record lies.
fn last(rows: &[ResultRow]) -> Option<u64> {
    rows.iter().map(|row| row.span().offset).max()
}

#[cfg(test)]
mod tests {
    use muster_run::{Record, RunState};
    use muster_wire::Outcome;

    use super::*;
    use crate::{Db, Options, Store};

    /// A closed database with one finished run of three records.
    fn filled(dir: &Path) -> u64 {
        let run = crate::made::run("r");
        let record = |node: &str| Record {
            run: "r".to_owned(),
            node: node.to_owned(),
            work: "disk".to_owned(),
            outcome: Outcome::Done,
            at_ms: 1,
            elapsed_ns: 2,
            series: Vec::new(),
            facts: Vec::new(),
        };
        let mut db = Db::open(dir, &Options::default()).unwrap();
        db.begin(&run).unwrap();
        db.append_many(&["n1", "n2", "n3"].map(record)).unwrap();
        db.end("r", RunState::Finished, 2).unwrap();
        fs::metadata(place::run_file(dir, "r")).unwrap().len()
    }

    #[test]
    fn contents_are_believed_where_all_that_they_say_fits_the_file() {
        let home = tempfile::tempdir().unwrap();
        let dir = home.path();
        let len = filled(dir);
        let path = place::contents(dir, "r");
        let believed = |change: &dyn Fn(&mut Contents)| {
            let mut contents = Contents::of(dir, "r", len).unwrap();
            let kept = fs::read(&path).unwrap();
            change(&mut contents);
            write(&path, "contents", &[&pack(&contents, LEVEL).unwrap()]).unwrap();
            let found = Contents::of(dir, "r", len);
            fs::write(&path, kept).unwrap();
            found.is_some()
        };
        assert!(believed(&|_| ()));
        assert!(believed(&|contents| contents.rows.reverse()), "in whatever order");
        assert!(!believed(&|contents| contents.format += 1));
        assert!(!believed(&|contents| contents.run.run.id.push('2')));
        assert!(!believed(&|contents| contents.run.upto += 1), "the file is shorter");
        assert!(!believed(&|contents| contents.run.upto -= 1), "a frame ends elsewhere");
        assert!(!believed(&|contents| contents.last[5] ^= 1), "another record is the last");
        assert!(!believed(&|contents| contents.rows.clear()));
        let moved = |contents: &mut Contents, by: i64| {
            let (summary, span) = (contents.rows[1].summary.clone(), contents.rows[1].span());
            let offset = span.offset.checked_add_signed(by).unwrap();
            contents.rows[1] = ResultRow::new(summary, Span { offset, ..span });
        };
        assert!(!believed(&|contents| moved(contents, -3)) && !believed(&|contents| moved(contents, 3)));
        // What is no record must be whole; it need not be listed.
        assert!(believed(&|contents| drop(contents.rows.remove(1))));
        assert!(Contents::of(dir, "r", len + 9).is_some() && Contents::of(dir, "r", len - 1).is_none());
    }
}
