//! The database as subcommands use it: opened for writing or reading, and what of it cannot be read is said.

use std::ops::Deref;

use anyhow::anyhow;
use muster_store::{Db, Store};

use crate::config::Config;
use crate::exit::{Code, IO, Problem};
use crate::out;

/// The database as a subcommand reads it: what could not be read is told at the latest when it is let go.
#[derive(Debug)]
pub struct Open(Db);

impl Deref for Open {
    type Target = dyn Store;

    fn deref(&self) -> &Self::Target {
        &self.0
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        damaged(&self.0);
    }
}

/// Opens the database for writing.
///
/// # Errors
/// When another console holds it, or the disk refuses.
pub fn write(config: &Config) -> Result<Db, Problem> {
    let db = own(config)?;
    damaged(&db);
    Ok(db)
}

/// The same for who tells of damage by other means than standard error.
///
/// # Errors
/// As for [`write()`].
pub fn own(config: &Config) -> Result<Db, Problem> {
    Db::open(&config.db.value, &muster_store::Options::default()).code(IO)
}

/// Opens the database for reading, beside a writer if there is one.
///
/// # Errors
/// When there is none, or it cannot be read.
pub fn read(config: &Config) -> Result<Open, Problem> {
    Ok(Open(Db::open_read_only(&config.db.value).code(IO)?))
}

/// Says on standard error what of the database could not be read since it was last asked; whether there was anything.
pub fn damaged(store: &dyn Store) -> bool {
    let notices = store.notices();
    for notice in &notices {
        out::note(format_args!("database: {notice}"));
    }
    !notices.is_empty()
}

/// Says what of the database could not be read, and makes it an error if `strict`.
///
/// # Errors
/// If `strict` and there was anything.
pub fn sound(store: &dyn Store, strict: bool) -> Result<(), Problem> {
    if damaged(store) && strict {
        return Err(Problem {
            code: IO,
            error: anyhow!("the database is damaged, and --strict takes nothing less than all of it"),
        });
    }
    Ok(())
}
