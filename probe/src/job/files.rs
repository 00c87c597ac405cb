//! The job's own files: output of its ranks, flight-recorder dumps, Inspector's files.

use std::collections::BTreeSet;
use std::fs::File;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use muster_wire::{JobOrder, clean};

use super::find::Found;
use super::folder::Folder;
use super::held::Held;
use super::open::{Owner, ends, listed, regular, whole, within};
use super::process::{Open, inside, user};
use super::send::Send;
use super::words::{argument, is_own};
use crate::collect::Root;

/// Bytes of the beginning of a log.
const HEAD: u64 = 128 << 10;
/// Most bytes of a dump, and of one of Inspector's files.
const DUMP: u64 = 8 << 20;
const TIMED: u64 = 2 << 20;
/// Files of ranks without a process here that are taken.
const BESIDE: usize = 16;
const GIVEN: usize = 256;
/// Folders that a path with `*` in them may mean, at each level.
const FOLDERS: usize = 256;
/// Longest wait for one file.
pub(super) const PATIENCE: Duration = Duration::from_secs(4);
/// Where PyTorch writes dumps unless told otherwise.
const DEFAULT_DUMPS: &str = "/tmp/nccl_trace_rank_";

/// Everything that is needed to look for files.
pub(super) struct Look<'a> {
    pub(super) root: &'a Root,
    pub(super) order: &'a JobOrder,
    pub(super) ranks: &'a [(Found, Open)],
    /// When the oldest process of the job began, epoch seconds.
    pub(super) since_s: f64,
    /// Files whose storage did not answer in time.
    pub(super) stalled: Vec<String>,
    pub(super) notes: Vec<String>,
    /// Devices and inodes that were sent.
    pub(super) sent: BTreeSet<(u64, u64)>,
    /// Output of the ranks, which may say more before they end.
    pub(super) held: Vec<Held>,
}

/// Files of one folder that a person named.
struct Given {
    folder: Folder,
    names: Vec<String>,
    /// The folder was named with `*`: files of several may be called alike.
    starred: bool,
}

/// What part of a file is wanted, at most.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Part {
    /// So many bytes of the beginning and of the end.
    Ends(u64, u64),
    Whole(u64),
}

/// What was read, of which device and inode, when that was last written, and the file with its length.
type Got = std::io::Result<(Vec<u8>, (u64, u64), f64, Option<(File, u64)>)>;

