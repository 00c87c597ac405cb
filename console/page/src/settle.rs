//! In which words names are said: every text of a page passes once through whoever replaces names, then lists of names are folded.

use crate::chart::{Course, Curves, Events, Heat, Values};
use crate::model::{Cell, Count, Entry, Fact, Fold, Line, Names, Page, Part, Section, Table};

/// Replaces names in a text.
type Say<'s> = &'s mut dyn FnMut(&str) -> String;
/// Shortens a list of names, as in `n[1-4,7]`.
type Shorten<'s> = &'s dyn Fn(&[&str]) -> String;

impl Page {
    /// Passes every text through `say`, then folds names by `shorten`.
    pub fn settle(&mut self, say: Say<'_>, shorten: Shorten<'_>) {
        let Self { kind: _, title, state: _, counts, undecided: _, facts, notes, sections, program: _ } = self;
        replace(title, say);
        counts.iter_mut().for_each(|Count { state: _, count: _ }| {});
        facts.iter_mut().for_each(|Fact { label: _, value }| replace(value, say));
        notes.iter_mut().for_each(|note| replace(note, say));
        for Section { id: _, title, parts: inner } in sections {
            replace(title, say);
            parts(inner, say, shorten);
        }
    }
}

fn parts(all: &mut [Part], say: Say<'_>, shorten: Shorten<'_>) {
    for part in all {
        match part {
            Part::Text(text) | Part::Code(text) => replace(text, say),
            Part::Names(own) => names(own, say, shorten),
            Part::List(lines) => lines.iter_mut().for_each(|own| line(own, say)),
            Part::Entry(Entry { id: _, state: _, title, names: whose, lines, parts: inner }) => {
                replace(title, say);
                names(whose, say, shorten);
                lines.iter_mut().for_each(|own| line(own, say));
                parts(inner, say, shorten);
            }
            Part::Fold(Fold { title, open: _, parts: inner }) => {
                replace(title, say);
                parts(inner, say, shorten);
            }
            Part::Table(own) => table(own, say, shorten),
            Part::Curves(own) => curves(own, say),
            Part::Values(Values { title, said, caption, unit: _, of, count: _ }) => {
                [title, said, caption].into_iter().for_each(|text| replace(text, say));
                of.iter_mut().for_each(|own| replace(&mut own.name, say));
            }
            Part::Heat(Heat { title, said, caption, names, direction: _, shares: _, block: _, edges: _ }) => {
                [title, said, caption].into_iter().chain(names).for_each(|text| replace(text, say));
            }
            Part::Events(Events { title, said, caption, rows, marks: _, last_step: _ }) => {
                [title, said, caption].into_iter().chain(rows).for_each(|text| replace(text, say));
            }
            Part::Course(Course { title, said, caption, name, moments: _, unit: _, from: _, until: _ }) => {
                [title, said, caption, name].into_iter().for_each(|text| replace(text, say));
            }
        }
    }
}

fn line(Line { state: _, text, next }: &mut Line, say: Say<'_>) {
    replace(text, say);
    replace(next, say);
}

fn table(Table { caption, columns, rows, left_out }: &mut Table, say: Say<'_>, shorten: Shorten<'_>) {
    [caption, left_out].into_iter().for_each(|text| replace(text, say));
    columns.iter_mut().for_each(|column| replace(&mut column.title, say));
    for cell in rows.iter_mut().flatten() {
        match cell {
            Cell::Text(text) | Cell::Number(text) | Cell::Code(text) => replace(text, say),
            Cell::Names(own) => names(own, say, shorten),
            Cell::State(_) | Cell::Nothing => {}
        }
    }
}

fn curves(own: &mut Curves, say: Say<'_>) {
    let Curves { title, said, caption, unit: _, band: _, usual: _, usual_is, convicted } = own;
    [title, said, caption, usual_is].into_iter().for_each(|text| replace(text, say));
    for curve in convicted {
        replace(&mut curve.name, say);
        replace(&mut curve.said, say);
    }
}

fn names(Names { all, shown }: &mut Names, say: Say<'_>, shorten: Shorten<'_>) {
    all.iter_mut().for_each(|name| replace(name, say));
    *shown = shorten(&all.iter().map(String::as_str).collect::<Vec<_>>());
}

fn replace(text: &mut String, say: Say<'_>) {
    if !text.is_empty() {
        *text = say(text);
    }
}
