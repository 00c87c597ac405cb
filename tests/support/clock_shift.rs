//! A clock that is wrong on one node: passes standard input on and moves every wall time that a probe tells by the
//! nanoseconds of its argument.
//!
//! Linux has no namespace for the wall clock and the probe is static, so no library can stand before its clock. This
//! stands behind it instead, on the node, between the real probe and the real sshd.

use std::io::{Read, Write};

/// The key `wall_ns` as CBOR has it, and the head of a 64-bit number.
const KEY: &[u8] = b"\x67wall_ns\x1b";
const NUMBER: usize = 8;

fn main() -> std::io::Result<()> {
    let shift: i64 = std::env::args().nth(1).and_then(|text| text.parse().ok()).unwrap_or(0);
    let (mut input, mut output) = (std::io::stdin().lock(), std::io::stdout().lock());
    let (mut kept, mut chunk) = (Vec::new(), [0; 65_536]);
    loop {
        let read = input.read(&mut chunk)?;
        if read == 0 {
            output.write_all(&kept)?;
            return output.flush();
        }
        kept.extend_from_slice(&chunk[..read]);
        let ready = moved(&mut kept, shift);
        output.write_all(&kept[..ready])?;
        output.flush()?;
        kept.drain(..ready);
    }
}

/// Moves every whole time in `bytes`; how many bytes may go on, since no time begins in them that is still cut off.
fn moved(bytes: &mut [u8], shift: i64) -> usize {
    let mut at = 0;
    while at < bytes.len() {
        let rest = &bytes[at..];
        let whole = KEY.len() + NUMBER;
        if rest.len() < whole && KEY.starts_with(&rest[..rest.len().min(KEY.len())]) {
            return at;
        }
        if rest.starts_with(KEY) {
            let number = at + KEY.len();
            let mut time = [0; NUMBER];
            time.copy_from_slice(&bytes[number..number + NUMBER]);
            let time = u64::from_be_bytes(time).saturating_add_signed(shift);
            bytes[number..number + NUMBER].copy_from_slice(&time.to_be_bytes());
            at += whole;
        } else {
            at += 1;
        }
    }
    at
}