impl Look<'_> {
    /// Output of all ranks, and of those that were here and are not any more.
    pub(super) fn logs(&mut self, send: &mut Send<'_>) {
        let own: BTreeSet<&str> =
            self.ranks.iter().flat_map(|(_, open)| open.outputs.iter().map(|(_, path)| path.as_str())).collect();
        let part = self.ends(own.len(), send);
        let mut paths = BTreeSet::new();
        for (found, open) in self.ranks {
            for (descriptor, path) in &open.outputs {
                let link = self.root.path(&format!("/proc/{}/fd/{descriptor}", found.pid));
                let kind = if *descriptor == 1 { "out" } else { "err" };
                let held = self.held.len();
                if self.take(&link, path, &Owner::Opened, part, None, send, &format!("log/{}.{kind}", found.pid)) {
                    paths.insert((found.pid, path.clone()));
                }
                self.held.iter_mut().skip(held).for_each(|held| held.pid = found.pid);
            }
        }
        let beside = self.beside(&paths);
        let part = self.ends(beside.len(), send);
        for (pid, path) in beside {
            let file = inside(self.root, pid, &path);
            let name = format!("log/beside/{}", name_of(&path));
            self.take(&file, &path, &self.owners(), part, Some(self.since_s), send, &name);
        }
        let given: Vec<Given> = self.order.logs.clone().iter().flat_map(|pattern| self.matching(pattern)).collect();
        let part = self.ends(given.iter().map(|given| given.names.len()).sum::<usize>().min(GIVEN), send);
        let files = given.iter().flat_map(|given| given.names.iter().map(move |name| (given, given.folder.file(name))));
        for (given, (path, shown)) in files.take(GIVEN) {
            let name = if given.starred { last_parts(&shown) } else { name_of(&shown) };
            self.take(&path, &shown, &Owner::Named, part, None, send, &format!("log/beside/{name}"));
        }
    }

    /// What a path with `*` in its names means: `/job/logs/*/attempt_*/*/stderr.log`.
    fn matching(&mut self, pattern: &str) -> Vec<Given> {
        let Some((folder, name)) = pattern.rsplit_once('/').filter(|_| pattern.starts_with('/')) else {
            return Vec::new();
        };
        let (fixed, starred): (Vec<&str>, Vec<&str>) = {
            let names: Vec<&str> = folder.split('/').filter(|name| !name.is_empty()).collect();
            let first = names.iter().position(|name| name.contains('*')).unwrap_or(names.len());
            (names[..first].to_vec(), names[first..].to_vec())
        };
        let mut folders: Vec<Folder> = self.folder(Path::new(&format!("/{}", fixed.join("/")))).into_iter().collect();
        for pattern in &starred {
            let parts: Vec<&str> = pattern.split('*').collect();
            let below = folders.iter().flat_map(|folder| {
                let names = folder.names().into_iter().filter(|name| fits(name, &parts));
                names.filter_map(|name| folder.child(&name))
            });
            folders = below.take(FOLDERS).collect();
        }
        let parts: Vec<&str> = name.split('*').collect();
        let given = |folder: Folder| {
            let names = folder.names().into_iter().filter(|name| fits(name, &parts)).take(GIVEN).collect();
            Given { folder, names, starred: !starred.is_empty() }
        };
        folders.into_iter().map(given).collect()
    }

    /// A folder that a person named; what keeps it from being read is said, but for one that is not there.
    fn folder(&mut self, path: &Path) -> Option<Folder> {
        match Folder::open(path) {
            Some(Ok(folder)) => return Some(folder),
            Some(Err(why)) if why.kind() == std::io::ErrorKind::NotFound => {}
            Some(Err(why)) => self.notes.push(format!("{}: not read: {why}.", clean(&path.display().to_string(), 512))),
            None => self.stalled.push(clean(&path.display().to_string(), 512)),
        }
        None
    }

    /// What is taken of each of so many logs: as much as was ordered, and less where they would take more than half of the room, so that
    /// dumps have some, too.
    fn ends(&self, logs: usize, send: &Send<'_>) -> Part {
        let each = send.room() / 2 / logs.max(1) as u64;
        let head = HEAD.min(each / 4);
        Part::Ends(head, u64::from(self.order.file_bytes).min(each - head))
    }

    /// Logs called like those of the ranks, with another rank in the name.
    fn beside(&self, known: &BTreeSet<(u32, String)>) -> Vec<(u32, String)> {
        let mut found = BTreeSet::new();
        let names: BTreeSet<&str> = known.iter().map(|(_, path)| path.as_str()).collect();
        for (pid, path) in known {
            let Some((folder, file)) = path.rsplit_once('/') else { continue };
            let Some((before, after)) = around_rank(file) else { continue };
            for name in listed(&inside(self.root, *pid, folder)) {
                let middle = name.strip_prefix(before).and_then(|rest| rest.strip_suffix(after));
                let is_rank =
                    middle.is_some_and(|rank| !rank.is_empty() && rank.bytes().all(|byte| byte.is_ascii_digit()));
                let path = format!("{folder}/{name}");
                if is_rank && !names.contains(path.as_str()) {
                    found.insert(path);
                }
            }
        }
        let pid = known.first().map_or(0, |(pid, _)| *pid);
        // On a file system that all nodes share, the others send theirs.
        if found.len() > BESIDE { Vec::new() } else { found.into_iter().map(|path| (pid, path)).collect() }
    }

    /// Dumps of the ranks here, and of those beside them; then those of the folder that was named.
    pub(super) fn dumps(&mut self, send: &mut Send<'_>) {
        for (pid, prefix, rank) in self.prefixes() {
            let (folder, start) = prefix.rsplit_once('/').unwrap_or(("", &prefix));
            let folder = if folder.is_empty() { "/" } else { folder };
            let wanted = |name: &String| {
                let rest = name.strip_prefix(start);
                rest.is_some_and(|rest| !rest.is_empty() && rest.bytes().all(|byte| byte.is_ascii_digit()))
            };
            let all: Vec<String> = listed(&inside(self.root, pid, folder)).into_iter().filter(wanted).collect();
            let mine =
                |name: &&String| all.len() <= BESIDE || rank.is_some_and(|rank| **name == format!("{start}{rank}"));
            for name in all.iter().filter(mine) {
                let file = inside(self.root, pid, folder).join(name);
                let shown = format!("{folder}/{name}");
                self.take(
                    &file,
                    &shown,
                    &self.owners(),
                    Part::Whole(DUMP),
                    Some(self.since_s),
                    send,
                    &format!("fr/{}", name_of(name)),
                );
            }
        }
        let Some(folder) = self.order.dumps.clone().and_then(|path| self.folder(Path::new(&path))) else { return };
        let names = folder.names();
        let named = |name: &&String| {
            ["trace", "dump", "rank", "nccl"].iter().any(|part| name.contains(part)) && !name.ends_with(".log")
        };
        let names: Vec<String> = names.iter().filter(named).cloned().collect();
        let ends_in_rank =
            |name: &&String| name.ends_with(|last: char| last.is_ascii_digit()) || name.ends_with(".pkl");
        let pickles = names.iter().filter(ends_in_rank).count();
        for name in names.iter().filter(|name| pickles == 0 || ends_in_rank(name)).take(GIVEN) {
            let (path, shown) = folder.file(name);
            self.take(&path, &shown, &Owner::Named, Part::Whole(DUMP), None, send, &format!("fr/{}", name_of(name)));
        }
    }

    /// Begin of the paths of dumps, with a process that knows them, and its rank.
    fn prefixes(&self) -> Vec<(u32, String, Option<u32>)> {
        let mut seen = BTreeSet::new();
        let mut prefixes = Vec::new();
        for (found, _) in self.ranks {
            let words = found.environment.as_ref();
            let word =
                |name: &str| words.and_then(|words| words.get(name)).filter(|path| path.starts_with('/')).cloned();
            let own = is_own(&found.arguments).then(|| argument(&found.arguments, "--dir")).flatten();
            let own = own.map(|dir| format!("{}/nccl_trace_rank_", dir.trim_end_matches('/')));
            let prefix = own
                .or_else(|| word("TORCH_FR_DUMP_TEMP_FILE"))
                .or_else(|| word("TORCH_NCCL_DEBUG_INFO_TEMP_FILE"))
                .unwrap_or_else(|| DEFAULT_DUMPS.to_owned());
            if seen.insert((prefix.clone(), found.place.rank)) {
                prefixes.push((found.pid, prefix, found.place.rank));
            }
        }
        prefixes
    }

    /// Files of NCCL Inspector that are as young as the job.
    pub(super) fn inspector(&mut self, send: &mut Send<'_>) {
        let folders: BTreeSet<(String, u32)> = self
            .ranks
            .iter()
            .filter_map(|(found, _)| {
                Some((found.environment.as_ref()?.get("NCCL_INSPECTOR_DUMP_DIR")?.clone(), found.pid))
            })
            .collect();
        let mut seen = BTreeSet::new();
        for (folder, pid) in folders.into_iter().filter(|(folder, _)| folder.starts_with('/')) {
            if !seen.insert(folder.clone()) {
                continue;
            }
            let pids: Vec<String> = self.ranks.iter().map(|(found, _)| format!("pid{}", found.pid)).collect();
            let names = listed(&inside(self.root, pid, &folder));
            let own = |name: &&String| pids.iter().any(|pid| name.contains(pid.as_str()));
            for name in names.iter().filter(|name| names.len() <= BESIDE || own(name)) {
                let file = inside(self.root, pid, &folder).join(name);
                let shown = format!("{folder}/{name}");
                self.take(
                    &file,
                    &shown,
                    &self.owners(),
                    Part::Ends(HEAD, TIMED),
                    Some(self.since_s),
                    send,
                    &format!("inspector/{}", name_of(name)),
                );
            }
        }
    }

    /// Users that the ranks run as.
    fn owners(&self) -> Owner {
        Owner::Of(self.ranks.iter().filter_map(|(found, _)| user(self.root, found.pid)).collect())
    }

    /// Reads and sends one file; says why not. True where it was sent, now or before.
    #[expect(clippy::too_many_arguments, reason = "each names one thing of one file")]
    fn take(
        &mut self,
        path: &Path,
        shown: &str,
        owner: &Owner,
        part: Part,
        since_s: Option<f64>,
        send: &mut Send<'_>,
        name: &str,
    ) -> bool {
        let shown = clean(shown, 512);
        // A server that does not answer for one file does not for the next.
        if self.stalled.len() >= 3 {
            return false;
        }
        let opened = matches!(owner, Owner::Opened);
        let (path, owner, known) = (path.to_owned(), owner.clone(), self.sent.clone());
        let read = move || -> Got {
            let (file, metadata) = regular(&path, &owner)?;
            let modified = metadata.modified().ok().and_then(|at| at.duration_since(UNIX_EPOCH).ok());
            let modified = modified.map_or(0.0, |at| at.as_secs_f64());
            let who = (metadata.dev(), metadata.ino());
            if known.contains(&who) || since_s.is_some_and(|since| modified < since) {
                return Ok((Vec::new(), who, modified, None));
            }
            let bytes = match part {
                Part::Ends(head, tail) => ends(file.try_clone()?, metadata.len(), head, tail)?,
                Part::Whole(most) => whole(file.try_clone()?, metadata.len(), most)?,
            };
            Ok((bytes, who, modified, Some((file, metadata.len()))))
        };
        match within(PATIENCE, read) {
            None => {
                self.stalled.push(shown);
                false
            }
            Some(Err(why)) => {
                if why.kind() != std::io::ErrorKind::NotFound {
                    self.notes.push(format!("{shown}: not read: {why}."));
                }
                false
            }
            Some(Ok((_, who, ..))) if self.sent.contains(&who) => true,
            Some(Ok((_, _, modified, _))) if since_s.is_some_and(|since| modified < since) => {
                self.notes.push(format!("{shown}: older than the job's processes, not taken."));
                false
            }
            Some(Ok((bytes, who, _, file))) => {
                self.sent.insert(who);
                send.file(name, &bytes);
                if let Some((file, length)) = file.filter(|_| opened) {
                    self.held.push(Held { pid: 0, name: name.to_owned(), file, length, part });
                }
                true
            }
        }
    }
}

