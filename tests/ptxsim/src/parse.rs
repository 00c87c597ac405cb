//! PTX text to kernels. Knows the subset that muster's kernels use and refuses anything else by line.

use std::collections::HashMap;

use crate::code::{Arg, Instr, Kernel, Op, Reg, Special};
use crate::opcode;

/// Why a text is no module: the line and a sentence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParseError {
    /// First line is 1.
    pub line: usize,
    /// What is wrong there.
    pub why: String,
}

impl std::fmt::Display for ParseError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "PTX line {}: {}", self.line, self.why)
    }
}

impl std::error::Error for ParseError {}

/// A statement: its text without the semicolon, and the line it starts in.
type Statement = (usize, String);

/// The kernels of a module.
///
/// # Errors
/// With the line of the first thing that is not understood.
pub fn parse(text: &str) -> Result<Vec<Kernel>, ParseError> {
    let mut kernels = Vec::new();
    let mut outer = Vec::new();
    let text = without_comments(text);
    let mut rest = text.as_str();
    let mut line = 1;
    while let Some(at) = rest.find(['{', ';']) {
        let head = &rest[..at];
        let entry = head.contains(".entry");
        let end = match rest.as_bytes()[at] {
            b'{' if entry => at + body_end(&rest[at..]).ok_or_else(|| error(line, "a body has no end"))?,
            b'{' => rest[at..].find(';').map_or(rest.len() - 1, |to| at + to),
            _ => at,
        };
        if entry {
            kernels.push(kernel(head, line, &rest[at + 1..end], &outer)?);
        } else if head.contains(".shared") {
            outer.push(head);
        }
        line += rest[..=end].matches('\n').count();
        rest = &rest[end + 1..];
    }
    Ok(kernels)
}

fn error(line: usize, why: impl Into<String>) -> ParseError {
    ParseError { line, why: why.into() }
}

/// Comments become spaces, so that lines keep their numbers.
fn without_comments(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for line in text.lines() {
        out.push_str(line.split("//").next().unwrap_or_default());
        out.push('\n');
    }
    out
}

fn body_end(text: &str) -> Option<usize> {
    let mut depth = 0;
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            b'{' => depth += 1,
            b'}' if depth == 1 => return Some(at),
            b'}' => depth -= 1,
            _ => {}
        }
    }
    None
}

/// Name and bytes of a declared variable; an array without a size has none.
fn declared(text: &str) -> (String, usize) {
    let words: Vec<&str> = text.split_whitespace().collect();
    let size = words.iter().rev().find_map(|w| crate::code::Ty::parse(w.strip_prefix('.')?)).map_or(1, |ty| ty.size());
    let last = words.last().copied().unwrap_or_default();
    match last.split_once('[') {
        Some((name, count)) => (name.to_owned(), size * count.trim_end_matches(']').parse::<usize>().unwrap_or(0)),
        None => (last.to_owned(), size),
    }
}

fn alignment(text: &str) -> usize {
    let mut words = text.split_whitespace();
    words.find(|w| *w == ".align").and_then(|_| words.next()?.parse().ok()).unwrap_or(8)
}

/// What names mean inside one kernel.
#[derive(Default)]
struct Names {
    registers: HashMap<String, Reg>,
    params: HashMap<String, usize>,
    shared: HashMap<String, usize>,
    labels: HashMap<String, usize>,
}

