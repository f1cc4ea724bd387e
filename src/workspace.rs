//! Skeleton: being written.
use std::path::Path;
/// Why a path is not to be had.
pub enum Trouble {
    /// Outside or protected.
    Blocked(String),
    /// Everything else.
    Error(String),
}
/// The only place where a path becomes a file.
pub struct Workspace;
impl Workspace {
    /// The root.
    pub fn root(&self) -> &Path {
        Path::new(".")
    }
}
