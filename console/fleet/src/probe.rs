//! The probe's bytes, held once for the whole fleet: for each architecture as they are, their hash, and packed for the wire.

use std::io::Write;
use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use sha2::{Digest, Sha256};

/// A probe to push, built for one architecture or more. Cheap to share; no node gets a copy of its own.
#[derive(Debug)]
pub struct Probe {
    main: Build,
    others: Vec<Build>,
}

/// The probe for one architecture.
#[derive(Debug)]
pub struct Build {
    machine: Option<&'static str>,
    bytes: Bytes,
    sha256: String,
    packed: OnceLock<Option<Bytes>>,
}

impl Probe {
    /// One that every node is taken to run.
    #[must_use]
    pub fn new(bytes: Arc<[u8]>) -> Self {
        Self { main: Build::new(None, bytes), others: Vec::new() }
    }

    /// Builds for several architectures, by what `uname -m` says there; `main` is for most nodes, and none is there twice.
    #[must_use]
    pub fn of(main: (&'static str, Arc<[u8]>), others: impl IntoIterator<Item = (&'static str, Arc<[u8]>)>) -> Self {
        let build = |(machine, bytes)| Build::new(Some(machine), bytes);
        Self { main: build(main), others: others.into_iter().map(build).collect() }
    }

    /// The build for most nodes.
    #[must_use]
    pub fn main(&self) -> &Build {
        &self.main
    }

    /// Starts packing all builds on a thread of its own, as each takes half a second. Whoever needs one earlier waits for it.
    pub(crate) fn pack_beside(self: &Arc<Self>) {
        let probe = self.clone();
        tokio::task::spawn_blocking(move || probe.builds().for_each(|build| drop(build.packed())));
    }

    /// All builds, the main one first.
    pub fn builds(&self) -> impl Iterator<Item = &Build> {
        std::iter::once(&self.main).chain(&self.others)
    }
}

impl Build {
    /// Takes the bytes and hashes them.
    fn new(machine: Option<&'static str>, bytes: Arc<[u8]>) -> Self {
        let sha256 = Sha256::digest(&bytes).iter().fold(String::new(), |mut hex, byte| {
            use std::fmt::Write as _;
            // Writing to a String cannot fail.
            let _ = write!(hex, "{byte:02x}");
            hex
        });
        Self { machine, bytes: Bytes::from_owner(bytes), sha256, packed: OnceLock::new() }
    }

    /// What `uname -m` says where it runs; `None` where it is not asked.
    #[must_use]
    pub fn machine(&self) -> Option<&'static str> {
        self.machine
    }

    /// Size, bytes.
    #[must_use]
    pub fn size(&self) -> usize {
        self.bytes.len()
    }

    /// Bytes sent to a node that has gzip.
    #[must_use]
    pub fn sent_size(&self) -> usize {
        self.packed().map_or(self.size(), |packed| packed.len())
    }

    /// SHA-256 of the bytes, hexadecimal.
    #[must_use]
    pub fn sha256(&self) -> &str {
        &self.sha256
    }

    /// File name on the node, from the content.
    #[must_use]
    pub fn file_name(&self) -> String {
        format!("probe-{}", self.sha256.get(..16).unwrap_or_default())
    }

    pub(crate) fn bytes(&self) -> Bytes {
        self.bytes.clone()
    }

    /// The bytes in gzip form, because every node has gzip and few have zstd; `None` where that saves too little.
    pub(crate) fn packed(&self) -> Option<Bytes> {
        self.packed.get_or_init(|| pack(&self.bytes)).clone()
    }
}

fn pack(bytes: &[u8]) -> Option<Bytes> {
    let mut writer = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::new(6));
    writer.write_all(bytes).ok()?;
    let packed = writer.finish().ok()?;
    (packed.len() < bytes.len() / 10 * 9).then(|| packed.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_file_name_comes_from_the_content() {
        let probe = Build::new(None, Arc::from(&b"abc"[..]));
        assert_eq!(probe.sha256(), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
        assert_eq!(probe.file_name(), "probe-ba7816bf8f01cfea");
    }

    #[test]
    fn what_does_not_shrink_is_sent_as_it_is() {
        let noise: Vec<u8> = (0..20_000u32).flat_map(|i| Sha256::digest(i.to_le_bytes())).collect();
        assert_eq!(Build::new(None, noise.into()).packed(), None);
        assert!(Build::new(None, vec![7; 100_000].into()).packed().unwrap().len() < 1000);
    }
}
