//! A command line, parsed into words the way bash does it, as far as can be told without running anything.
//!
//! Every character remembers whether it was quoted, so that `"a|b"` is no pipe and `'*'` no pattern. What only a shell can do
//! (expansions, redirections, groups) is noted as a reason to ask, and the words around it are still found, because names in
//! them are looked at even when the command is going to ask.
//!
//! Not the `shell-words` crate: it forgets what was quoted. Not a full shell grammar: what is parsed here is what runs, without
//! a shell, so a mistake can make a command wrong, never more powerful.

use std::fmt;

/// A character, and whether it was quoted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ch {
    /// The character.
    pub c: char,
    /// Quoted: never syntax, never a pattern.
    pub quoted: bool,
}

/// One word, quotes removed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Word {
    /// Its characters.
    pub chars: Vec<Ch>,
    /// Quotes stood in it: it is a word even if it is empty.
    pub was_quoted: bool,
    /// `$(…)` or backticks stand in it: a part of its text is a command.
    pub has_command: bool,
}

impl Word {
    /// The word's text.
    pub fn text(&self) -> String {
        self.chars.iter().map(|ch| ch.c).collect()
    }

    /// Whether `c` stands in it unquoted.
    pub fn has_live(&self, c: char) -> bool {
        self.chars.iter().any(|ch| ch.c == c && !ch.quoted)
    }
}

impl fmt::Display for Word {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text())
    }
}

/// What stands before a simple command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Link {
    /// Nothing, or `;`.
    Then,
    /// `&&`
    And,
    /// `||`
    Or,
    /// `|`
    Pipe,
    /// Anything that needs a shell: `&`, `(`, a new line.
    Shell,
}

/// `2>file` and its kin.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Redirect {
    /// The descriptor's digits, or nothing.
    pub fd: String,
    /// `>`, `>>`, `<`, `>&` …
    pub operator: &'static str,
    /// The file, or the descriptor.
    pub target: Word,
}

/// A simple command: words and redirections between two operators.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Simple {
    /// How it is joined to what stands before.
    pub link: Link,
    /// Its words, assignments included.
    pub words: Vec<Word>,
    /// Its redirections.
    pub redirects: Vec<Redirect>,
    /// Text that is fed to it by `<<`.
    pub documents: Vec<String>,
}

/// A parsed command line.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Line {
    /// Its simple commands, in order.
    pub commands: Vec<Simple>,
    /// The first thing in it that only a shell can do, apart from redirections.
    pub needs_shell: Option<String>,
}

/// Longest first, so that `&&` is not two `&`.
const OPERATORS: [&str; 20] = [
    "&>>", "<<<", "<<-", "&&", "||", "|&", ";;", "&>", ">>", ">&", "<&", ">|", "<>", "<<", "|", "&", ";", "<", ">", "(",
];

/// Parses a command line. Never fails: what it cannot make sense of needs a shell.
pub fn parse(command: &str) -> Line {
    let mut parser = Parser { text: command.chars().collect(), ..Parser::default() };
    parser.run();
    parser.finish()
}

#[derive(Default)]
struct Parser {
    text: Vec<char>,
    at: usize,
    line: Line,
    words: Vec<Word>,
    redirects: Vec<Redirect>,
    /// A redirection whose target has not come yet.
    open: Option<(String, &'static str)>,
    link: Option<Link>,
    /// Ends of the here-documents whose text begins at the next line.
    awaited: Vec<(usize, String)>,
    documents: Vec<String>,
}

impl Parser {
    fn peek(&self, ahead: usize) -> Option<char> {
        self.text.get(self.at + ahead).copied()
    }

    fn shell(&mut self, why: impl Into<String>) {
        self.line.needs_shell.get_or_insert(why.into());
    }

    fn run(&mut self) {
        while let Some(c) = self.peek(0) {
            match c {
                ' ' | '\t' => self.at += 1,
                '\n' => self.newline(),
                '#' => self.comment(),
                _ if self.operator().is_some() || c == ')' => self.take_operator(),
                _ => self.take_word(),
            }
        }
    }

