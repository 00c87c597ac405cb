//! What may not get into a page: markup, control characters, and characters that reorder or hide text.

use std::fmt::{self, Write};

use askama::filters::{Escaper, Html};
use muster_wire::clean;

/// The escaper of all templates.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Harmless;

impl Escaper for Harmless {
    fn write_escaped_str<W: Write>(&self, dest: W, string: &str) -> fmt::Result {
        Html.write_escaped_str(dest, &harmless(string))
    }

    fn write_escaped_char<W: Write>(&self, dest: W, c: char) -> fmt::Result {
        self.write_escaped_str(dest, c.encode_utf8(&mut [0; 4]))
    }
}

/// `text` as it may be drawn; markup is still in it.
pub(crate) fn harmless(text: &str) -> String {
    // The Arabic letter mark reorders text as well, and the last two are no characters in XML.
    clean(text, usize::MAX).replace(['\u{61c}', '\u{fffe}', '\u{ffff}'], "")
}
