//! The terminal: enters and leaves it, drains events, draws when something changed, and restores it whatever happens.

use std::io::{self, IsTerminal, Write, stdin, stdout};
use std::sync::{Arc, Once};
use std::time::{Duration, Instant};

use crossterm::event::{
    self, DisableBracketedPaste, DisableMouseCapture, EnableBracketedPaste, EnableMouseCapture, MouseButton,
    MouseEvent, MouseEventKind,
};
use crossterm::execute;
use crossterm::terminal::{EnterAlternateScreen, LeaveAlternateScreen, disable_raw_mode, enable_raw_mode};
use ratatui::backend::CrosstermBackend;
use ratatui::layout::Rect;
use ratatui::{Terminal, TerminalOptions, Viewport};
use rustix::event::{PollFd, PollFlags, Timespec};

use crate::clipboard;
use crate::draw::draw;
use crate::event::{Event, Mouse};
use crate::intent::Intent;
use crate::screens;
use crate::snapshot::{Load, Mode, Snapshot};
use crate::theme::Theme;
use crate::ui::Ui;
use crate::update::update;

/// Shortest time between two frames: 30 a second.
const FRAME: Duration = Duration::from_millis(33);
/// How long to wait for a key before looking for a newer snapshot.
const POLL: Duration = Duration::from_millis(50);
/// Ages are redrawn this often while something is live.
const SECOND: Duration = Duration::from_secs(1);

/// How to draw.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// Only ASCII glyphs.
    pub ascii: bool,
    /// Colours; the caller has looked at `NO_COLOR` and `--color`.
    pub color: bool,
    /// The screen that is shown first.
    pub first: screens::Screen,
}

/// Gives the newest snapshot without waiting, and nothing once the console is to end.
pub type Source<'a> = &'a dyn Fn() -> Option<Arc<Snapshot>>;

/// What the user does.
pub trait Input {
    /// Waits until there is an event, `most` at most.
    ///
    /// # Errors
    /// When nothing more will come.
    fn wait(&mut self, most: Duration) -> io::Result<()>;

    /// The next event that is there already.
    ///
    /// # Errors
    /// When it cannot be read.
    fn next(&mut self) -> io::Result<Option<Event>>;
}

/// Runs the console on this thread until the user quits or `source` gives nothing any more. `source` gives the newest snapshot
/// and must not wait; `intents` takes every wish but [`Intent::Redraw`], and must not wait either. Where the user quits, it
/// has had [`Intent::Quit`] when this returns.
///
/// # Errors
/// When there is no terminal, or it cannot be read or written; it is restored before.
pub fn run(options: Options, source: Source<'_>, intents: &dyn Fn(Intent)) -> io::Result<()> {
    if source().is_none() {
        return Ok(());
    }
    if !stdout().is_terminal() {
        return Err(io::Error::new(io::ErrorKind::Unsupported, "the console needs a terminal"));
    }
    restore_on_panic();
    // A second console in one process keeps the first one's logger.
    let _ = tui_logger::init_logger(log::LevelFilter::Info);
    let _screen = Screen::enter()?;
    let mut keyboard = Keyboard { is_terminal: stdin().is_terminal() };
    serve(Terminal::new(CrosstermBackend::new(stdout()))?, options, &mut keyboard, (source, intents))
}

