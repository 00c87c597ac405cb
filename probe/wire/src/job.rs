//! What a node is asked of a job's processes, and how their files come.

use std::fmt;

use serde::de::{Deserializer, SeqAccess, Visitor};
use serde::{Deserialize, Serialize, Serializer};

use crate::codec::{tidy_facts, tidy_outcome};
use crate::limits::{CHUNK_BYTES, FACTS};
use crate::{Facts, Outcome};

/// Look at the processes of a job on this node, and send what they left. Nothing is changed unless `ask_for_dumps` is set.
///
/// Which processes: those of the Slurm job, else the given ones, else those whose command line holds a text, else all that have a rank.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct JobOrder {
    /// Id of the Slurm job.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub job: Option<String>,
    /// Processes by number.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub pids: Vec<u32>,
    /// A text that the command lines hold.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pattern: Option<String>,
    /// Only kernel lines of the last so many seconds.
    pub since_s: u32,
    /// Logs of ranks beside those that processes have open: a folder and a file name with `*`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub logs: Option<String>,
    /// Folder of flight-recorder dumps, beside those that the processes name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dumps: Option<String>,
    /// Ask NCCL's RAS, twice.
    pub ras: bool,
    /// Ask the processes for flight-recorder dumps: SIGUSR1 to muster's own job, PyTorch's dump pipe where the environment names one.
    pub ask_for_dumps: bool,
    /// Time from the end of the first poll of RAS to the second, milliseconds; also how long processes and counters are looked at.
    pub pause_ms: u32,
    /// Most bytes of the end of one file.
    pub file_bytes: u32,
    /// Most bytes of everything together.
    pub all_bytes: u32,
    /// Collectors that look at the node's health meanwhile.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub collectors: Vec<String>,
}

/// What one collector saw of a node's health while a job ran on it: a list of these lies in a bundle as `facts/NODE.json`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Looked {
    /// How it ended.
    pub outcome: Outcome,
    /// What it saw.
    #[serde(flatten)]
    pub saw: Facts,
}

impl Looked {
    /// The same with every text made harmless and its list cut: what comes from a node may be anything.
    #[must_use]
    pub fn bounded(mut self) -> Self {
        tidy_outcome(&mut self.outcome);
        self.saw.facts.truncate(FACTS);
        tidy_facts(&mut self.saw);
        self
    }
}

/// Most bytes of that list.
pub const LOOKED_BYTES: usize = 4 << 20;

/// A piece of a file, in order; pieces of two files do not mix.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileChunk {
    /// Where it belongs, such as `log/4711.out`, `ras/1`, `fr/nccl_trace_rank_3`, `processes.json`.
    pub name: String,
    /// At most [`CHUNK_BYTES`].
    #[serde(serialize_with = "to_bytes", deserialize_with = "from_bytes")]
    pub bytes: Vec<u8>,
    /// The file ends with this piece.
    pub last: bool,
}

impl fmt::Debug for FileChunk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "FileChunk({}, {} bytes, last: {})", self.name, self.bytes.len(), self.last)
    }
}

/// Everything that was asked of the job was sent, or why not.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Collected {
    /// How it ended.
    pub outcome: Outcome,
    /// Files sent.
    pub files: u32,
    /// Their bytes.
    pub bytes: u64,
}

fn to_bytes<S: Serializer>(bytes: &[u8], to: S) -> Result<S::Ok, S::Error> {
    to.serialize_bytes(bytes)
}

/// Reads at most one byte more than a chunk may have, so that whoever checks the limit sees it broken.
fn from_bytes<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<u8>, D::Error> {
    struct Piece;
    impl<'de> Visitor<'de> for Piece {
        type Value = Vec<u8>;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            write!(f, "at most {CHUNK_BYTES} bytes")
        }

        fn visit_bytes<E>(self, bytes: &[u8]) -> Result<Vec<u8>, E> {
            Ok(bytes.get(..CHUNK_BYTES + 1).unwrap_or(bytes).to_vec())
        }

        fn visit_byte_buf<E>(self, mut bytes: Vec<u8>) -> Result<Vec<u8>, E> {
            bytes.truncate(CHUNK_BYTES + 1);
            Ok(bytes)
        }

        fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Vec<u8>, A::Error> {
            let mut bytes = Vec::new();
            while let Some(byte) = items.next_element()? {
                if bytes.len() <= CHUNK_BYTES {
                    bytes.push(byte);
                }
            }
            Ok(bytes)
        }
    }
    from.deserialize_byte_buf(Piece)
}

#[cfg(test)]
mod tests {
    use serde::de::IntoDeserializer;
    use serde::de::value::{BoolDeserializer, BytesDeserializer, Error, SeqDeserializer};

    use super::*;

    #[test]
    fn what_is_no_bytes_is_refused_with_what_was_expected() {
        let from: BoolDeserializer<Error> = true.into_deserializer();
        let said = from_bytes(from).unwrap_err().to_string();
        assert!(said.ends_with("expected at most 65536 bytes"), "{said}");
    }

    #[test]
    fn a_piece_is_read_whole_and_one_byte_more_than_it_may_have_shows_that_it_is_too_long() {
        let long: Vec<u8> = (0..CHUNK_BYTES + 9).map(|at| at as u8).collect();
        let bytes = |count: usize| from_bytes(BytesDeserializer::<Error>::new(&long[..count])).unwrap();
        assert_eq!(
            (bytes(CHUNK_BYTES), bytes(long.len())),
            (long[..CHUNK_BYTES].to_vec(), long[..=CHUNK_BYTES].to_vec())
        );
        let list = |count: usize| from_bytes(SeqDeserializer::<_, Error>::new(long[..count].iter().copied())).unwrap();
        assert_eq!(
            (list(CHUNK_BYTES), list(long.len())),
            (long[..CHUNK_BYTES].to_vec(), long[..=CHUNK_BYTES].to_vec())
        );
    }

    #[test]
    fn a_piece_is_told_by_its_name_and_length_and_not_by_its_bytes() {
        let piece = FileChunk { name: "log/1".to_owned(), bytes: vec![7; 300], last: false };
        assert_eq!(format!("{piece:?}"), "FileChunk(log/1, 300 bytes, last: false)");
    }

    #[test]
    fn what_a_collector_saw_of_a_job_s_node_is_made_harmless_and_cut() {
        use crate::{Fact, Reading};
        let bad = || "a\u{1b}[2Jb".to_owned();
        let fact = Fact { key: bad(), reading: Reading::Failed(bad()), unit: None };
        let saw = Facts { collector: bad(), facts: vec![fact; FACTS + 1] };
        let Looked { outcome, saw } = Looked { outcome: Outcome::Denied(bad()), saw }.bounded();
        assert_eq!((outcome, saw.collector.as_str(), saw.facts.len()), (Outcome::Denied("ab".into()), "ab", FACTS));
        let harmless = |fact: &Fact| fact.key == "ab" && fact.reading == Reading::Failed("ab".into());
        assert!(saw.facts.iter().all(harmless));
    }
}
