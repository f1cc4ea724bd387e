//! The four tools, and their table.
mod edit;

use crate::tool::Tool;

/// The tools that every agent has, in the order they are offered.
pub fn all() -> Vec<Box<dyn Tool>> {
    vec![]
}
