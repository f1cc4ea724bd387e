//! The command line.
pub mod help;
pub mod input;
pub mod options;