/// Epoch seconds now, by the node's wall clock.
pub(super) fn now_s() -> f64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs_f64()
}

/// The last part of a path, without what could lead elsewhere.
fn name_of(path: &str) -> String {
    let name = path.rsplit('/').next().unwrap_or(path);
    let plain = |c: char| if c.is_ascii_alphanumeric() || "._-".contains(c) { c } else { '_' };
    name.chars().take(80).map(plain).collect::<String>().trim_start_matches('.').to_owned()
}

/// The last parts of a path as one name: `attempt_0-1-stderr.log`.
fn last_parts(path: &str) -> String {
    let parts: Vec<&str> = path.rsplit('/').take(3).collect();
    name_of(&parts.into_iter().rev().collect::<Vec<_>>().join("-"))
}

/// What stands before and after the rank in a name such as `rank_3.log`.
fn around_rank(file: &str) -> Option<(&str, &str)> {
    let at = file.to_ascii_lowercase().find("rank")? + 4;
    let digits = file.get(at..)?.find(|c: char| c.is_ascii_digit())? + at;
    if file[at..digits].len() > 1 {
        return None;
    }
    let end = file[digits..].find(|c: char| !c.is_ascii_digit()).map_or(file.len(), |end| digits + end);
    Some((&file[..digits], &file[end..]))
}

