//! How each role looks: colour means judgement, and there is always a word or a glyph beside it.

use muster_analysis::service::Service;
use ratatui::style::{Color, Modifier, Style};
use ratatui::symbols::border;

use crate::judgement::State;
use crate::snapshot::LinkKind;

/// What an ink is for. Widgets name roles and never colours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// Data.
    Text,
    /// Labels, units, stale values.
    Dim,
    /// Column headers and titles.
    Head,
    /// Worth a look.
    Attention,
    /// Act on it.
    Act,
    /// Just recovered.
    Good,
    /// What may be pressed, or is sorted by.
    Key,
    /// Replay and other modes that are not live.
    Mode,
    /// The row under the cursor.
    Selected,
    /// The band of the peers in a chart.
    Peers,
    /// The criterion in a chart.
    Criterion,
    /// The selected node in a chart.
    Focus,
}

/// Styles and glyphs of this terminal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Theme {
    color: bool,
    ascii: bool,
}

impl Theme {
    /// A theme with or without colours, in Unicode or plain ASCII.
    #[must_use]
    pub const fn new(color: bool, ascii: bool) -> Self {
        Self { color, ascii }
    }

    /// Whether only ASCII may be drawn.
    #[must_use]
    pub const fn is_ascii(&self) -> bool {
        self.ascii
    }

    /// The style of a role.
    #[must_use]
    pub const fn style(&self, role: Role) -> Style {
        let plain = Style::new();
        match role {
            Role::Text => plain,
            Role::Dim | Role::Peers => plain.add_modifier(Modifier::DIM),
            Role::Head => plain.add_modifier(Modifier::BOLD),
            // Dim in reverse is hard to read.
            Role::Selected => {
                plain.add_modifier(Modifier::BOLD).add_modifier(Modifier::REVERSED).remove_modifier(Modifier::DIM)
            }
            Role::Criterion => plain.add_modifier(Modifier::BOLD),
            Role::Attention => self.ink(Color::Yellow),
            Role::Act => self.ink(Color::Red).add_modifier(Modifier::BOLD),
            Role::Good => self.ink(Color::Green),
            Role::Key | Role::Focus => self.ink(Color::Cyan),
            Role::Mode => self.ink(Color::Magenta),
        }
    }

    const fn ink(&self, color: Color) -> Style {
        if self.color { Style::new().fg(color) } else { Style::new() }
    }

    /// The role of a state. Passing is calm.
    #[must_use]
    pub const fn state_role(state: State) -> Role {
        match state {
            State::Fail => Role::Act,
            State::Warn => Role::Attention,
            State::Unknown | State::Pass => Role::Text,
            State::NotRun | State::NotApplicable => Role::Dim,
        }
    }

    /// The role of a link state.
    #[must_use]
    pub const fn link_role(kind: LinkKind) -> Role {
        match kind {
            // Not reached is not accused: red stays with verdicts.
            LinkKind::Failed | LinkKind::Waiting => Role::Attention,
            LinkKind::Connecting | LinkKind::Live => Role::Text,
            LinkKind::Idle | LinkKind::Closed => Role::Dim,
        }
    }

    /// The role of whose hands a node is in.
    #[must_use]
    pub const fn service_role(state: Service) -> Role {
        match state {
            Service::Defective => Role::Act,
            Service::Suspect | Service::InRepair => Role::Attention,
            Service::HotBuffer => Role::Text,
            Service::InService => Role::Dim,
        }
    }

    /// One-cell glyph of a state.
    #[must_use]
    pub const fn glyph(&self, state: State) -> &'static str {
        match (state, self.ascii) {
            (State::Pass, false) => "✓",
            (State::Pass, true) => "+",
            (State::Warn, _) => "!",
            (State::Fail, false) => "✗",
            (State::Fail, true) => "x",
            (State::Unknown, _) => "?",
            (State::NotRun, false) => "·",
            (State::NotRun, true) => ".",
            (State::NotApplicable, _) => "-",
        }
    }

    /// Whether a cell may be two places of a map, one above the other, told apart by colour.
    #[must_use]
    pub const fn has_half_cells(&self) -> bool {
        self.color && !self.ascii
    }

    /// Ink of a place of a map by its rank, 0 the worst of seven. After cividis (Nuñez et al. 2018): lightness rises
    /// from usual to bad, so that it reads with any colour vision, and in grey.
    #[must_use]
    pub const fn heat(&self, rank: usize) -> Color {
        // xterm's 256 colours.
        const INKS: [u8; 7] = [231, 226, 185, 143, 103, 61, 18];
        if !self.color || rank >= INKS.len() { Color::Reset } else { Color::Indexed(INKS[rank]) }
    }

    /// One-cell glyph of a place of a map by its rank; more ink is worse.
    #[must_use]
    pub const fn heat_glyph(&self, rank: usize) -> &'static str {
        match rank {
            0 => "X",
            1 => "@",
            2 => "#",
            3 => "*",
            4 => "+",
            5 => "-",
            6 => ".",
            _ => " ",
        }
    }

    /// The first of two texts where Unicode may be drawn, else the second.
    #[must_use]
    pub const fn pick(&self, unicode: &'static str, ascii: &'static str) -> &'static str {
        if self.ascii { ascii } else { unicode }
    }

    /// What stands for a value that is absent.
    #[must_use]
    pub const fn absent(&self) -> &'static str {
        self.pick("–", "-")
    }

    /// Lines around the body.
    #[must_use]
    pub const fn border(&self) -> border::Set<'static> {
        const ASCII: border::Set<'static> = border::Set {
            top_left: "+",
            top_right: "+",
            bottom_left: "+",
            bottom_right: "+",
            vertical_left: "|",
            vertical_right: "|",
            horizontal_top: "-",
            horizontal_bottom: "-",
        };
        if self.ascii { ASCII } else { border::PLAIN }
    }

    /// A bar of `width` cells filled to `share`.
    #[must_use]
    pub fn bar(&self, share: f64, width: usize) -> String {
        let (full, rest) = if self.ascii { ("#", ".") } else { ("━", "╌") };
        let share = if share.is_finite() { share.clamp(0.0, 1.0) } else { 0.0 };
        // `share` is within 0..=1, so the product is a small non-negative number.
        let filled = (share * width as f64).round() as usize;
        full.repeat(filled) + &rest.repeat(width.saturating_sub(filled))
    }
}
