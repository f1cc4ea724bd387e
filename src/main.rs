//! The program: the library's command line, and the extensions that come with it.

#[path = "../extensions/mod.rs"]
mod extensions;

fn main() -> std::process::ExitCode {
    let words: Vec<_> = std::env::args_os().skip(1).take(2).collect();
    if let [word, file] = &words[..]
        && let Some((_, program)) = extensions::PROGRAMS.iter().find(|(name, _)| word == name)
    {
        return program(file);
    }
    mini::cli::main(extensions::ALL)
}
