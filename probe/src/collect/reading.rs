//! Going on with a reading only where there is a value.

use muster_wire::Reading;

/// Steps on values that leave absent, denied and failed as they are.
pub(crate) trait Then<T> {
    /// The same, looked at and not taken.
    fn as_ref_reading(&self) -> Reading<&T>;
    /// Another value in place of this one.
    fn map<U>(self, step: impl FnOnce(T) -> U) -> Reading<U>;
    /// Another reading in place of this value.
    fn and_then<U>(self, step: impl FnOnce(T) -> Reading<U>) -> Reading<U>;
}

impl<T> Then<T> for Reading<T> {
    fn as_ref_reading(&self) -> Reading<&T> {
        match self {
            Self::Value(value) => Reading::Value(value),
            Self::Absent => Reading::Absent,
            Self::Denied => Reading::Denied,
            Self::Failed(why) => Reading::Failed(why.clone()),
        }
    }

    fn map<U>(self, step: impl FnOnce(T) -> U) -> Reading<U> {
        self.and_then(|value| Reading::Value(step(value)))
    }

    fn and_then<U>(self, step: impl FnOnce(T) -> Reading<U>) -> Reading<U> {
        match self {
            Self::Value(value) => step(value),
            Self::Absent => Reading::Absent,
            Self::Denied => Reading::Denied,
            Self::Failed(why) => Reading::Failed(why),
        }
    }
}
