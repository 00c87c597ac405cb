//! What does the node's shell do before the probe speaks? One command that finds a directory, takes the
//! bytes if they are missing, and becomes the probe: one channel and one login shell per node.
//!
//! The text holds no single quote, no newline and no exclamation mark, so that it passes unchanged through
//! sh, csh and fish inside single quotes. Every answer is a line that begins with a random word, so that
//! banners and noisy shells cannot be taken for one.

use crate::probe::{Build, Probe};

/// Names end with the host's own, so that nodes that share a home neither wait for each other's file nor lose it to another's
/// cleaning. Takes `n` random word, `f` file name, `s` size, `h` SHA-256, `z` packed size or 0, `k` kB needed; `@BUILDS@` sets them again for
/// the node's architecture. `q` where the probe lies already or nothing, `x` the same if it is to be removed from there.
const INSTALL: &str = r#"LC_ALL=C; export LC_ALL; umask 077; u=$(id -u); i=$(uname -n | tr -cd A-Za-z0-9.-); w=;
say() { echo; echo "$n $*"; };
gone() { [ -n "$x" ] && [ -O "$x" ] && rm -f "$x"; };
@BUILDS@ @SEED@
same() { [ "$(wc -c < "$1")" -eq $s ] || return 1; command -v sha256sum >/dev/null 2>&1 || return 0; set -- $(sha256sum < "$1"); [ "$1" = $h ]; };
for b in @SCRATCH@ "$XDG_RUNTIME_DIR" "$HOME/.cache" /var/tmp /tmp /dev/shm; do
[ -n "$b" ] || continue;
case $b in "$HOME/.cache") [ -d "$HOME" ] && mkdir -p "$b" 2>/dev/null;; esac;
[ -d "$b" ] || continue;
d=$b/muster-$u;
if [ -h "$d" ]; then say NOTE unsafe $d is a symbolic link; continue; fi;
[ -d "$d" ] || e=$(mkdir "$d" 2>&1) || [ -d "$d" ] || { say NOTE denied $e; continue; };
[ -O "$d" ] || { say NOTE unsafe $d belongs to another user; continue; };
chmod 700 "$d" 2>/dev/null;
t=$d/$n.$i; e=$( { : > "$t"; } 2>&1 ) || { say NOTE denied $d: $e; continue; };
chmod 700 "$t"; "$t" >/dev/null 2>&1 </dev/null; r=$?; rm -f "$t";
[ $r -eq 126 ] && { say NOTE noexec $d; continue; };
p=$d/$f.$i;
if [ -f "$p" ] && [ -x "$p" ] && [ -O "$p" ] && same "$p"; then [ -z "$x" ] || rm -f "$x"; say READY $$ kept $p; exec "$p" @ARGUMENT@; fi;
set -- $(df -Pk "$d" 2>/dev/null | tail -n 1); a=$4; [ "$a" -ge 0 ] 2>/dev/null || a=$k;
[ "$a" -lt $k ] && { say NOTE full $d has $a kB free, $k kB needed; continue; };
w=$d; break;
done;
[ -n "$w" ] || { say NONE; exit 3; };
if [ -n "$q" ] && [ -f "$q" ] && cp "$q" "$t" 2>/dev/null && same "$t" && chmod 700 "$t" && mv -f "$t" "$p"; then [ -z "$x" ] || rm -f "$x"; say READY $$ seed $p; exec "$p" @ARGUMENT@; fi;
rm -f "$t"; c=plain; [ $z -gt 0 ] && command -v gzip >/dev/null 2>&1 && c=gzip;
trap "rm -f \"\$t\"" 0; trap "exit 5" 1 2 13 15;
gone; say SEND $c $f $d;
if [ $c = gzip ]; then e=$( { head -c $z | gzip -dc > "$t"; } 2>&1 ); else e=$( { head -c $s > "$t"; } 2>&1 ); fi;
same "$t" && chmod 700 "$t" && mv -f "$t" "$p" || { say BAD $d: $e; exit 4; };
trap - 0 1 2 13 15; say READY $$ sent $p; exec "$p" @ARGUMENT@"#;

/// Says whether the probe lies where [`INSTALL`] would find it; that checks what it finds. The shell starts no other program if it can:
/// hundreds of nodes may be asked at once, and starting programs takes longest.
const FIND: &str = r#"i=; read -r i < /proc/sys/kernel/hostname; w=lacks; case $i in *_*) i=$(echo $i | tr -cd A-Za-z0-9.-);; esac;
for b in @SCRATCH@ "$XDG_RUNTIME_DIR" "$HOME/.cache" /var/tmp /tmp /dev/shm; do for f in @FILES@; do for p in "$b"/muster-*/$f.$i; do
[ -f "$p" ] && [ -x "$p" ] && [ -O "$p" ] && w=has; done; done; done; echo "$n $w $SLURMD_NODENAME""#;

