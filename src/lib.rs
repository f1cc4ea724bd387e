#![forbid(unsafe_code)]
pub mod replay;