fn kernel(head: &str, line: usize, body: &str, outer: &[&str]) -> Result<Kernel, ParseError> {
    let (before, after) = head.split_once('(').unwrap_or((head, ""));
    let name = before.split_whitespace().last().unwrap_or_default().to_owned();
    let mut names = Names::default();
    let mut params: Vec<(usize, usize)> = Vec::new();
    let list = after.split_once(')').map_or(after, |(list, _)| list);
    for param in list.split(',').filter(|p| !p.trim().is_empty()) {
        let (name, size) = declared(param);
        let at = params.last().map_or(0, |(at, size)| at + size).next_multiple_of(size.clamp(1, 8));
        names.params.insert(name, at);
        params.push((at, size));
    }
    let statements = statements(body, line + head.matches('\n').count());
    let mut shared = outer.iter().filter(|text| !text.contains(".extern")).fold(0, |at, text| names.share(text, at));
    let mut code: Vec<Statement> = Vec::new();
    for (line, text) in statements {
        if let Some(label) = text.strip_suffix(':') {
            names.labels.insert(label.to_owned(), code.len());
        } else if text.starts_with(".shared") {
            shared = names.share(&text, shared);
        } else if !text.starts_with('.') {
            code.push((line, text));
        }
    }
    shared = shared.next_multiple_of(128);
    // Dynamic memory begins where the static ends.
    for text in outer.iter().filter(|text| text.contains(".extern")) {
        names.share(text, shared);
    }
    let code =
        code.iter().map(|(line, text)| instruction(*line, text, &mut names)).collect::<Result<Vec<Instr>, _>>()?;
    let asynchronous = code.iter().any(|instr| matches!(instr.op, Op::Async(_)));
    Ok(Kernel { name, code, params, registers: names.registers.len(), shared, asynchronous })
}

/// Cuts a body at semicolons and labels; braces that open a scope vanish, braces of operands stay.
fn statements(body: &str, mut line: usize) -> Vec<Statement> {
    let mut out = Vec::new();
    let (mut text, mut begun) = (String::new(), line);
    for c in body.chars() {
        line += usize::from(c == '\n');
        match c {
            c if c.is_whitespace() => text.extend((!text.is_empty()).then_some(' ')),
            ';' => out.push((begun, std::mem::take(&mut text))),
            ':' if text.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'$' || b == b'_') => {
                text.push(':');
                out.push((begun, std::mem::take(&mut text)));
            }
            '{' | '}' if text.is_empty() => {}
            c => {
                if text.is_empty() {
                    begun = line;
                }
                text.push(c);
            }
        }
    }
    out.into_iter().map(|(line, text)| (line, text.trim().to_owned())).filter(|(_, text)| !text.is_empty()).collect()
}

fn instruction(line: usize, text: &str, names: &mut Names) -> Result<Instr, ParseError> {
    let (guard, text) = match text.strip_prefix('@') {
        None => (None, text),
        Some(guarded) => {
            let (name, rest) = guarded.split_once(char::is_whitespace).ok_or_else(|| error(line, "a lone guard"))?;
            let negated = name.starts_with('!');
            (Some((names.register(name.trim_start_matches('!')), negated)), rest.trim_start())
        }
    };
    let (word, rest) = text.split_once(char::is_whitespace).unwrap_or((text, ""));
    // `ld.global.L1::no_allocate.v4.u32` and `ld.global. v4` (as NVRTC prints it) are one word each.
    let mut word = word.to_owned();
    let mut rest = rest.trim_start();
    while word.ends_with('.') {
        let (more, after) = rest.split_once(char::is_whitespace).unwrap_or((rest, ""));
        word.push_str(more.trim_start_matches('.'));
        rest = after.trim_start();
    }
    let args = split(rest).map(|arg| names.argument(arg)).collect::<Result<Vec<_>, _>>().map_err(|w| error(line, w))?;
    let (op, ty) = opcode::decode(&word).ok_or_else(|| error(line, format!("no opcode '{word}'")))?;
    let op = match (op, args.first(), args.get(1)) {
        (Op::Mov, Some(Arg::Many(_)), _) => Op::Unpack,
        (Op::Mov, _, Some(Arg::Many(_))) => Op::Pack,
        (op, _, _) => op,
    };
    Ok(Instr { guard, op, ty, args, line })
}

