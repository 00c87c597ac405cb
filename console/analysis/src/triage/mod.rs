//! Why a job failed, hangs or is slow: the root cause in what its nodes wrote and counted.

pub mod category;
pub mod rules;
pub mod stamp;

pub use category::Category;
