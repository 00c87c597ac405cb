//! Breaks a node in the ways in which nodes break.

use std::fs;
use std::io::Write;
use std::process::{Child, Command, Stdio};

use anyhow::{Context, Result, bail};

use crate::node::Node;
use crate::shell::run;

/// Every directory that the console tries for its probe.
const CANDIDATES: [&str; 4] = ["/root/.cache", "/var/tmp", "/tmp", "/dev/shm"];

impl Node {
    /// Runs a script inside the node.
    ///
    /// # Errors
    /// When the node is not up or the script fails.
    pub fn sh(&self, script: &str) -> Result<String> {
        let pid = self.init()?.to_string();
        let words = ["nsenter", "--all", "--target", &pid, "--root", "--wd", "--", "sh", "-c", script];
        run(&words).with_context(|| self.name.clone())
    }

    /// The same under the node's limits: what it starts is slowed, frozen and counted with the node.
    ///
    /// # Errors
    /// As for [`Node::sh`].
    pub fn sh_within(&self, script: &str) -> Result<String> {
        let pid = self.init()?.to_string();
        let enter = "exec nsenter --all --target \"$1\" --root --wd -- sh -c \"$2\"";
        let start = format!("{} {enter}", self.joins());
        run(&["sh", "-c", &start, "sh", &pid, script]).with_context(|| self.name.clone())
    }

    /// Drops each packet of more than 1,000 bytes that it sends to one of `addresses`, until the next call: a fault that short probes
    /// do not see. None are dropped for an empty list.
    ///
    /// # Errors
    /// When nft is not there or refuses.
    pub fn drop_long_packets(&self, addresses: &[&str]) -> Result<()> {
        let rule = format!("ip daddr {{ {} }} meta length > 1000 drop", addresses.join(", "));
        let rules = if addresses.is_empty() { String::new() } else { format!("nft add rule ip long out '{rule}'") };
        let chain = "nft add chain ip long out '{ type filter hook output priority 0; }'";
        self.sh(&format!("nft delete table ip long 2>/dev/null; nft add table ip long && {chain}; {rules}")).map(drop)
    }

    /// A line of its sshd's configuration, in place of the one with the same keyword.
    ///
    /// # Errors
    /// When the node is not up.
    pub fn sshd(&self, line: &str) -> Result<()> {
        let listening = "[ -n \"$(ss -Htln sport = :22)\" ]";
        // It closes its socket first and then begins anew.
        let reload = format!("kill -HUP 1; sleep 0.2; until {listening}; do sleep 0.05; done");
        let keyword = line.split(' ').next().unwrap_or_default();
        self.sh(&format!("sed -i -e '/^{keyword} /d' -e '1i {line}' /run/sshd_config; {reload}")).map(drop)
    }

    /// A server banner, and a login shell that talks before the command runs.
    ///
    /// # Errors
    /// When the node is not up.
    pub fn talkative(&self) -> Result<()> {
        self.sh("printf 'AUTHORISED USE ONLY\\n{\"not\": \"the JSON\"}\\n' > /etc/issue.net")?;
        self.sh("printf 'echo Welcome\\necho problem >&2\\n' > /root/.bashrc")?;
        self.sshd("Banner /etc/issue.net")
    }

    /// A login shell that takes `seconds` to read its files.
    ///
    /// # Errors
    /// When the node is not up.
    pub fn slow_login(&self, seconds: u32) -> Result<()> {
        self.sh(&format!("echo sleep {seconds} > /root/.bashrc")).map(drop)
    }

    /// Another login shell for root.
    ///
    /// # Errors
    /// When the node is not up.
    pub fn login_shell(&self, shell: &str) -> Result<()> {
        self.sh(&format!("sed -i 's|^\\(root:.*:\\)[^:]*$|\\1{shell}|' /etc/passwd")).map(drop)
    }

    /// Makes every wall time that a probe tells on this node wrong by `nanos`; `filter` is the program that does it.
    ///
    /// # Errors
    /// When the node is not up.
    pub fn shift_clock(&self, filter: &[u8], nanos: i64) -> Result<()> {
        self.put("/usr/local/bin/clock-shift", filter)?;
        let shell = format!("#!/bin/bash\nset -o pipefail\n/bin/bash \"$@\" | /usr/local/bin/clock-shift {nanos}\n");
        self.put("/usr/local/bin/shifted", shell.as_bytes())?;
        self.login_shell("/usr/local/bin/shifted")
    }

