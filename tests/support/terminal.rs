//! The console on a terminal: keys in, what the screen shows out.

use std::io::{Read, Write};
use std::num::NonZero;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use rustix::process::{Pid, Signal, kill_process};

/// How often the screen is looked at, and for how long at most.
const LOOK: Duration = Duration::from_millis(50);
const PATIENCE: Duration = Duration::from_secs(180);

/// A console on a terminal of its own; ends when it is dropped.
pub struct Terminal {
    child: Child,
    keys: ChildStdin,
    screen: Arc<Mutex<vt100::Parser>>,
    pressed: usize,
}

impl std::fmt::Display for Terminal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.text())
    }
}

impl Terminal {
    /// Starts `command` on a terminal of this many rows and columns. `script` makes it, so that it is a real one.
    ///
    /// # Errors
    /// When `script` is not there.
    pub fn open(command: &Command, (rows, columns): (NonZero<u16>, NonZero<u16>)) -> Result<Self> {
        let words = std::iter::once(command.get_program()).chain(command.get_args());
        let quoted: Vec<String> = words.map(|word| quote(&word.to_string_lossy())).collect();
        // Whoever runs the tests may ignore signals, as nohup does; a terminal's own programs do not.
        let started = format!("exec env --default-signal=HUP,INT,QUIT {}", quoted.join(" "));
        let line = format!("stty rows {rows} cols {columns}; {started}");
        let mut script = Command::new("script");
        script.args(["-qefc", &line, "/dev/null"]).env("TERM", "xterm-256color").env("LANG", "C.UTF-8");
        if let Some(dir) = command.get_current_dir() {
            script.current_dir(dir);
        }
        for (name, value) in command.get_envs() {
            match value {
                Some(value) => script.env(name, value),
                None => script.env_remove(name),
            };
        }
        let piped = script.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = piped.spawn().context("cannot start `script`")?;
        let keys = child.stdin.take().context("no keyboard")?;
        let mut out = child.stdout.take().context("no screen")?;
        let screen = Arc::new(Mutex::new(vt100::Parser::new(rows, columns, 0)));
        let drawn = screen.clone();
        std::thread::spawn(move || {
            let mut bytes = [0; 1 << 14];
            while let Ok(n @ 1..) = out.read(&mut bytes) {
                drawn.lock().unwrap_or_else(PoisonError::into_inner).process(&bytes[..n]);
            }
        });
        Ok(Self { child, keys, screen, pressed: 0 })
    }

    /// Presses keys, one for each character: `\r` is enter, `\x1b` escape, `\t` tab.
    ///
    /// # Errors
    /// When the console has ended.
    pub fn press(&mut self, keys: &str) -> Result<()> {
        for key in keys.chars() {
            self.keys.write_all(key.to_string().as_bytes())?;
            self.keys.flush()?;
            self.pressed += 1;
            // An escape with a key right behind it is another key.
            std::thread::sleep(LOOK);
        }
        Ok(())
    }

    /// Keys pressed since this was last asked.
    pub fn pressed(&mut self) -> usize {
        std::mem::take(&mut self.pressed)
    }

    /// What the screen shows.
    #[must_use]
    pub fn text(&self) -> String {
        self.screen.lock().unwrap_or_else(PoisonError::into_inner).screen().contents()
    }

    /// Whether a program has switched to the alternate screen, as the console does until it ends.
    #[must_use]
    pub fn is_taken(&self) -> bool {
        self.screen.lock().unwrap_or_else(PoisonError::into_inner).screen().alternate_screen()
    }

    /// Sends the console a signal and waits for its end: its exit code.
    ///
    /// # Errors
    /// When it cannot be sent, or the console does not end in three minutes.
    pub fn end_by(&mut self, signal: Signal) -> Result<Option<i32>> {
        kill_process(self.console()?, signal)?;
        self.ended().with_context(|| format!("after {signal:?}"))
    }

    /// Waits for the console's end: its exit code.
    ///
    /// # Errors
    /// When it does not end in three minutes.
    pub fn ended(&mut self) -> Result<Option<i32>> {
        let begin = Instant::now();
        while begin.elapsed() < PATIENCE {
            if let Some(status) = self.child.try_wait()? {
                return Ok(status.code());
            }
            std::thread::sleep(LOOK);
        }
        bail!("the console goes on:\n{}", self.text())
    }

    /// Closes the terminal under the console, as a lost connection does, and waits for the console's end.
    ///
    /// # Errors
    /// When there is no console, or it goes on for three minutes.
    pub fn close(&mut self) -> Result<()> {
        let console = self.console()?;
        self.child.kill()?;
        let begin = Instant::now();
        while begin.elapsed() < PATIENCE {
            // Whoever adopted it may not have asked how it ended.
            let stat = std::fs::read_to_string(format!("/proc/{}/stat", console.as_raw_nonzero())).unwrap_or_default();
            if stat.rsplit(')').next().is_none_or(|rest| rest.trim_start().is_empty() || rest.starts_with(" Z")) {
                return Ok(());
            }
            std::thread::sleep(LOOK);
        }
        let _ = kill_process(console, Signal::KILL);
        bail!("the console goes on without a terminal")
    }

    fn console(&self) -> Result<Pid> {
        let id = self.child.id();
        let children = std::fs::read_to_string(format!("/proc/{id}/task/{id}/children"))?;
        let console = children.split_whitespace().find_map(|pid| Pid::from_raw(pid.parse().ok()?));
        console.context("there is no console")
    }

    /// Waits until the screen shows what is wanted; gives what it shows then.
    ///
    /// # Errors
    /// When it does not in three minutes; the message holds the screen.
    pub fn wait(&self, what: &str, wanted: impl Fn(&str) -> bool) -> Result<String> {
        let begin = Instant::now();
        loop {
            let text = self.text();
            if wanted(&text) {
                return Ok(text);
            }
            if begin.elapsed() > PATIENCE {
                bail!("the screen never showed {what}:\n{text}");
            }
            std::thread::sleep(LOOK);
        }
    }

    /// Waits until the screen shows this text.
    ///
    /// # Errors
    /// As [`Terminal::wait`].
    pub fn shows(&self, wanted: &str) -> Result<String> {
        self.wait(wanted, |text| text.contains(wanted))
    }
}

fn quote(word: &str) -> String {
    format!("'{}'", word.replace('\'', r"'\''"))
}

impl Drop for Terminal {
    fn drop(&mut self) {
        // A hang-up ends the console too, and gives its probes the time to go.
        let _ = self.keys.write_all(b"\x03\x03");
        std::thread::sleep(Duration::from_millis(300));
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
