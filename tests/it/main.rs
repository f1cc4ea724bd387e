//! The binary, driven like a user drives it, against the replay endpoint. One test binary: one link.

mod authority;
mod ends;
mod json;
mod keys;
mod limits;
mod pairing;
mod permissions;
mod processes;
mod screen;
mod signals;
mod support;
mod talk;
mod tasks;
mod tidy;
mod torn;
