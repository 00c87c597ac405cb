//! Settles how a damaged log file becomes sound again: its whole frames stay, and what else was in it is moved aside.

use std::fs::{self, File};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::Path;

use crate::error::failed;
use crate::frame::{Damage, Piece, Span, Start, header, scan, start};
use crate::log::sync_dir;
use crate::{StoreError, place, repair};

/// Moves what is damaged in any log file of `dir` to `damaged/`. Needs the writer's lock, and a new index after it.
pub(crate) fn move_aside(dir: &Path, said: &mut Vec<String>) -> Result<(), StoreError> {
    for path in place::logs(dir)? {
        let file = File::open(&path).map_err(failed("open", &path))?;
        if matches!(start(&file).map_err(failed("read", &path))?, Start::Newer(_)) {
            continue;
        }
        let (mut whole, mut damaged) = (Vec::new(), Vec::new());
        scan(&path, 0, &mut |piece| match piece {
            Piece::Entry(span, _) => whole.push(span),
            Piece::Damage(damage) => damaged.push(damage),
        })
        .map_err(failed("read", &path))?;
        // Opening cuts off what a crash left at the end, and removes a file without anything else.
        if damaged.iter().any(|damage| !damage.tail) {
            mend(dir, &path, &whole, &damaged).map_err(failed("mend", &path))?;
            said.extend(damaged.iter().map(|damage| told(dir, &path, damage)));
        }
    }
    Ok(())
}

fn told(dir: &Path, path: &Path, damage: &Damage) -> String {
    format!("{}: {damage}; moved to {}", path.display(), place::quarantine(dir, path, damage.offset).display())
}

fn mend(dir: &Path, path: &Path, whole: &[Span], damaged: &[Damage]) -> io::Result<()> {
    let mut old = File::open(path)?;
    fs::create_dir_all(place::damaged(dir))?;
    for damage in damaged {
        let mut aside = File::create(place::quarantine(dir, path, damage.offset))?;
        copy(&mut old, (damage.offset, damage.bytes), &mut aside)?;
        aside.sync_all()?;
    }
    sync_dir(&place::damaged(dir))?;
    let new = path.with_extension("new");
    let mut file = File::create(&new)?;
    file.write_all(&header())?;
    for span in whole {
        copy(&mut old, (span.offset, span.length), &mut file)?;
    }
    file.sync_all()?;
    // What lies beside a run file says where its frames were.
    repair::remove(&path.with_extension("contents"))?;
    fs::rename(&new, path)?;
    path.parent().map_or(Ok(()), sync_dir)
}

fn copy(from: &mut File, (offset, bytes): (u64, u64), to: &mut File) -> io::Result<()> {
    from.seek(SeekFrom::Start(offset))?;
    io::copy(&mut from.take(bytes), to).map(drop)
}
