//! Whether a pattern could name something protected, whatever is on the disk now: `cat .e*v`, `ls /e*c`.
//!
//! Asked before the pattern is expanded, and also of commands that only a shell will expand. What a pattern does match is judged
//! file by file later.

use std::path::Path;

use super::expand::{fits, is_pattern};
use super::words::{Ch, plain, text};
use crate::workspace::{PROTECTED_PLACES, Workspace, protected_place, protected_samples};

/// Whether `pattern`, expanded in the directory `base`, could name a protected file or place.
pub fn could_match(pattern: &[Ch], base: &Path, workspace: &Workspace) -> bool {
    let mut components = pattern.split(|ch| ch.c == '/');
    components.any(|part| is_pattern(part) && protected_samples().any(|name| fits_name(part, name)))
        || could_match_place(pattern, base, workspace)
}

/// `*` alone is in every second command and means no secret. So the first character must be written out, as bash wants it for a
/// dot.
fn fits_name(pattern: &[Ch], name: &str) -> bool {
    pattern.first().is_some_and(|ch| name.starts_with(ch.c)) && fits(pattern, name)
}

fn could_match_place(pattern: &[Ch], base: &Path, workspace: &Workspace) -> bool {
    let absolute = pattern.first().is_some_and(|ch| ch.c == '/');
    let base = if absolute { Vec::new() } else { plain(&base.to_string_lossy()) };
    let parts = folded(&[&base[..], &plain("/"), pattern].concat());
    let fits_place = |place: &&[&str]| place.iter().zip(&parts).all(|(name, part)| fits(part, name));
    parts.iter().any(|part| is_pattern(part)) && !is_own(&parts, workspace) && PROTECTED_PLACES.iter().any(fits_place)
}

/// The components, with `.` and `..` folded.
fn folded(path: &[Ch]) -> Vec<Vec<Ch>> {
    let mut parts: Vec<Vec<Ch>> = Vec::new();
    for part in path.split(|ch| ch.c == '/') {
        match text(part).as_str() {
            "" | "." => {}
            ".." => drop(parts.pop()),
            _ => parts.push(part.to_vec()),
        }
    }
    parts
}

/// A workspace in a protected place (`/dev/shm`) is the person's choice.
fn is_own(parts: &[Vec<Ch>], workspace: &Workspace) -> bool {
    let literal: String = parts.iter().map(|part| format!("/{}", text(part))).collect();
    protected_place(workspace.root()).is_some() && Path::new(&literal).starts_with(workspace.root())
}