/// The same for a user and a terminal of a fixed size that are made up: what would be shown is written to `out`.
///
/// # Errors
/// When `input` or `out` fails.
pub fn rehearse<W: Write>(
    (out, width, height): (W, u16, u16),
    options: Options,
    input: &mut dyn Input,
    (source, intents): (Source<'_>, &dyn Fn(Intent)),
) -> io::Result<()> {
    let viewport = Viewport::Fixed(Rect { x: 0, y: 0, width, height });
    let terminal = Terminal::with_options(CrosstermBackend::new(out), TerminalOptions { viewport })?;
    serve(terminal, options, input, (source, intents))
}

/// Takes events and newer snapshots, and draws.
fn serve<W: Write>(
    mut terminal: Terminal<CrosstermBackend<W>>,
    options: Options,
    input: &mut dyn Input,
    (source, intents): (Source<'_>, &dyn Fn(Intent)),
) -> io::Result<()> {
    let Some(begin) = source() else { return Ok(()) };
    let size = terminal.get_frame().area();
    let mut ui = Ui::new(Theme::new(options.color, options.ascii), size.width, size.height);
    ui.show(options.first);
    let mut clock = Clock::new(begin);
    let first = update(&mut ui, Event::Snapshot, &clock.snapshot);
    first.into_iter().for_each(intents);
    let mut drawn: Option<Instant> = None;
    let (mut dirty, mut pressed) = (true, false);
    loop {
        // Results may wait for the next frame; who pressed a key does not.
        if dirty && (pressed || drawn.is_none_or(|at| at.elapsed() >= FRAME)) {
            terminal.draw(|frame| draw(&ui, &clock.snapshot, frame))?;
            drawn = Some(Instant::now());
            dirty = false;
        }
        let mut happened = Vec::new();
        // A frame that is due must not wait for the next key.
        input.wait(if dirty { FRAME } else { POLL })?;
        while let Some(event) = input.next()? {
            happened.push(event);
        }
        pressed = !happened.is_empty();
        let Some(newest) = source() else { return Ok(()) };
        happened.extend(clock.look(newest, drawn, ui.is_frozen()));
        for event in happened {
            dirty = true;
            for intent in update(&mut ui, event, &clock.snapshot) {
                if obey(&mut terminal, &intent)? {
                    continue;
                }
                let quits = intent == Intent::Quit;
                intents(intent);
                if quits {
                    return Ok(());
                }
            }
        }
    }
}

/// The terminal that this process was started on.
struct Keyboard {
    /// Whether keys come from standard input.
    is_terminal: bool,
}

impl Input for Keyboard {
    fn wait(&mut self, most: Duration) -> io::Result<()> {
        wait(most, self.is_terminal)
    }

    fn next(&mut self) -> io::Result<Option<Event>> {
        while event::poll(Duration::ZERO)? {
            if let Some(event) = translate(event::read()?) {
                return Ok(Some(event));
            }
        }
        Ok(None)
    }
}

/// Waits for a key, `most` at most. crossterm would read the end of a terminal that was closed over and over and never return, so
/// that is looked for first, where the keys come from standard input.
fn wait(most: Duration, keys: bool) -> io::Result<()> {
    if !keys {
        return event::poll(most).map(drop);
    }
    let input = stdin();
    let mut watched = [PollFd::new(&input, PollFlags::IN)];
    match rustix::event::poll(&mut watched, Some(&Timespec { tv_sec: 0, tv_nsec: most.subsec_nanos().into() })) {
        Ok(_) | Err(rustix::io::Errno::INTR) => {}
        Err(why) => return Err(why.into()),
    }
    if watched[0].revents().intersects(PollFlags::HUP | PollFlags::ERR | PollFlags::NVAL) {
        return Err(io::Error::new(io::ErrorKind::UnexpectedEof, "the terminal was closed"));
    }
    // Bytes that are no event yet: to look again at once would take a whole core until the rest of them comes.
    if watched[0].revents().contains(PollFlags::IN) && !event::poll(Duration::ZERO)? {
        std::thread::sleep(Duration::from_millis(10));
    }
    Ok(())
}

/// Does what only the terminal can; gives whether nobody else needs to know.
fn obey<W: Write>(terminal: &mut Terminal<CrosstermBackend<W>>, intent: &Intent) -> io::Result<bool> {
    match intent {
        Intent::Redraw => terminal.clear().map(|()| true),
        Intent::Suspend => {
            restore();
            stop()?;
            enter()?;
            terminal.clear().map(|()| true)
        }
        Intent::Copy(text) => {
            let out = terminal.backend_mut();
            out.write_all(clipboard::osc52(text).as_bytes())?;
            io::Write::flush(out).map(|()| false)
        }
        _ => Ok(false),
    }
}

/// Stops this process as ctrl-z does where no program has taken it; comes back when the shell continues it.
fn stop() -> io::Result<()> {
    rustix::process::kill_current_process_group(rustix::process::Signal::TSTP)?;
    Ok(())
}

fn translate(event: event::Event) -> Option<Event> {
    match event {
        event::Event::Key(key) => Some(Event::Key(key)),
        event::Event::Paste(text) => Some(Event::Paste(text)),
        event::Event::Resize(width, height) => Some(Event::Resize { width, height }),
        event::Event::Mouse(MouseEvent { kind, column: x, row: y, .. }) => Some(Event::Mouse(match kind {
            MouseEventKind::Down(MouseButton::Left) => Mouse::Click { x, y },
            MouseEventKind::ScrollDown => Mouse::Wheel { down: true },
            MouseEventKind::ScrollUp => Mouse::Wheel { down: false },
            _ => return None,
        })),
        _ => None,
    }
}

/// The newest snapshot and when it came.
struct Clock {
    snapshot: Arc<Snapshot>,
    came: Instant,
    ticked: Instant,
}

impl Clock {
    fn new(snapshot: Arc<Snapshot>) -> Self {
        let now = Instant::now();
        Self { snapshot, came: now, ticked: now }
    }

    /// What the passing of time brings: a newer snapshot, or an older one where ages are shown.
    fn look(&mut self, newest: Arc<Snapshot>, drawn: Option<Instant>, frozen: bool) -> Option<Event> {
        if newest.generation != self.snapshot.generation {
            *self = Self::new(newest);
            return Some(Event::Snapshot);
        }
        let live = matches!(self.snapshot.mode, Mode::Live { .. });
        let waiting = matches!(self.snapshot.load, Load::Loading { .. } | Load::Failed { .. });
        let every = if waiting { SECOND / 4 } else { SECOND };
        let due = self.ticked.elapsed() >= every && drawn.is_some();
        if !due || !(live || waiting || frozen || self.came.elapsed() < Duration::from_secs(90)) {
            return None;
        }
        self.ticked = Instant::now();
        let age_ms = u64::try_from(self.came.elapsed().as_millis()).unwrap_or(u64::MAX);
        Some(Event::Tick { age_ms })
    }
}

/// The alternate screen in raw mode; leaves both when dropped.
struct Screen;

impl Screen {
    fn enter() -> io::Result<Self> {
        // Where no key can be read nothing was changed, and nothing is to be put back.
        enable_raw_mode()?;
        let screen = Self;
        open()?;
        Ok(screen)
    }
}

fn enter() -> io::Result<()> {
    enable_raw_mode()?;
    open()
}

fn open() -> io::Result<()> {
    execute!(stdout(), EnterAlternateScreen, EnableBracketedPaste, EnableMouseCapture)
}

impl Drop for Screen {
    fn drop(&mut self) {
        restore();
    }
}

/// Best effort: the terminal may be gone already.
fn restore() {
    let _ =
        execute!(stdout(), DisableMouseCapture, DisableBracketedPaste, LeaveAlternateScreen, crossterm::cursor::Show);
    let _ = disable_raw_mode();
}

/// Panics are readable: the terminal is restored before the message is written.
fn restore_on_panic() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let before = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            restore();
            before(info);
        }));
    });
}
