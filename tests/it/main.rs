//! The binary, driven like a user drives it, against the replay endpoint. One test binary: one link.

mod ends;
mod json;
mod keys;
mod pairing;
mod processes;
mod screen;
mod signals;
mod support;
mod talk;
mod tasks;
mod tidy;
mod torn;
mod trace;