/// Removes what is this host's from every probe directory of ours, and the directory when no other host has anything in it; says which.
/// Another host may have removed it meanwhile.
/// A name without a host is an older muster's.
const CLEAN: &str = r#"LC_ALL=C; export LC_ALL; u=$(id -u); i=$(uname -n | tr -cd A-Za-z0-9.-);
for b in @SCRATCH@ "$XDG_RUNTIME_DIR" "$HOME/.cache" /var/tmp /tmp /dev/shm; do
d=$b/muster-$u; [ -n "$b" ] && [ -d "$d" ] && [ -O "$d" ] || continue;
[ -h "$d" ] && continue;
e=$(rm -f "$d"/*."$i" "$d"/probe-???????????????? "$d"/muster-???????????????? 2>&1) || { echo; echo "$n KEPT $e"; continue; };
e=$(rmdir "$d" 2>&1) || if [ -d "$d" ]; then case $e in *mpty*|*xist*) ;; *) echo; echo "$n KEPT $e"; continue;; esac; fi;
echo; echo "$n GONE $d";
done; for q in /tmp/muster-????????????????.seed; do [ -h "$q" ] && continue; [ -f "$q" ] && [ -O "$q" ] && rm -f "$q"; done; echo; echo "$n END""#;

/// Where the probe lies already when a node is asked to start it. What lies there is believed only if it is the probe.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Seed {
    /// In this directory, which many see, as `muster-` and its file name; it stays there.
    Shared(String),
    /// In a file of the node alone; it is removed once it was copied.
    Broadcast(String),
}

/// Where the probe lies nowhere.
const NONE: [&str; 2] = ["q=;", "x="];

impl Seed {
    /// What the script has to know: where it lies, once the build is known, and what is to be removed.
    fn values(&self) -> [String; 2] {
        match self {
            Self::Shared(file) | Self::Broadcast(file) if !plain(file) => NONE.map(str::to_owned),
            Self::Shared(folder) => [format!("q=\"{folder}/muster-$f\";"), "x=".to_owned()],
            Self::Broadcast(file) => [format!("q=\"{file}\";"), format!("x=\"{file}\"")],
        }
    }
}

/// An answer of the node's shell.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Answer {
    /// A directory cannot be used: `denied`, `noexec`, `full` or `unsafe`, and the words for a person.
    Note(String, String),
    /// No directory can be used.
    Nowhere,
    /// Send the build with this file name into this directory, packed or not.
    Send { packed: bool, file: String, dir: String },
    /// There is no build for this architecture.
    Foreign(String),
    /// What arrived is not what was sent.
    Bad(String),
    /// The shell becomes the probe now.
    Ready { pid: u32, kept: bool, path: String },
    /// A directory was removed.
    Gone(String),
    /// A directory could not be removed.
    Kept(String),
    /// Cleaning is done.
    End,
}

/// A command for the node's login shell that installs `probe` and becomes it.
pub(crate) fn install(word: &str, probe: &Probe, scratch: &[String], argument: &str, seed: Option<&Seed>) -> String {
    let [lies, removed] = seed.map_or_else(|| NONE.map(str::to_owned), Seed::values);
    let script = INSTALL.replace("@BUILDS@", &builds(probe)).replace("@SEED@", &lies);
    wrap(&format!("n={word}; {}; {removed}; ", values(probe.main())), &script, scratch, argument)
}

/// A command that says of a node, by its name in Slurm, whether `probe` is there; [`found`] reads it.
pub(crate) fn find(word: &str, probe: &Probe, scratch: &[String]) -> String {
    let files: Vec<String> = probe.builds().map(Build::file_name).collect();
    wrap(&format!("n={word}; "), &FIND.replace("@FILES@", &files.join(" ")), scratch, "")
}

/// The node of a line that [`find`] said, and whether the probe is there.
pub(crate) fn found<'a>(line: &'a str, word: &str) -> Option<(&'a str, bool)> {
    let (verb, node) = line.trim_end().strip_prefix(word)?.strip_prefix(' ')?.split_once(' ')?;
    Some((node, verb == "has"))
}

/// What the script has to know of a build.
fn values(build: &Build) -> String {
    let packed = build.packed().map_or(0, |packed| packed.len());
    let kilobytes = build.size().div_ceil(1024) + 64;
    format!("f={}; s={}; h={}; z={packed}; k={kilobytes}", build.file_name(), build.size(), build.sha256())
}

/// Takes the build for the node's architecture, and the main one where it does not say; nothing where any build will do.
fn builds(probe: &Probe) -> String {
    let case = |build: &Build| build.machine().map(|machine| format!("{machine}) {};; ", values(build)));
    let cases: String = probe.builds().filter_map(case).collect();
    if cases.is_empty() {
        return String::new();
    }
    format!("m=$(uname -m); case $m in {cases}\"\") ;; *) gone; say MACHINE $m; exit 6;; esac;")
}

/// A command that removes our directories.
pub(crate) fn clean(word: &str, scratch: &[String]) -> String {
    wrap(&format!("n={word}; "), CLEAN, scratch, "")
}

/// A command that kills a process group and its leader.
pub(crate) fn kill(pid: u32) -> String {
    format!("sh -c 'kill -9 -{pid} 2>/dev/null; kill -9 {pid} 2>/dev/null; exit 0'")
}

/// The same for a probe that was left behind, if it is still one: its number may belong to another process by now.
pub(crate) fn kill_left(pid: u32, probe: &Probe) -> String {
    let names: String = probe.builds().map(|build| format!(" -e {}", build.file_name())).collect();
    format!("sh -c 'grep -q{names} /proc/{pid}/cmdline 2>/dev/null && kill -9 -{pid} {pid} 2>/dev/null; exit 0'")
}

/// A word no shell says by itself; also a file name.
pub(crate) fn word() -> String {
    format!("muster-{:016x}", rand::random::<u64>())
}

fn wrap(values: &str, script: &str, scratch: &[String], argument: &str) -> String {
    let dirs: Vec<String> = scratch.iter().filter(|dir| plain(dir)).map(|dir| format!("\"{dir}\"")).collect();
    let script = script.replace('\n', " ").replace("@SCRATCH@", &dirs.join(" ")).replace("@ARGUMENT@", argument);
    format!("exec sh -c '{values}{script}'")
}

/// Whether a directory may stand in the script between double quotes.
fn plain(dir: &str) -> bool {
    dir.starts_with('/') && dir.chars().all(|c| c.is_alphanumeric() || " /._-+@=,:~".contains(c))
}

/// The answer in a line, if it is one.
pub(crate) fn answer(line: &[u8], word: &str) -> Option<Answer> {
    let line = String::from_utf8_lossy(line);
    let rest = line.trim_end().strip_prefix(word)?.strip_prefix(' ')?;
    let (verb, rest) = rest.split_once(' ').unwrap_or((rest, ""));
    let clean = |text: &str| muster_wire::clean(text, 400);
    Some(match verb {
        "NOTE" => {
            let (kind, what) = rest.split_once(' ').unwrap_or((rest, ""));
            Answer::Note(kind.to_owned(), clean(what))
        }
        "NONE" => Answer::Nowhere,
        "SEND" => {
            let mut words = rest.splitn(3, ' ');
            let packed = words.next()? == "gzip";
            Answer::Send { packed, file: clean(words.next()?), dir: clean(words.next()?) }
        }
        "MACHINE" => Answer::Foreign(clean(rest)),
        "BAD" => Answer::Bad(clean(rest)),
        "READY" => {
            let mut words = rest.splitn(3, ' ');
            let pid = words.next()?.parse().ok()?;
            let kept = words.next()? == "kept";
            Answer::Ready { pid, kept, path: clean(words.next()?) }
        }
        "GONE" => Answer::Gone(clean(rest)),
        "KEPT" => Answer::Kept(clean(rest)),
        "END" => Answer::End,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read, Write};
    use std::process::{Command, Stdio};
    use std::sync::Arc;

    fn probe() -> Probe {
        let body = format!("#!/bin/sh\necho ran \"$1\"\n{}", "# padding\n".repeat(500));
        Probe::new(Arc::from(body.into_bytes()))
    }

    fn sh(home: &std::path::Path, command: &str, input: &[u8]) -> String {
        let mut child = Command::new("sh")
            .arg("-c")
            .arg(command)
            .env_clear()
            .env("PATH", "/usr/bin:/bin")
            .env("HOME", home)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        child.stdin.take().unwrap().write_all(input).ok();
        let mut out = String::new();
        child.stdout.take().unwrap().read_to_string(&mut out).unwrap();
        child.wait().unwrap();
        out
    }

    fn answers(out: &str, word: &str) -> Vec<Answer> {
        out.lines().filter_map(|line| answer(line.as_bytes(), word)).collect()
    }

    #[test]
    fn nothing_in_the_scripts_upsets_a_login_shell() {
        for script in [INSTALL, FIND, CLEAN] {
            assert!(!script.contains(['\'', '!']));
        }
        assert!(!install("w", &probe(), &[], "serve", None).contains('\n'));
    }

    #[test]
    fn the_probe_is_sent_once_and_kept_after_that() {
        let home = tempfile::tempdir().unwrap();
        let probe = probe();
        let command = install("w", &probe, &[], "serve", None);
        let packed = probe.main().packed().unwrap();
        let first = sh(home.path(), &command, &packed);
        assert!(first.contains("ran serve"), "{first}");
        assert!(matches!(
            answers(&first, "w").as_slice(),
            [Answer::Send { packed: true, .. }, Answer::Ready { kept: false, .. }]
        ));
        let second = sh(home.path(), &command, b"");
        assert!(matches!(answers(&second, "w").as_slice(), [Answer::Ready { kept: true, .. }]), "{second}");
        let gone = sh(home.path(), &clean("w", &[]), b"");
        assert!(answers(&gone, "w").iter().any(|a| matches!(a, Answer::Gone(_))), "{gone}");
    }

    #[test]
    fn a_node_says_whether_it_has_the_probe() {
        let home = tempfile::tempdir().unwrap();
        let probe = probe();
        let find = format!("export SLURMD_NODENAME=n001; {}", find("w", &probe, &[]));
        let says = || sh(home.path(), &find, b"");
        assert_eq!(found(&says(), "w"), Some(("n001", false)));
        sh(home.path(), &install("w", &probe, &[], "serve", None), &probe.main().packed().unwrap());
        assert_eq!(found(&says(), "w"), Some(("n001", true)));
        sh(home.path(), &clean("w", &[]), b"");
        assert_eq!(found(&says(), "w"), Some(("n001", false)));
        assert_eq!(found("n001", "w"), None);
    }

    #[test]
    fn a_node_whose_name_holds_an_underscore_is_found_to_have_the_probe() {
        let (home, probe) = (tempfile::tempdir().unwrap(), probe());
        let uname = home.path().join("uname");
        let name = home.path().join("hostname");
        std::fs::write(&uname, "#!/bin/sh\necho gpu_01.hall-2\n").unwrap();
        std::fs::set_permissions(&uname, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
        std::fs::write(&name, "gpu_01.hall-2\n").unwrap();
        let install = install("w", &probe, &[], "serve", None);
        let install = format!("PATH={}:$PATH; export PATH; {install}", home.path().display());
        sh(home.path(), &install, &probe.main().packed().unwrap());
        let find = find("w", &probe, &[]).replace("/proc/sys/kernel/hostname", &name.display().to_string());
        assert_eq!(
            found(&sh(home.path(), &format!("export SLURMD_NODENAME=gpu1; {find}"), b""), "w"),
            Some(("gpu1", true))
        );
    }

    #[test]
    fn a_directory_that_another_host_removes_at_the_same_moment_is_gone_and_no_trouble() {
        let home = tempfile::tempdir().unwrap();
        let bin = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(home.path().join(".cache/muster-4242")).unwrap();
        std::fs::write(bin.path().join("id"), "#!/bin/sh\necho 4242\n").unwrap();
        std::fs::write(bin.path().join("rmdir"), "#!/bin/sh\n/bin/rmdir \"$1\"\nexec /bin/rmdir \"$1\"\n").unwrap();
        for name in ["id", "rmdir"] {
            let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
            std::fs::set_permissions(bin.path().join(name), mode).unwrap();
        }
        let command = format!("PATH={}:$PATH; export PATH; {}", bin.path().display(), clean("w", &[]));
        let said = sh(home.path(), &command, b"");
        assert!(matches!(answers(&said, "w").as_slice(), [Answer::Gone(_), Answer::End]), "{said}");
    }

    #[test]
    fn hosts_with_one_home_have_a_file_each_and_clean_only_their_own() {
        let home = tempfile::tempdir().unwrap();
        let bin = tempfile::tempdir().unwrap();
        let host = |name: &str, command: &str, input: &[u8]| {
            let uname = bin.path().join("uname");
            std::fs::write(&uname, format!("#!/bin/sh\necho {name}\n")).unwrap();
            std::fs::set_permissions(&uname, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
            sh(home.path(), &format!("PATH={}:$PATH; export PATH; {command}", bin.path().display()), input)
        };
        let probe = probe();
        let (install, packed) = (install("w", &probe, &[], "serve", None), probe.main().packed().unwrap());
        for name in ["n001", "n002"] {
            let said = host(name, &install, &packed);
            assert!(matches!(answers(&said, "w").first(), Some(Answer::Send { .. })), "{name}: {said}");
        }
        let files = || walk(home.path()).into_iter().filter(|path| path.is_file()).collect::<Vec<_>>();
        assert_eq!(files().len(), 2);
        host("n001", &clean("w", &[]), b"");
        assert_eq!(files().len(), 1, "the other one's stays");
        let said = host("n002", &install, b"");
        assert!(matches!(answers(&said, "w").as_slice(), [Answer::Ready { kept: true, .. }]), "{said}");
        let said = host("n002", &clean("w", &[]), b"");
        assert!(answers(&said, "w").iter().any(|answer| matches!(answer, Answer::Gone(_))), "{said}");
        assert!(!walk(home.path()).iter().any(|path| path.to_string_lossy().contains("muster-")));
    }

    #[test]
    fn every_login_shell_that_is_here_runs_the_script() {
        let body = format!("#!/bin/sh\necho ran \"$1\"\n{}", "# padding\n".repeat(500));
        let probe = Probe::of((std::env::consts::ARCH, Arc::from(body.into_bytes())), []);
        let mut ran = 0;
        for shell in ["dash", "bash", "zsh", "tcsh", "fish", "ksh", "mksh"] {
            let home = tempfile::tempdir().unwrap();
            let command = install("w", &probe, &[], "serve", None);
            let started = Command::new(shell)
                .arg("-c")
                .arg(&command)
                .env_clear()
                .env("PATH", "/usr/bin:/bin")
                .env("HOME", home.path())
                .stdin(Stdio::piped())
                .stdout(Stdio::piped())
                .stderr(Stdio::null())
                .spawn();
            let Ok(mut child) = started else { continue };
            child.stdin.take().unwrap().write_all(&probe.main().packed().unwrap()).unwrap();
            let out = child.wait_with_output().unwrap();
            let out = String::from_utf8_lossy(&out.stdout).into_owned();
            assert!(out.contains("ran serve"), "{shell}: {out}");
            ran += 1;
        }
        assert!(ran > 0);
    }

    #[test]
    fn every_architecture_has_the_build_for_it_and_others_say_what_they_are() {
        let bin = tempfile::tempdir().unwrap();
        let build = |machine: &'static str| {
            let body = format!("#!/bin/sh\necho ran on {machine}\n{}", "# padding\n".repeat(500));
            (machine, Arc::from(body.into_bytes()))
        };
        let probe = Probe::of(build("x86_64"), [build("aarch64")]);
        let command = install("w", &probe, &[], "serve", None);
        let uname = bin.path().join("uname");
        for machine in ["x86_64", "aarch64", "riscv64"] {
            let home = tempfile::tempdir().unwrap();
            std::fs::write(&uname, format!("#!/bin/sh\n[ $1 = -m ] && echo {machine} || echo n001\n")).unwrap();
            std::fs::set_permissions(&uname, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
            let on_it = format!("PATH={}:$PATH; export PATH; {command}", bin.path().display());
            let Some(own) = probe.builds().find(|build| build.machine() == Some(machine)) else {
                let said = sh(home.path(), &on_it, b"");
                assert_eq!(answers(&said, "w"), [Answer::Foreign(machine.to_owned())]);
                continue;
            };
            let seed = home.path().join("other.seed");
            std::fs::write(&seed, "the build for others").unwrap();
            let left = Seed::Broadcast(seed.display().to_string());
            let command = install("w", &probe, &[], "serve", Some(&left));
            let on_it = format!("PATH={}:$PATH; export PATH; {command}", bin.path().display());
            let said = sh(home.path(), &on_it, &own.packed().unwrap());
            let asked = answers(&said, "w").into_iter().next();
            assert!(matches!(asked, Some(Answer::Send { file, .. }) if file == own.file_name()), "{said}");
            assert!(said.contains(&format!("ran on {machine}")) && !seed.exists(), "{said}");
        }
        std::fs::write(&uname, "#!/bin/sh\nexit 1\n").unwrap();
        let home = tempfile::tempdir().unwrap();
        let on_it = format!("PATH={}:$PATH; export PATH; {command}", bin.path().display());
        let said = sh(home.path(), &on_it, &probe.main().packed().unwrap());
        assert!(said.contains("ran on x86_64"), "the main build where the node does not say: {said}");
    }

    #[test]
    fn a_damaged_probe_on_the_node_is_sent_again() {
        let home = tempfile::tempdir().unwrap();
        let probe = probe();
        let command = install("w", &probe, &[], "serve", None);
        let first = sh(home.path(), &command, &probe.main().packed().unwrap());
        let Some(Answer::Ready { path, .. }) = answers(&first, "w").pop() else { panic!("{first}") };
        let mut bytes = std::fs::read(&path).unwrap();
        let last = bytes.len() - 2;
        bytes[last] ^= 1;
        std::fs::write(&path, bytes).unwrap();
        let second = sh(home.path(), &command, &probe.main().packed().unwrap());
        assert!(matches!(answers(&second, "w").first(), Some(Answer::Send { .. })), "{second}");
    }

    #[test]
    fn a_probe_that_lies_there_already_is_taken_only_if_it_is_the_probe() {
        let probe = probe();
        for (bytes, taken) in [(probe.main().bytes().to_vec(), true), (vec![b'#'; probe.main().size()], false)] {
            let home = tempfile::tempdir().unwrap();
            let file = home.path().join(format!("muster-{}", probe.main().file_name()));
            let [folder, name] = [home.path(), &file].map(|path| path.display().to_string());
            for (seed, stays) in [(Seed::Shared(folder), true), (Seed::Broadcast(name), false)] {
                std::fs::write(&file, &bytes).unwrap();
                let said = sh(home.path(), &install("w", &probe, &[], "serve", Some(&seed)), b"");
                let first = answers(&said, "w").into_iter().next();
                assert_eq!(matches!(first, Some(Answer::Ready { .. })), taken, "{seed:?}: {said}");
                assert_eq!((said.contains("ran serve"), file.exists()), (taken, stays), "{seed:?}");
            }
        }
        assert!(!install("w", &probe, &[], "serve", Some(&Seed::Shared("/a$(reboot)".into()))).contains("reboot"));
    }

    #[test]
    fn a_truncated_upload_is_bad_and_leaves_no_file() {
        let home = tempfile::tempdir().unwrap();
        let probe = probe();
        let packed = probe.main().packed().unwrap();
        let out = sh(home.path(), &install("w", &probe, &[], "serve", None), &packed[..packed.len() / 2]);
        assert!(matches!(answers(&out, "w").last(), Some(Answer::Bad(_))), "{out}");
        let left = walk(home.path());
        assert!(left.iter().all(|path| path.is_dir()), "{left:?}");
    }

    #[test]
    fn a_planted_symbolic_link_is_not_followed() {
        let home = tempfile::tempdir().unwrap();
        let elsewhere = tempfile::tempdir().unwrap();
        std::fs::create_dir(home.path().join(".cache")).unwrap();
        let uid = rustix::process::getuid().as_raw();
        std::os::unix::fs::symlink(elsewhere.path(), home.path().join(format!(".cache/muster-{uid}"))).unwrap();
        let out = sh(home.path(), &install("w", &probe(), &[], "serve", None), b"");
        assert!(matches!(answers(&out, "w").first(), Some(Answer::Note(kind, _)) if kind == "unsafe"), "{out}");
        assert_eq!(std::fs::read_dir(elsewhere.path()).unwrap().count(), 0);
    }

    #[test]
    fn noise_is_no_answer() {
        assert_eq!(answer(b"Welcome w NONE", "w"), None);
        assert_eq!(answer(b"w NONE\r", "w"), Some(Answer::Nowhere));
        assert_eq!(answer(b"w READY x kept /p", "w"), None);
    }

    #[test]
    fn strange_scratch_directories_do_not_reach_the_shell() {
        let dirs = ["/ok dir".to_owned(), "/a$(reboot)".to_owned(), "rel".to_owned(), "/q'x".to_owned()];
        let command = clean("w", &dirs);
        assert!(command.contains("\"/ok dir\"") && !command.contains("reboot") && !command.contains("/q"));
    }

    fn walk(dir: &std::path::Path) -> Vec<std::path::PathBuf> {
        let mut found = Vec::new();
        for entry in std::fs::read_dir(dir).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                found.extend(walk(&path));
            }
            found.push(path);
        }
        found
    }
}
