//! edit.
mod find;
mod splice;
