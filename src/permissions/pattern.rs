//! Patterns of rules: `*` any characters, `?` one, `**` any characters also across `/`, `\` takes the next one as it is.
//!
//! Written by hand, since all there is to it fits on a screen, and since a rule has to mean the same here as in its
//! description. A pattern is compared token by token with the set of places that the tokens so far can reach, so no pattern
//! takes long.

/// One token of a pattern.
enum Token {
    Char(char),
    /// `?`
    One,
    /// `*`
    Some,
    /// `**`
    Deep,
    /// `**/`: any directories, also none.
    Directories,
}

/// Whether a path below the workspace fits. A pattern without `/` is about the file's name, in any directory; one that ends
/// in `/` about all that is below.
pub fn path(pattern: &str, path: &str) -> bool {
    let by_name = !pattern.contains('/') && pattern != "**";
    let pattern = pattern.strip_prefix("./").or(pattern.strip_prefix('/')).unwrap_or(pattern);
    let pattern = if pattern.ends_with('/') { format!("{pattern}**") } else { pattern.to_owned() };
    let text = if by_name { path.rsplit('/').next().unwrap_or(path) } else { path };
    // Its file system takes `A.SECRET` for `a.secret`.
    match cfg!(target_os = "macos") {
        true => fits(&pattern.to_lowercase(), &text.to_lowercase(), '/'),
        false => fits(&pattern, text, '/'),
    }
}

/// Whether a command begins with these words, each a pattern. `by_any_path`: the program may also be named by its path.
/// That is for rules that stop something. One that allows means the program it names: a stranger's repository may bring
/// a `./cargo` of its own.
pub fn words(pattern: &str, command: &[String], by_any_path: bool) -> bool {
    let wanted = split(pattern);
    let named = |wanted: &str, word: &str| word.rsplit('/').next().is_some_and(|name| fits(wanted, name, '\0'));
    let word = |(at, (wanted, word)): (usize, (&String, &String))| {
        fits(wanted, word, '\0') || (at == 0 && by_any_path && named(wanted, word))
    };
    wanted.len() <= command.len() && wanted.iter().zip(command).enumerate().all(word)
}

/// The pattern of commands that begin with exactly these words.
pub fn of_words(words: &[String]) -> String {
    words.iter().map(|word| escaped(word)).collect::<Vec<_>>().join(" ")
}

/// The pattern of exactly this path.
pub fn of_path(path: &str) -> String {
    let escaped = escaped(path);
    if path.contains('/') { escaped } else { format!("/{escaped}") }
}

fn escaped(text: &str) -> String {
    let special = |c: char| matches!(c, '*' | '?' | '\\') || c.is_whitespace();
    text.chars().flat_map(|c| special(c).then_some('\\').into_iter().chain([c])).collect()
}

/// The words of a pattern, escapes kept.
fn split(pattern: &str) -> Vec<String> {
    let (mut words, mut word, mut escape) = (Vec::new(), String::new(), false);
    for c in pattern.chars() {
        if c.is_whitespace() && !escape {
            words.extend(Some(std::mem::take(&mut word)).filter(|word| !word.is_empty()));
        } else {
            word.push(c);
        }
        escape = c == '\\' && !escape;
    }
    words.extend(Some(word).filter(|word| !word.is_empty()));
    words
}

fn tokens(pattern: &str, separator: char) -> Vec<Token> {
    let mut rest = pattern.chars().peekable();
    let mut tokens = Vec::new();
    while let Some(c) = rest.next() {
        tokens.push(match c {
            '\\' => Token::Char(rest.next().unwrap_or('\\')),
            '?' => Token::One,
            '*' if rest.next_if_eq(&'*').is_none() => Token::Some,
            '*' if rest.next_if_eq(&separator).is_some() => Token::Directories,
            '*' => Token::Deep,
            c => Token::Char(c),
        });
    }
    tokens
}

