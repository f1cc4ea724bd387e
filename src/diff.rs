//! Line diffs.
