//! What a panic said: kept for the outcome of the work it ended, instead of on a stream that nobody reads.

use std::any::Any;
use std::panic::{AssertUnwindSafe, PanicHookInfo, catch_unwind};
use std::sync::Mutex;

static LAST: Mutex<Option<String>> = Mutex::new(None);

/// From now on the first panic's message and place are kept for [`take`].
pub(crate) fn keep_panics() {
    std::panic::set_hook(Box::new(|info| {
        if let Ok(mut last) = LAST.lock() {
            last.get_or_insert_with(|| describe(info));
        }
    }));
}

/// The first panic since the last call, in any thread.
pub(crate) fn take() -> Option<String> {
    LAST.lock().ok()?.take()
}

/// Runs `work`; a panic in it becomes its message.
pub(crate) fn caught<T>(work: impl FnOnce() -> T) -> Result<T, String> {
    catch_unwind(AssertUnwindSafe(work))
        .map_err(|payload| format!("internal error: {}", take().unwrap_or_else(|| text(payload.as_ref()).to_owned())))
}

fn describe(info: &PanicHookInfo<'_>) -> String {
    let place = info.location().map(|at| format!(" at {}:{}", at.file(), at.line())).unwrap_or_default();
    format!("{}{place}", text(info.payload()))
}

fn text(payload: &(dyn Any + Send)) -> &str {
    let owned = payload.downcast_ref::<String>().map(String::as_str);
    owned.or_else(|| payload.downcast_ref::<&str>().copied()).unwrap_or("a panic without words")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_becomes_its_message() {
        let ended = caught(|| panic!("cache {} is missing", 3));
        assert!(ended.unwrap_err().contains("cache 3 is missing"));
        assert_eq!(caught(|| 4), Ok(4));
    }
}
