//! The program: the library's command line, and the extensions that come with it.

#[path = "../extensions/mod.rs"]
mod extensions;

fn main() {
    for (name, _, help) in extensions::ALL {
        println!("{name:12} {help}");
    }
}