    fn comment(&mut self) {
        while self.peek(0).is_some_and(|c| c != '\n') {
            self.at += 1;
        }
    }

    fn newline(&mut self) {
        self.at += 1;
        let before = !self.words.is_empty() || !self.line.commands.is_empty();
        if before && self.text[self.at..].iter().any(|c| !c.is_whitespace()) {
            self.shell("is more than one line");
        }
        self.end_command(Link::Shell);
        for (command, end) in std::mem::take(&mut self.awaited) {
            let body = self.document(&end);
            if let Some(command) = self.line.commands.get_mut(command) {
                command.documents.push(body);
            }
        }
    }

    /// The lines up to `end` are data, not commands.
    fn document(&mut self, end: &str) -> String {
        let mut body = String::new();
        while self.at < self.text.len() {
            let rest = &self.text[self.at..];
            let length = rest.iter().position(|c| *c == '\n').map_or(rest.len(), |newline| newline + 1);
            let line: String = rest[..length].iter().collect();
            self.at += length;
            if line.trim_end_matches('\n').trim_start_matches('\t') == end {
                break;
            }
            body.push_str(&line);
        }
        body
    }

    fn operator(&self) -> Option<&'static str> {
        // Asked at every character, so the common answer comes first.
        self.peek(0).filter(|c| "&|;<>(".contains(*c))?;
        let here = |op: &&&str| op.chars().enumerate().all(|(i, c)| self.peek(i) == Some(c));
        OPERATORS.iter().find(here).copied()
    }

    fn take_operator(&mut self) {
        let operator = self.operator().unwrap_or(")");
        self.at += operator.len();
        match operator {
            "&&" => self.end_command(Link::And),
            "||" => self.end_command(Link::Or),
            "|" => self.end_command(Link::Pipe),
            ";" => self.end_command(Link::Then),
            _ if operator.contains(['<', '>']) => self.open_redirect(operator),
            other => {
                self.shell(format!("`{other}` needs a shell"));
                self.end_command(Link::Shell);
            }
        }
    }

    fn open_redirect(&mut self, operator: &'static str) {
        if self.open.take().is_some() {
            self.shell("has a redirection without a target");
        }
        // `2>x`: the digits belong to the operator if they touch it and were not quoted.
        let touches = self.at > operator.len() && self.text[self.at - operator.len() - 1].is_ascii_digit();
        let fd = self.words.pop_if(|word| touches && word.chars.iter().all(|ch| ch.c.is_ascii_digit() && !ch.quoted));
        self.open = Some((fd.map(|word| word.text()).unwrap_or_default(), operator));
    }

    fn end_command(&mut self, next: Link) {
        let link = self.link.replace(next).unwrap_or(Link::Then);
        if self.open.take().is_some() {
            self.shell("has a redirection without a target");
        }
        if self.words.is_empty() && self.redirects.is_empty() {
            // `;;`, a leading `&&`, or an empty group: bash would complain, or it is more than a chain.
            match next {
                Link::Shell => self.link = Some(link),
                _ => self.shell("is not a complete command"),
            }
            return;
        }
        let (words, redirects) = (std::mem::take(&mut self.words), std::mem::take(&mut self.redirects));
        self.line.commands.push(Simple { link, words, redirects, documents: std::mem::take(&mut self.documents) });
    }

    fn finish(mut self) -> Line {
        let last = self.link;
        if !self.words.is_empty() || !self.redirects.is_empty() || self.open.is_some() {
            self.end_command(Link::Then);
        } else if matches!(last, Some(Link::And | Link::Or | Link::Pipe)) || self.line.commands.is_empty() {
            self.shell("is not a complete command");
        }
        self.line
    }

