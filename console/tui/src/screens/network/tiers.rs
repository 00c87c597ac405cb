//! What is usual at each hop distance: a CDF each, and its numbers.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::text::Span;
use ratatui::widgets::Widget;

use crate::screens::network::pair;
use crate::snapshot::Network;
use crate::text::counted;
use crate::theme::Role;
use crate::ui::Ui;
use crate::widgets::{Line, Plot, block, put, put_spans};

/// Letters of the tiers, nearest first.
const TAGS: [char; 8] = ['A', 'B', 'C', 'D', 'E', 'F', 'G', 'H'];
/// Inks of the tiers; the letters tell them apart without.
const ROLES: [Role; 4] = [Role::Head, Role::Focus, Role::Mode, Role::Text];

/// Draws the pane.
pub(crate) fn draw(ui: &Ui, network: &Network, buffer: &mut Buffer, area: Rect) {
    let theme = &ui.theme;
    let block = block(theme, area, "By hop distance", "");
    let inner = block.inner(area);
    block.render(area, buffer);
    let inner = Rect { x: inner.x + 1, width: inner.width.saturating_sub(2), ..inner };
    if network.tiers.is_empty() {
        return put(buffer, (inner.x, inner.y), inner.width, "Too few pairs so far.", theme.style(Role::Dim));
    }
    let tiers = network.tiers.iter().zip(TAGS).zip(ROLES.into_iter().cycle());
    for (y, ((tier, tag), role)) in (inner.y..inner.bottom()).zip(tiers.clone()) {
        let hops = tier.hops.map_or("unknown".to_owned(), |h| counted(h.into(), "hop", "hops"));
        let text = format!(
            "{hops}  {} {}{:.1} %  {} pairs",
            pair::show(network, tier.usual),
            theme.pick("±", "+-"),
            tier.spread * 100.0,
            tier.pairs
        );
        let line = [Span::styled(format!("{tag} "), theme.style(role)), Span::raw(text)];
        put_spans(buffer, (inner.x, y), inner.width, &line);
    }
    let used = u16::try_from(network.tiers.len().min(TAGS.len())).unwrap_or(0);
    let rest = Rect { y: inner.y + used, height: inner.height.saturating_sub(used), ..inner };
    let lines = tiers.map(|((t, tag), role)| Line { points: &t.curve, style: theme.style(role), tag }).collect();
    if rest.height >= 5 {
        Plot { theme, show: &|x| pair::show(network, x), start: 0.0, band: None, lines }.draw(buffer, rest);
    }
}