    /// Whatever is started on this node over SSH, `program` answers instead, as a hostile node of this `kind`.
    ///
    /// # Errors
    /// When the node is not up.
    pub fn hostile(&self, program: &[u8], kind: &str) -> Result<()> {
        self.put("/usr/local/bin/hostile-probe", program)?;
        let shell = format!("#!/bin/sh\nexec /usr/local/bin/hostile-probe {kind} \"$@\"\n");
        self.put("/usr/local/bin/hostile", shell.as_bytes())?;
        self.login_shell("/usr/local/bin/hostile")
    }

    /// Writes a program into the node.
    pub(crate) fn put(&self, path: &str, content: &[u8]) -> Result<()> {
        let pid = self.init()?.to_string();
        let mut child = Command::new("nsenter")
            .args(["--all", "--target", &pid, "--root", "--wd", "--", "sh", "-c"])
            .arg(format!("cat > {path} && chmod 755 {path}"))
            .stdin(Stdio::piped())
            .spawn()?;
        child.stdin.take().context("no standard input")?.write_all(content)?;
        if child.wait()?.success() { Ok(()) } else { bail!("{}: {path} was not written", self.name) }
    }

    /// Lets nobody in.
    ///
    /// # Errors
    /// When the node is not up.
    pub fn deny(&self) -> Result<()> {
        self.sh("rm /root/.ssh/authorized_keys").map(drop)
    }

    /// Stops its sshd, which then accepts connections and says nothing.
    ///
    /// # Errors
    /// When the node is not up.
    pub fn mute(&self) -> Result<()> {
        run(&["kill", "-STOP", &self.init()?.to_string()]).map(drop)
    }

    /// Fills every directory that the probe may go to.
    ///
    /// # Errors
    /// When the node is not up.
    pub fn fill_disks(&self) -> Result<()> {
        for dir in CANDIDATES {
            self.sh(&format!("mount -t tmpfs -o size=256k,mode=1777 full {dir}; cat /dev/zero > {dir}/f || true"))?;
        }
        Ok(())
    }

    /// Forbids execution in the first `count` of the probe's directories.
    ///
    /// # Errors
    /// When the node is not up.
    pub fn forbid_execution(&self, count: usize) -> Result<()> {
        for dir in CANDIDATES.iter().take(count) {
            self.sh(&format!("mount -t tmpfs -o noexec,mode=1777 noexec {dir}"))?;
        }
        Ok(())
    }

    /// Makes root's home read-only.
    ///
    /// # Errors
    /// When the node is not up.
    pub fn read_only_home(&self) -> Result<()> {
        self.sh("umount /root/.cache; mount -o remount,ro /root").map(drop)
    }

    /// Gives it `home`, which other nodes may have as well, as a network file system would.
    ///
    /// # Errors
    /// When the node is not up.
    pub fn share_home(&self, home: &str) -> Result<()> {
        let pid = self.init()?.to_string();
        let own = format!("{}/root", self.root().display());
        run(&["nsenter", "--mount", "--target", &pid, "--", "mount", "--bind", home, &own]).map(drop)
    }

    /// Kills the probe, and nothing else.
    ///
    /// # Errors
    /// When none runs.
    pub fn kill_probe(&self) -> Result<()> {
        let probes = self.probe_pids();
        if probes.is_empty() {
            bail!("{}: no probe to kill", self.name);
        }
        probes.iter().try_for_each(|pid| run(&["kill", "-KILL", pid]).map(drop))
    }

    /// Opens a connection from namespace `netns` and says nothing for `seconds`: for sshd, a login under way.
    ///
    /// # Errors
    /// When the connection cannot be made.
    pub fn hold_login(&self, netns: &str, seconds: u32) -> Result<Child> {
        let script = format!("exec 3<>/dev/tcp/{}/22 && echo open && exec sleep {seconds}", self.address);
        let mut child = Command::new("nsenter")
            .args([&format!("--net=/run/netns/{netns}"), "--", "bash", "-c", &script])
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()?;
        let mut word = [0; 4];
        let out = child.stdout.as_mut().context("no standard output")?;
        std::io::Read::read_exact(out, &mut word).context("nobody listens")?;
        Ok(child)
    }

    /// Process number of its first process as this machine has it.
    pub(crate) fn init(&self) -> Result<u32> {
        let pids = run(&["ip", "netns", "pids", &self.netns])?;
        let first = |pid: &&str| {
            let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
            status.lines().any(|l| l.starts_with("NSpid:") && l.split_whitespace().last() == Some("1"))
        };
        let found = pids.split_whitespace().find(first).with_context(|| format!("{} is not up", self.name))?;
        Ok(found.parse()?)
    }
}
