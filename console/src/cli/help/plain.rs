//! Markdown as plain text of 80 columns: of the little that this project's own pages use.

const WIDTH: usize = 80;

/// The page as a terminal shows it, pictures left out.
#[must_use]
pub fn render(page: &str) -> String {
    let mut blocks = Vec::new();
    let mut lines = page.lines().peekable();
    while let Some(line) = lines.next() {
        let block = match line {
            _ if line.starts_with("```") => {
                let code = lines.by_ref().take_while(|line| !line.starts_with("```"));
                code.map(code_line).collect()
            }
            _ if line.starts_with('#') => inline(line.trim_start_matches(['#', ' '])).to_uppercase() + "\n",
            _ if line.starts_with("|-") || line.starts_with("![") || line.trim().is_empty() => continue,
            _ if line.starts_with('|') => {
                // The row above the rule names the columns.
                if lines.peek().is_some_and(|next| next.starts_with("|-")) { continue } else { row(line) }
            }
            _ => {
                let mut text = line.to_owned();
                while let Some(next) = lines.next_if(|next| goes_on(next)) {
                    text += " ";
                    text += next.trim();
                }
                paragraph(&text)
            }
        };
        blocks.push((line.chars().next().filter(|first| "|-".contains(*first)), block));
    }
    join(&blocks)
}

/// Whether a line belongs to the paragraph above it.
fn goes_on(line: &str) -> bool {
    !line.trim().is_empty() && !["- ", "#", "|", "```", "!["].iter().any(|start| line.starts_with(start))
}

/// Blocks with an empty line between them, rows of a table and items of a list without.
fn join(blocks: &[(Option<char>, String)]) -> String {
    let mut text = String::new();
    let mut before = None;
    for (kind, block) in blocks {
        if before.is_some_and(|before| before != *kind || kind.is_none()) {
            text.push('\n');
        }
        text += block;
        before = Some(*kind);
    }
    text
}

/// A line of an example; one that is too long for a terminal is what a program says.
fn code_line(line: &str) -> String {
    if line.chars().count() + 4 > WIDTH { wrap(line, 4) } else { format!("    {line}\n") }
}

fn row(line: &str) -> String {
    let mut cells = line.trim_matches('|').split('|').map(|cell| inline(cell.trim()));
    let first = cells.next().unwrap_or_default();
    let rest: Vec<String> = cells.collect();
    format!("  {first}\n{}", wrap(&rest.join("; "), 6))
}

fn paragraph(text: &str) -> String {
    match text.strip_prefix("- ") {
        Some(item) => format!("- {}", wrap(&inline(item), 2).trim_start()),
        None => wrap(&inline(text), 0),
    }
}

/// Without stars and quotes of code, links by their words.
fn inline(text: &str) -> String {
    let text = text.replace("**", "").replace('`', "");
    let mut out = String::new();
    let mut rest = text.as_str();
    while let Some((before, words, after)) = link(rest) {
        out = out + before + words;
        rest = after;
    }
    out += rest;
    let plain =
        |word: &str| if word.len() > 1 && word.starts_with('*') { word.replace('*', "") } else { word.to_owned() };
    out.split(' ').map(plain).collect::<Vec<_>>().join(" ")
}

/// What stands before the first link, its words, and what stands after it.
fn link(text: &str) -> Option<(&str, &str, &str)> {
    let middle = text.find("](")?;
    let start = text[..middle].rfind('[')?;
    let end = middle + text[middle..].find(')')?;
    Some((&text[..start], &text[start + 1..middle], &text[end + 1..]))
}

/// Lines of at most 80 columns, each behind so many spaces.
#[must_use]
pub fn wrap(text: &str, indent: usize) -> String {
    let mut lines = vec![String::new()];
    for word in text.split_whitespace() {
        let full = lines
            .last()
            .is_some_and(|line| !line.is_empty() && indent + line.chars().count() + 1 + word.chars().count() > WIDTH);
        if full {
            lines.push(String::new());
        }
        if let Some(line) = lines.last_mut() {
            if !line.is_empty() {
                line.push(' ');
            }
            line.push_str(word);
        }
    }
    let space = " ".repeat(indent);
    lines.iter().map(|line| format!("{space}{line}\n")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headings_paragraphs_lists_tables_and_code_read_as_plain_text() {
        let page = "# Title\n\n![picture](a.svg)\n\nSome **bold** words and a\n[link](b.md), *so*.\n- one\n  goes on\n- two\n\n\
                    | a | b |\n|---|---|\n| `x*y` | first |\n| z | second |\n\n```sh\nrun  it\n```\n";
        let told = "TITLE\n\nSome bold words and a link, so.\n\n- one goes on\n- two\n\n  x*y\n      first\n  z\n      second\n\n    \
                    run  it\n";
        assert_eq!(render(page), told);
    }

    #[test]
    fn no_line_is_wider_than_a_terminal_unless_a_word_is() {
        let text = wrap(&"word ".repeat(60), 6);
        assert!(text.lines().all(|line| line.len() <= WIDTH && line.starts_with("      word")), "{text}");
        assert_eq!(text.split_whitespace().count(), 60);
    }
}