fn fits(name: &str, parts: &[&str]) -> bool {
    let [first, middle @ .., last] = parts else { return parts.first().is_some_and(|only| name == *only) };
    let Some(mut rest) = name.strip_prefix(first) else { return false };
    for part in middle {
        let Some(at) = rest.find(part) else { return false };
        rest = &rest[at + part.len()..];
    }
    rest.ends_with(last)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at<'a>(root: &'a Root, order: &'a JobOrder) -> Look<'a> {
        Look {
            root,
            order,
            ranks: &[],
            since_s: 0.0,
            stalled: Vec::new(),
            notes: Vec::new(),
            sent: BTreeSet::new(),
            held: Vec::new(),
        }
    }

    #[test]
    fn the_rank_in_a_name_is_found() {
        assert_eq!(around_rank("rank_12.log"), Some(("rank_", ".log")));
        assert_eq!(around_rank("job7.rank3.err"), Some(("job7.rank", ".err")));
        assert_eq!(around_rank("slurm-7.out"), None);
        assert_eq!(around_rank("ranking of 3"), None);
    }

    #[test]
    fn logs_of_many_ranks_take_at_most_half_of_the_room_together() {
        let order = JobOrder { file_bytes: 1 << 20, ..JobOrder::default() };
        let root = Root::system();
        let look = at(&root, &order);
        let mut say = |_| {};
        let send = Send::new(8 << 20, &mut say);
        assert!(matches!(look.ends(1, &send), Part::Ends(HEAD, 0x10_0000)));
        let Part::Ends(head, tail) = look.ends(16, &send) else { panic!() };
        assert!(head > 0 && tail > head && 16 * (head + tail) <= send.room() / 2, "{head} {tail}");
    }

    #[test]
    fn a_path_with_stars_reaches_the_logs_of_a_launcher_and_no_link_in_it() {
        let dir = tempfile::tempdir().unwrap();
        for rank in ["0", "1"] {
            let folder = dir.path().join("none_x/attempt_0").join(rank);
            std::fs::create_dir_all(&folder).unwrap();
            std::fs::write(folder.join("stderr.log"), format!("[rank{rank}]: KeyError: 'x'")).unwrap();
        }
        std::os::unix::fs::symlink("0", dir.path().join("none_x/attempt_0/2")).unwrap();
        let pattern = format!("{}/*/attempt_*/*/stderr.log", dir.path().display());
        let order = JobOrder { logs: Some(pattern), file_bytes: 1 << 20, ..JobOrder::default() };
        let root = Root::system();
        let mut look = at(&root, &order);
        let mut names = Vec::new();
        let mut say = |frame| {
            if let muster_wire::Frame::Chunk(chunk) = frame {
                names.push(chunk.name);
            }
        };
        look.logs(&mut Send::new(8 << 20, &mut say));
        assert_eq!(look.notes, Vec::<String>::new());
        assert_eq!(names, ["log/beside/attempt_0-0-stderr.log", "log/beside/attempt_0-1-stderr.log"]);
    }

    #[test]
    fn a_name_with_stars_means_what_a_shell_means_by_it() {
        let fits = |name: &str, pattern: &str| fits(name, &pattern.split('*').collect::<Vec<_>>());
        assert!(
            fits("rank_3.log", "rank_*.log") && fits("rank_3.log", "*") && fits("a.b", "a.b") && fits("aXbYc", "a*b*c")
        );
        assert!(!fits("rank_3.log2", "rank_*.log") && !fits("a", "b") && !fits("ab", "a*b*b"));
        assert_eq!(name_of("/tmp/../x y\u{1b}/.rank 1"), "rank_1");
    }
}
