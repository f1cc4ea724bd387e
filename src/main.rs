//! The program: the library's command line, and the extensions that come with it.

#[path = "../extensions/mod.rs"]
mod extensions;

fn main() -> std::process::ExitCode {
    mini::cli::main(extensions::ALL)
}
