//! The database as subcommands use it: opened for writing or reading, and what of it cannot be read is said.

use anyhow::anyhow;
use muster_store::{Db, Store};

use crate::config::Config;
use crate::exit::{Code, IO, Problem};

/// Opens the database for writing.
///
/// # Errors
/// When another console holds it, or the disk refuses.
pub fn write(config: &Config) -> Result<Db, Problem> {
    let db = Db::open(&config.db.value, &muster_store::Options::default()).code(IO)?;
    for repair in &db.opened().repairs {
        eprintln!("database: {repair}");
    }
    Ok(db)
}

/// Opens the database for reading, beside a writer if there is one.
///
/// # Errors
/// When there is none, or it cannot be read.
pub fn read(config: &Config) -> Result<Box<dyn Store>, Problem> {
    let db = Db::open_read_only(&config.db.value).code(IO)?;
    Ok(Box::new(db))
}

/// Says on standard error what of the database could not be read since it was last asked; whether there was anything.
pub fn damaged(store: &dyn Store) -> bool {
    let notices = store.notices();
    for notice in &notices {
        eprintln!("database: {notice}");
    }
    if !notices.is_empty() {
        eprintln!("database: what was there is left out; `muster db check` lists all damage");
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
