//! When are a rank's weights saved, and how?

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::PathBuf;

/// Where the weights of one rank go, and how often.
#[derive(Clone, Debug)]
pub(super) struct Checkpoint {
    /// Folder of the job's checkpoints.
    pub(super) folder: PathBuf,
    /// Steps from one to the next.
    pub(super) every: u64,
}

impl Checkpoint {
    /// Whether one is due after this step.
    pub(super) fn due(&self, step: u64) -> bool {
        step.is_multiple_of(self.every)
    }

    /// Writes `weights` as the newest checkpoint of `rank`, on the disk when this returns. The one before is there until then.
    ///
    /// # Errors
    /// When the folder cannot be made, or its disk takes no more.
    pub(super) fn save(&self, rank: usize, weights: &[u8]) -> io::Result<()> {
        fs::create_dir_all(&self.folder)?;
        let path = self.folder.join(format!("rank_{rank}.weights"));
        let draft = path.with_extension("part");
        let mut file = File::create(&draft)?;
        file.write_all(weights)?;
        file.sync_all()?;
        fs::rename(&draft, path)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_checkpoint_stands_alone_and_is_whole() {
        let dir = tempfile::tempdir().unwrap();
        let checkpoint = Checkpoint { folder: dir.path().join("deep/down"), every: 10 };
        assert_eq!((1..=30).filter(|step| checkpoint.due(*step)).collect::<Vec<u64>>(), [10, 20, 30]);
        checkpoint.save(3, &[1; 9]).unwrap();
        checkpoint.save(3, &[2; 5]).unwrap();
        let there: Vec<_> = fs::read_dir(&checkpoint.folder).unwrap().map(|file| file.unwrap().file_name()).collect();
        assert_eq!(there, ["rank_3.weights"]);
        assert_eq!(fs::read(checkpoint.folder.join("rank_3.weights")).unwrap(), [2; 5]);
    }
}
