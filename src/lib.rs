//! `mini`: a minimal coding agent. A model proposes, a program executes, a gate decides.
//!
//! The crate is a library, and the binary is ten lines over it: an extension, a front end or a whole program of your
//! own can be built from the same public parts.
//!
//! # Layout
//!
//! Floors, lowest first; imports run downward only (a test keeps that).
//!
//! **What everything stands on**
//! - [`cancel`]: being told to stop: Ctrl-C and its kin.
//! - [`message`]: messages, and the [`History`](message::History) that keeps every tool call paired with its result.
//! - [`event`]: every step of a run as an [`Event`](event::Event); who watches is an [`Observer`](event::Observer).
//! - [`sse`]: bytes of a stream become events of a stream.  [`diff`]: what a write or an edit would change.
//!
//! **Files and commands**
//! - [`workspace`]: the only place where a path becomes a file.  [`rundir`]: a run's private directory.
//! - [`kept`]: what write and edit replace.  [`jsonl`]: files of JSON lines that survive a crash.
//! - [`gate`]: which commands run at once, which ask, which are refused.
//! - [`process`]: child processes: started, bounded, ended.  [`sandbox`]: what the kernel refuses to them.
//!
//! **The model**
//! - [`reply`]: one reply out of many deltas.  [`dialect`]: the table of what servers refuse.
//! - [`endpoint`]: request, retry, adaption; errors in words.
//!
//! **The agent**
//! - [`prices`]: what tokens cost.  [`tool`]: what a tool is; [`tools`]: read, write, edit, bash.
//! - [`extension`]: the three mounts, and extensions that are executables.
//! - [`approve`]: who may say yes, in order of authority.  [`permissions`]: rules in files.  [`window`]: fitting into the model's window.
//! - [`agent`]: **the loop, and `execute()`, the one door.** Start reading here.
//! - [`setup`]: the builder of an agent.
//!
//! **Around it**
//! - [`session`]: the log, and going on from it.  [`terminal`]: the screen and the person.  [`replay`]: a scripted endpoint.
//! - [`record`]: the wire of a run as a file that the replay plays.
//! - [`lab`]: the labs and their exams.  [`doctor`]: does everything work that a class needs?
//! - [`eval`]: versions of an agent compared on fixed cases.  [`trace`]: what happened in a run, read afterwards.
//! - [`config`]: which endpoint, key and model.  [`cli`]: the command line.

#![forbid(unsafe_code)]
#![warn(missing_docs)]

pub mod agent;
pub mod approve;
pub mod attach;
pub mod cancel;
pub mod cli;
pub mod complaint;
pub mod config;
pub mod dialect;
pub mod diff;
pub mod doctor;
pub mod endpoint;
pub mod eval;
pub mod event;
pub mod extension;
pub mod gate;
pub mod jsonl;
pub mod kept;
pub mod lab;
pub mod message;
mod nearest;
pub mod permissions;
pub mod prices;
pub mod process;
pub mod record;
pub mod replay;
pub mod reply;
pub mod rundir;
pub mod sandbox;
pub mod session;
pub mod setup;
pub mod sse;
pub mod terminal;
pub mod tokens;
pub mod tool;
pub mod tools;
pub mod trace;
pub mod window;
pub mod workspace;
