//! Skeleton: being written.

/// Child processes of a run.
#[derive(Default)]
pub struct Processes;
