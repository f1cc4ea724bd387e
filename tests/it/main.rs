//! The binary, driven like a user drives it, against the replay endpoint. One test binary: one link.

mod doctor;
mod ends;
mod eval;
mod faults;
mod json;
mod keys;
mod misconfigured;
mod pairing;
mod processes;
mod record;
mod screen;
mod signals;
mod support;
mod talk;
mod tasks;
mod tidy;
mod torn;
mod wire;
