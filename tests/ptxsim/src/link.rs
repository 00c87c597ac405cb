//! The way from one device to another: how fast it is, and what it does to the data.

/// One direction between two devices.
#[derive(Clone, Debug, PartialEq)]
pub struct Link {
    /// How many times as long everything takes.
    pub factor: f64,
    /// Flips this bit of one byte in so many.
    pub flip: Option<(u32, u64)>,
    /// Whether the first may open the second's memory.
    pub peers: bool,
    /// Bytes that came over it, and of those the ones since the last look.
    carried: u64,
    moved: u64,
}

impl Default for Link {
    fn default() -> Self {
        Self { factor: 1.0, flip: None, peers: true, carried: 0, moved: 0 }
    }
}

impl Link {
    /// One fault from its words: `slow factor=4`, `flip bit=3 every=100` or `none`.
    ///
    /// # Errors
    /// With a sentence when they are not understood.
    pub fn add(&mut self, words: &[&str]) -> Result<(), String> {
        let number = |word: &str, name: &str| {
            let text = word.strip_prefix(name).and_then(|rest| rest.strip_prefix('='));
            text.and_then(|text| text.parse::<f64>().ok()).ok_or_else(|| format!("'{word}' is not {name}=NUMBER"))
        };
        match words {
            ["slow", factor] => self.factor = number(factor, "factor")?,
            ["flip", bit, every] => self.flip = Some((number(bit, "bit")? as u32, number(every, "every")? as u64)),
            ["none"] => self.peers = false,
            _ => return Err(format!("no fault '{}' of a link: slow, flip or none", words.join(" "))),
        }
        Ok(())
    }

    /// What arrives of `bytes`.
    pub(crate) fn carry(&mut self, bytes: &mut [u8]) {
        let begin = self.carried;
        self.carried += bytes.len() as u64;
        self.moved += bytes.len() as u64;
        if let Some((bit, every)) = self.flip {
            let mut at = (begin + 1).next_multiple_of(every) - 1;
            while at < self.carried {
                bytes[(at - begin) as usize] ^= 1 << (bit % 8);
                at += every;
            }
        }
    }

    /// Nanoseconds of what came over it since the last look, at so many bytes per second.
    pub(crate) fn time(&mut self, bandwidth: f64) -> f64 {
        std::mem::take(&mut self.moved) as f64 * self.factor / bandwidth * 1e9
    }
}