fn fits(pattern: &str, text: &str, separator: char) -> bool {
    let text: Vec<char> = text.chars().collect();
    let mut reached = vec![false; text.len() + 1];
    reached[0] = true;
    for token in tokens(pattern, separator) {
        reached = step(&token, &reached, &text, separator);
    }
    reached.last().is_some_and(|end| *end)
}

/// The places that one more token can reach from the places that were reached.
fn step(token: &Token, reached: &[bool], text: &[char], separator: char) -> Vec<bool> {
    let (mut next, mut any) = (vec![false; reached.len()], reached[0]);
    next[0] = reached[0] && matches!(token, Token::Some | Token::Deep | Token::Directories);
    for (at, c) in text.iter().enumerate() {
        next[at + 1] = match token {
            Token::Char(wanted) => reached[at] && c == wanted,
            Token::One => reached[at] && *c != separator,
            Token::Some => reached[at + 1] || (next[at] && *c != separator),
            Token::Deep => reached[at + 1] || next[at],
            Token::Directories => reached[at + 1] || (any && *c == separator),
        };
        any |= reached[at + 1];
    }
    next
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn paths_fit_as_people_mean_them() {
        for (pattern, fit, others) in [
            ("*.secret", &["a.secret", "deep/er/a.secret", ".secret"][..], &["a.secret/b", "a.secrets"][..]),
            ("src/**", &["src/a.rs", "src/a/b.rs"], &["src", "srcs/a.rs", "lib/src/a.rs"]),
            ("src/", &["src/a.rs", "src/a/b.rs"], &["src", "a/src/b"]),
            ("src/*.rs", &["src/a.rs", "src/.rs"], &["src/a/b.rs", "src/a.rs2"]),
            ("src/**/mod.rs", &["src/mod.rs", "src/a/b/mod.rs"], &["src/xmod.rs", "mod.rs"]),
            ("/a.txt", &["a.txt"], &["b/a.txt"]),
            ("./a/b", &["a/b"], &["b"]),
            ("**", &["a", "a/b"], &[]),
            ("*", &["a", "a/b"], &[]),
            ("a?c", &["abc", "aéc"], &["ac", "a/c"]),
            (r"a\*", &["a*"], &["ab"]),
            (r"a\", &[r"a\"], &["a"]),
        ] {
            fit.iter().for_each(|path| assert!(super::path(pattern, path), "{pattern} {path}"));
            others.iter().for_each(|path| assert!(!super::path(pattern, path), "{pattern} {path}"));
        }
    }

    #[test]
    fn commands_are_compared_word_by_word() {
        let fits = |pattern: &str, command: &str| {
            words(pattern, &shell_words::split(command).expect("words").into_iter().collect::<Vec<_>>(), true)
        };
        assert!(fits("cargo test", "cargo test -q") && fits("cargo", "cargo") && fits("git *", "git push"));
        assert!(!fits("cargo test", "cargo tests") && !fits("cargo test", "cargo") && !fits("git *", "git"));
        assert!(fits("rm", "/bin/rm x") && !fits("rm", "rmdir x") && !fits("ls rm", "ls /bin/rm"));
        assert!(fits("rm *", "rm a/b") && fits("npm run test:*", "npm run test:unit"));
        assert!(fits(r"git commit -m a\ b", "git commit -m 'a b'"));
    }

    proptest! {
        #[test]
        fn a_saved_pattern_fits_what_it_was_saved_for_and_no_other_word(word in "[a-z*?\\\\ /.]{1,8}", other in "[a-z*?\\\\ /.]{1,8}") {
            let one = |word: &String| vec!["x".to_owned(), word.clone()];
            prop_assert!(words(&of_words(&one(&word)), &one(&word), false));
            prop_assert_eq!(words(&of_words(&one(&word)), &one(&other), false), word == other);
        }

        #[test]
        fn a_saved_path_fits_itself(path in "[a-z*?\\\\ ]{1,6}(/[a-z*?\\\\ .]{1,6}){0,2}") {
            prop_assert!(super::path(&of_path(&path), &path));
        }
    }
}