    fn take_word(&mut self) {
        let word = self.word();
        match self.open.take() {
            Some((_, "<<" | "<<-")) => {
                // The command this belongs to is the one being read, so its number is the next.
                self.awaited.push((self.line.commands.len(), word.text()));
                self.redirects.push(Redirect { fd: String::new(), operator: "<<", target: Word::default() });
            }
            Some((_, "<<<")) => {
                self.documents.push(word.text());
                self.redirects.push(Redirect { fd: String::new(), operator: "<<<", target: Word::default() });
            }
            Some((fd, operator)) => self.redirects.push(Redirect { fd, operator, target: word }),
            None => self.words.push(word),
        }
    }

    fn word(&mut self) -> Word {
        let mut word = Word::default();
        while let Some(c) = self.peek(0) {
            match c {
                ' ' | '\t' | '\n' | ')' => break,
                _ if self.operator().is_some() => break,
                '\\' => self.backslash(&mut word),
                '\'' => self.single_quotes(&mut word),
                '"' => self.double_quotes(&mut word),
                '$' | '`' => self.expansion(&mut word, Quotes::None),
                _ => self.keep(&mut word, false),
            }
        }
        if tilde_expands(&word) {
            self.shell("`~` needs a shell");
        }
        word
    }

    /// Moves the next character into the word.
    fn keep(&mut self, word: &mut Word, quoted: bool) {
        if let Some(c) = self.peek(0) {
            word.chars.push(Ch { c, quoted });
            self.at += 1;
        }
    }

    fn backslash(&mut self, word: &mut Word) {
        self.at += 1;
        word.was_quoted = true;
        match self.peek(0) {
            Some('\n') => {
                self.at += 1;
                self.shell("continues on another line");
            }
            Some(_) => self.keep(word, true),
            None => self.shell("ends in a backslash"),
        }
    }

    fn single_quotes(&mut self, word: &mut Word) {
        self.at += 1;
        word.was_quoted = true;
        while self.peek(0).is_some_and(|c| c != '\'') {
            self.quoted_char(word);
        }
        self.close();
    }

    fn double_quotes(&mut self, word: &mut Word) {
        self.at += 1;
        word.was_quoted = true;
        while let Some(c) = self.peek(0).filter(|c| *c != '"') {
            match (c, self.peek(1)) {
                ('\\', Some('$' | '`' | '"' | '\\')) => {
                    self.at += 1;
                    self.keep(word, true);
                }
                ('\\', Some('\n')) => {
                    self.at += 2;
                    self.shell("continues on another line");
                }
                ('$' | '`', _) => self.expansion(word, Quotes::Double),
                _ => self.quoted_char(word),
            }
        }
        self.close();
    }

    fn quoted_char(&mut self, word: &mut Word) {
        if self.peek(0) == Some('\n') {
            self.shell("is more than one line");
        }
        self.keep(word, true);
    }

    fn close(&mut self) {
        match self.peek(0) {
            Some(_) => self.at += 1,
            None => self.shell("has a quote that is not closed"),
        }
    }

    /// At `$` or a backtick. Its text stays in the word as it is, for the search for protected names.
    fn expansion(&mut self, word: &mut Word, quotes: Quotes) {
        let quoted = quotes == Quotes::Double;
        match (self.peek(0), self.peek(1)) {
            (Some('`'), _) | (Some('$'), Some('(')) => {
                word.has_command = true;
                self.shell("runs a command inside (`$(…)` or backticks)");
            }
            (Some('$'), Some('\'')) if !quoted => return self.ansi_quotes(word),
            (Some('$'), Some('"')) if !quoted => self.shell("`$\"…\"` needs a shell"),
            (Some('$'), Some(c)) if c.is_ascii_alphanumeric() || "_{[@*#?$!-".contains(c) => {
                self.shell(format!("`${c}…` is expanded by a shell"));
            }
            _ => {}
        }
        self.keep(word, quoted);
    }

