//! What all charts share: the colours of their parts, fonts, and how a drawing becomes the inside of an `svg` element.

use muster_wire::Unit;
use plotters::coord::Shift;
use plotters::prelude::*;

pub(super) type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;
pub(super) type Drawn = Result<(), Box<dyn std::error::Error>>;

// The style sheet knows these colours by their values (templates/style.css) and replaces them where it is dark.
pub(super) const INK: RGBColor = RGBColor(0x45, 0x4F, 0x5C);
pub(super) const RULE: RGBColor = RGBColor(0xD9, 0xDE, 0xE4);
pub(super) const BAND: RGBColor = RGBColor(0xB9, 0xCF, 0xE6);
pub(super) const USUAL: RGBColor = RGBColor(0x1F, 0x62, 0xA8);
pub(super) const BAD: RGBColor = RGBColor(0xC1, 0x28, 0x1F);
pub(super) const ON_BAD: RGBColor = RGBColor(0xFF, 0xFE, 0xFE);
pub(super) const ALERT: RGBColor = RGBColor(0xFB, 0xE3, 0xE0);

/// Size of letters, as plotters counts it: a fifth larger than it is drawn.
pub(super) const LETTERS: i32 = 17;

/// Draws and gives what belongs inside the `svg` element; nothing where that fails.
pub(super) fn drawn(size: (u32, u32), draw: impl FnOnce(&Area<'_>) -> Drawn) -> String {
    let mut svg = String::new();
    let done = {
        let area = SVGBackend::with_string(&mut svg, size).into_drawing_area();
        draw(&area).and_then(|()| Ok(area.present()?))
    };
    let inside = svg.split_once('>').and_then(|(_, rest)| rest.rsplit_once("</svg>")).map(|(inside, _)| inside);
    match (done, inside) {
        (Ok(()), Some(inside)) => short(inside),
        _ => String::new(),
    }
}

/// Without what browsers take for granted.
fn short(inside: &str) -> String {
    let mut short = inside.to_owned();
    for (long, brief) in [
        (" opacity=\"1\"", ""),
        (" stroke=\"none\"", ""),
        (" stroke-width=\"1\"", ""),
        (" font-family=\"sans-serif\"", ""),
        (" \"/>", "\"/>"),
        (">\n", ">"),
        ("\n<", "<"),
    ] {
        short = short.replace(long, brief);
    }
    short
}

/// The ends of an axis that holds all `values`, at least a twentieth of them wide, so that its labels differ.
pub(super) fn ends(values: impl Iterator<Item = f64>) -> std::ops::Range<f64> {
    let finite = values.filter(|value| value.is_finite());
    let (low, high) = finite.fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), v| (low.min(v), high.max(v)));
    if low > high {
        return 0.0..1.0;
    }
    let least = (low.abs().max(high.abs()) * 0.05).max(1e-12);
    let room = ((least - (high - low)) / 2.0).max((high - low) * 0.04);
    let from = if low >= 0.0 { (low - room).max(0.0) } else { low - room };
    from..high + room
}

/// The label of a value on an axis.
pub(super) fn label(unit: Option<Unit>, value: f64) -> String {
    unit.map_or_else(|| format!("{value:.4}").trim_end_matches('0').trim_end_matches('.').to_owned(), |u| u.show(value))
}

/// A name that fits beside a chart: its end tells nodes apart.
pub(super) fn brief(name: &str) -> String {
    const MOST: usize = 13;
    let name = crate::escape::harmless(name);
    let count = name.chars().count();
    if count <= MOST { name } else { format!("…{}", name.chars().skip(count - MOST + 1).collect::<String>()) }
}
