//! Who is told at once what a person should know?

use std::sync::Arc;

/// Is told at once what a person should know, such as a key that was recorded.
#[derive(Clone)]
pub struct Tell(Arc<dyn Fn(&str) + Send + Sync>);

impl Tell {
    /// Tells `to`.
    pub fn new(to: impl Fn(&str) + Send + Sync + 'static) -> Self {
        Self(Arc::new(to))
    }

    pub(crate) fn say(&self, what: &str) {
        (self.0)(what);
    }
}

impl Default for Tell {
    /// Tells the log.
    fn default() -> Self {
        Self::new(|what| log::info!("{what}"))
    }
}

impl std::fmt::Debug for Tell {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Tell")
    }
}
