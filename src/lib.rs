//! `mini`: a minimal coding agent. A model proposes, a program executes, a gate decides.
#![forbid(unsafe_code)]
#![warn(missing_docs)]

pub mod advice;
pub mod agent;
pub mod approve;
pub mod attempt;
pub mod cancel;
pub mod complaint;
pub mod dialect;
pub mod endpoint;
pub mod event;
pub mod extension;
pub mod message;
pub mod process;
pub mod reply;
pub mod request;
pub mod retry;
pub mod secrets;
pub mod setup;
pub mod sse;
pub mod terminal;
pub mod tokens;
pub mod tool;
pub mod tools;
pub mod transport;
pub mod url;
pub mod watchdog;
pub mod window;
pub mod workspace;