/// Operands, cut at the commas that are not inside brackets.
fn split(text: &str) -> impl Iterator<Item = &str> {
    let mut depth = 0;
    text.split(move |c| {
        match c {
            '{' | '[' => depth += 1,
            '}' | ']' => depth -= 1,
            _ => {}
        }
        c == ',' && depth == 0
    })
    .map(str::trim)
    .filter(|arg| !arg.is_empty())
}

impl Names {
    /// Gives a declared variable its place in shared memory, at `at` or a little later; where the next may begin.
    fn share(&mut self, text: &str, at: usize) -> usize {
        let (name, size) = declared(text);
        let at = at.next_multiple_of(alignment(text));
        self.shared.insert(name, at);
        at + size
    }

    fn register(&mut self, name: &str) -> Reg {
        let next = self.registers.len();
        *self.registers.entry(name.to_owned()).or_insert(next)
    }

    fn argument(&mut self, text: &str) -> Result<Arg, String> {
        if let Some(inside) = text.strip_prefix('{').and_then(|t| t.strip_suffix('}')) {
            return Ok(Arg::Many(split(inside).map(|arg| self.argument(arg)).collect::<Result<_, _>>()?));
        }
        if let Some(inside) = text.strip_prefix('[').and_then(|t| t.strip_suffix(']')) {
            return self.address(inside.trim());
        }
        if text == "_" {
            return Ok(Arg::Sink);
        }
        if let Some((value, predicate)) = text.split_once('|') {
            return Ok(Arg::Pair(self.register(value), self.register(predicate)));
        }
        if text.starts_with('%') {
            return Ok(special(text).map_or_else(|| Arg::Reg(self.register(text)), Arg::Special));
        }
        if let Some(label) = self.labels.get(text) {
            return Ok(Arg::Label(*label));
        }
        if let Some(at) = self.shared.get(text) {
            return Ok(Arg::Imm(*at as u64));
        }
        number(text).map(Arg::Imm).ok_or_else(|| format!("'{text}' is no operand"))
    }

    fn address(&mut self, text: &str) -> Result<Arg, String> {
        let (base, offset) = text.split_once('+').unwrap_or((text, "0"));
        let offset = number(offset.trim()).ok_or_else(|| format!("'{offset}' is no offset"))?.cast_signed();
        let base = base.trim();
        if base.starts_with('%') {
            return Ok(Arg::Mem(Some(self.register(base)), offset));
        }
        let known = self.params.get(base).or_else(|| self.shared.get(base)).map(|at| *at as i64);
        let at =
            known.or_else(|| number(base).map(u64::cast_signed)).ok_or_else(|| format!("'{base}' is not known"))?;
        Ok(Arg::Mem(None, at + offset))
    }
}

fn special(name: &str) -> Option<Special> {
    let axis = |name: &str| ["x", "y", "z"].iter().position(|a| *a == name);
    Some(match name.trim_start_matches('%').split_once('.') {
        Some(("tid", a)) => Special::Tid(axis(a)?),
        Some(("ntid", a)) => Special::Ntid(axis(a)?),
        Some(("ctaid", a)) => Special::Ctaid(axis(a)?),
        Some(("nctaid", a)) => Special::Nctaid(axis(a)?),
        Some(_) => return None,
        None => match name {
            "%laneid" => Special::Lane,
            "%warpid" => Special::Warp,
            "%smid" => Special::Sm,
            "%nsmid" => Special::Sms,
            "%clock64" | "%clock" => Special::Clock,
            _ => return None,
        },
    })
}

/// Immediate operand: floats come as their bits, negative numbers with all their upper bits set.
fn number(text: &str) -> Option<u64> {
    let text = text.trim_end_matches('U');
    if let Some(bits) = text.strip_prefix("0f").or_else(|| text.strip_prefix("0d")) {
        return u64::from_str_radix(bits, 16).ok();
    }
    if let Some(hex) = text.strip_prefix("0x") {
        return u64::from_str_radix(hex, 16).ok();
    }
    text.parse::<i64>().map(i64::cast_unsigned).or_else(|_| text.parse()).ok()
}
