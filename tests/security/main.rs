//! What SECURITY.md promises, tried on the built binary.

#[allow(dead_code)] // Shared with the other tests of the binary, which use more of it.
#[path = "../gate/fixture.rs"]
mod fixture;
#[allow(dead_code)]
#[path = "../it/support.rs"]
mod support;

mod canaries;
mod promises;
mod question;
mod sandbox;
