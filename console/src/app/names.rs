//! Which nodes the console is of: those that it was given, or, without an inventory, whoever was ever measured.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use muster_store::{Store, StoreError};

/// Their names, in order; clones share them.
#[derive(Clone, Debug)]
pub(super) struct Names {
    all: Arc<Mutex<Vec<String>>>,
    /// Whether those who are measured later are among them.
    open: bool,
}

impl Names {
    /// These and no others.
    pub(super) fn only(all: Vec<String>) -> Self {
        Self { all: Arc::new(Mutex::new(all)), open: false }
    }

    /// These, and whoever is measured from now on.
    pub(super) fn and_later(self) -> Self {
        Self { open: true, ..self }
    }

    fn lock(&self) -> MutexGuard<'_, Vec<String>> {
        // A panic elsewhere leaves a list that is still a list.
        self.all.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// All of them.
    pub(super) fn all(&self) -> Vec<String> {
        self.lock().clone()
    }

    /// Adds those that `store` knows and this does not, behind the others; whether there were any.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub(super) fn join(&self, store: &dyn Store) -> Result<bool, StoreError> {
        if !self.open {
            return Ok(false);
        }
        let seen = store.nodes()?;
        let mut all = self.lock();
        let known: HashSet<&String> = all.iter().collect();
        let new: Vec<String> = seen.into_iter().map(|node| node.name).filter(|name| !known.contains(name)).collect();
        let any = !new.is_empty();
        all.extend(new);
        Ok(any)
    }
}
