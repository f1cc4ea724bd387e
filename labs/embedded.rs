//! The files of the labs, compiled into the binary: one visible list. A test compares it with the directory.

/// Path and content, without writing each path twice: `include_bytes!` takes only literals, so no function can do it.
macro_rules! files {
    ($($path:literal)*) => { &[$(($path, include_bytes!($path))),*] };
}

/// Every file of every lab, by its path below `labs/`.
pub const FILES: &[(&str, &[u8])] = files! {};
