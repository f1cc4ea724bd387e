//! The binary, driven like a user drives it, against the replay endpoint. One test binary: one link.

mod authority;
mod compaction;
mod doctor;
mod ends;
mod eval;
mod faults;
mod json;
mod keys;
mod limits;
mod misconfigured;
mod pairing;
mod permissions;
mod processes;
mod record;
mod screen;
mod sessions;
mod signals;
mod support;
mod talk;
mod tasks;
mod tidy;
mod torn;
mod trace;
mod wire;
