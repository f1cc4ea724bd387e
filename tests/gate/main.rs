//! The gate and the workspace against their corpora (tests/cases), with everything that runs really executed.

mod fixture;
mod git;
mod nagging;
mod paths;
mod properties;
mod verdicts;
mod watch;
mod watched;