    /// `$'…'`: a backslash may hide the closing quote, and what it stands for is not worked out.
    fn ansi_quotes(&mut self, word: &mut Word) {
        self.shell("`$'…'` needs a shell");
        self.at += 2;
        word.was_quoted = true;
        while let Some(c) = self.peek(0).filter(|c| *c != '\'') {
            if c == '\\' {
                self.keep(word, true);
            }
            self.quoted_char(word);
        }
        self.close();
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Quotes {
    None,
    Double,
}

/// At a word's start, and where bash takes the word for an assignment.
pub fn tilde_expands(word: &Word) -> bool {
    let live = |ch: &Ch, c: char| ch.c == c && !ch.quoted;
    word.chars.first().is_some_and(|ch| live(ch, '~'))
        || word.chars.windows(2).any(|two| (live(&two[0], '=') || live(&two[0], ':')) && live(&two[1], '~'))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(command: &str) -> Vec<Vec<String>> {
        parse(command).commands.iter().map(|c| c.words.iter().map(Word::text).collect()).collect()
    }

    #[test]
    fn quotes_and_backslashes_are_removed() {
        assert_eq!(words(r#"c''at .e""nv 'a b' "c\"d" e\ f"#), [["cat", ".env", "a b", "c\"d", "e f"]]);
        assert_eq!(words("'git status'"), [["git status"]]);
        assert_eq!(words("ls ''"), [["ls", ""]]);
    }

    #[test]
    fn operators_split_unless_quoted() {
        assert_eq!(words(r#"grep "a|b;c" x | wc -l && ls; pwd"#).len(), 4);
        let links: Vec<Link> = parse("a|b&&c||d;e").commands.iter().map(|c| c.link).collect();
        assert_eq!(links, [Link::Then, Link::Pipe, Link::And, Link::Or, Link::Then]);
        assert_eq!(parse("a | b; c").needs_shell, None);
    }

    #[test]
    fn what_only_a_shell_can_do_is_noted() {
        for command in [
            "ls $HOME",
            "ls \"$x\"",
            "ls `x`",
            "ls $(x)",
            "ls \"$(x)\"",
            "a & b",
            "(a)",
            "a\nb",
            "ls \"",
            "ls '",
            "ls \\",
            "~",
            "ls ~/x",
            "ls $'x'",
            "ls $[1]",
            "ls a\\\nb",
            "grep 'a\nb' x",
            "",
            "  ",
            "# x",
            "a;;b",
            "&& a",
            "a |",
            "a &&",
            "| a",
            "a >",
            "a > > b",
            "x=~",
        ] {
            assert!(parse(command).needs_shell.is_some(), "{command:?}");
        }
    }

    #[test]
    fn what_only_looks_like_it_is_not() {
        for command in [
            "grep \"foo$\" x",
            "grep '$HOME' x",
            "grep '`x`' x",
            "ls !$",
            "git diff HEAD~1",
            "rg \"\\$HOME\"",
            "grep a#b x",
            "ls # $(x)",
            "ls;",
            "git diff @{u}",
            "\nls\n",
            "ls 2>&1",
        ] {
            assert_eq!(parse(command).needs_shell, None, "{command:?}");
        }
    }

    #[test]
    fn redirections_know_their_descriptor() {
        let line = parse("ls x2 2>/dev/null >out 2>&1 'a'>b");
        let redirects: Vec<(String, &str, String)> =
            line.commands[0].redirects.iter().map(|r| (r.fd.clone(), r.operator, r.target.text())).collect();
        let expected = [("2", ">", "/dev/null"), ("", ">", "out"), ("2", ">&", "1"), ("", ">", "b")];
        assert_eq!(redirects, expected.map(|(fd, op, target)| (fd.to_string(), op, target.to_string())));
        assert_eq!(line.commands[0].words.len(), 3);
    }

    #[test]
    fn a_here_document_is_data() {
        let line = parse("cat > x <<'EOF'\nuse sudo and .env\nEOF\nls y");
        assert_eq!(line.commands[0].documents, ["use sudo and .env\n"]);
        assert_eq!(line.commands[1].words.len(), 2);
    }
}
