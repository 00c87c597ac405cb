//! Which lines are shown, and how far up the reader is.

use log::LevelFilter;
use tui_logger::TuiWidgetState;

/// Levels that `+` and `-` step through.
pub(crate) const LEVELS: [LevelFilter; 4] =
    [LevelFilter::Error, LevelFilter::Warn, LevelFilter::Info, LevelFilter::Debug];

/// State of the log's screen.
pub(crate) struct State {
    pub(crate) level: LevelFilter,
    /// Whether the reader left the end of the log.
    pub(crate) scrolled: bool,
    /// Kept by the widget: it moves while lines arrive.
    pub(crate) widget: TuiWidgetState,
}

impl Default for State {
    fn default() -> Self {
        let level = LevelFilter::Info;
        let widget = TuiWidgetState::new().set_default_display_level(level);
        Self { level, scrolled: false, widget }
    }
}

impl State {
    /// Whether no line is of a level that is not shown.
    pub(crate) fn is_last(&self) -> bool {
        LEVELS.last() == Some(&self.level)
    }

    /// Shows lines down to `level` from now on, from the end of the log.
    pub(crate) fn show(&mut self, level: LevelFilter) {
        self.level = level;
        self.scrolled = false;
        self.widget = TuiWidgetState::new().set_default_display_level(level);
    }
}

impl std::fmt::Debug for State {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("State").field("level", &self.level).field("scrolled", &self.scrolled).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn debug_is_the_last_level() {
        let mut state = State::default();
        assert!(!state.is_last());
        state.show(LevelFilter::Debug);
        assert!(state.is_last());
    }
}
