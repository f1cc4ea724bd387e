#![forbid(unsafe_code)]
#![warn(missing_docs)]
//! mini.

/// Decides which commands run at once, which ask, and which are refused.
pub mod gate;
/// The private directory of a run: spill files and notes of temporary files.
pub mod rundir;
/// The only place where a path becomes a file.
pub mod workspace;
