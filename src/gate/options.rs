//! What may run at once: for each listed command, the options that keep it read-only.
//!
//! Allowlists with exact spelling, one line of data an option. Deny-lists of options have been beaten one by one in every agent
//! that tried (abbreviations, clusters, a new version's new option); what is not written here simply asks.
//!
//! Taken from GNU coreutils 9.1, grep 3.8, tree 2.1, file 5.44, ripgrep 13 and 15, git 2.39 and 2.47. On macOS a short POSIX
//! list stands in for the GNU tools, since the same letters mean other things there (`grep -z` decompresses).
//!
//! Never add: a command with a language of its own (sed, awk, find), an option that names a program, an output file, or a
//! file with file names in it; one that follows links (`ls -L`, `grep -R`) or never ends (`tail -f`).

/// What the words that are no options mean.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Positionals {
    /// There may be none.
    None,
    /// All are paths.
    Paths,
    /// The first is a pattern (unless an option gave one), the rest are paths.
    PatternThenPaths,
    /// Revisions and paths, which only git can tell apart.
    Git,
    /// All words are text, even those that begin with a dash.
    Text,
    /// Branch names; only where an option makes them patterns. Otherwise git creates a branch.
    Branch,
}

/// One listed command. Lists of long options are separated by blanks.
#[derive(Debug, Clone, Copy)]
pub struct Rules {
    /// The command; for git with its subcommand.
    pub name: &'static str,
    /// Short options without a value.
    pub flags: &'static str,
    /// Short options with a value, in the same word or the next.
    pub valued: &'static str,
    /// Short options with a value only if it is in the same word.
    pub optional: &'static str,
    /// Long options without a value.
    pub long: &'static str,
    /// Long options with a value, after `=` or in the next word.
    pub long_valued: &'static str,
    /// Long options with a value only after `=`.
    pub long_optional: &'static str,
    /// Those of the options above whose value is a number.
    pub numeric: &'static str,
    /// `-20` alone is a number of lines.
    pub minus_number: bool,
    /// What the other words mean.
    pub positionals: Positionals,
}

const NOTHING: Rules = Rules {
    name: "",
    flags: "",
    valued: "",
    optional: "",
    long: "",
    long_valued: "",
    long_optional: "",
    numeric: "",
    minus_number: false,
    positionals: Positionals::None,
};

/// The rules of the command that these words begin with, and how many words its name has: 1, for git 2, or 3 with
/// `--no-pager`. `'git status'` in quotes is one word, and names nothing.
pub fn listed(words: &[String]) -> Option<(&'static Rules, usize)> {
    let (first, rest) = words.split_first()?;
    if first != "git" {
        return Some((rules(first).filter(|rules| !rules.name.contains(' '))?, 1));
    }
    let skip = if rest.first().is_some_and(|word| word == "--no-pager") { 2 } else { 1 };
    Some((rules(&format!("git {}", words.get(skip)?))?, skip + 1))
}

/// The rules of a command, by its name ("grep", "git log").
pub fn rules(name: &str) -> Option<&'static Rules> {
    let posix = if cfg!(target_os = "macos") { POSIX } else { &[] };
    posix.iter().chain(LISTED).find(|rules| rules.name == name)
}

/// Whether a blank-separated list holds a name.
pub fn lists(list: &str, name: &str) -> bool {
    // An empty list splits into one empty name.
    !name.is_empty() && list.split(' ').any(|known| known == name)
}

/// What an option's value is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Value {
    /// A pattern, a format, a word: never a path.
    Text,
    /// Digits, with a sign and a size suffix.
    Number,
    /// A file that is read.
    Path,
    /// `1,20:file` or `:function:file`.
    LineRange,
}

impl Rules {
    /// What the value of an allowed option is.
    pub fn value(&self, option: &str) -> Value {
        match (self.name, option) {
            ("grep" | "rg", "f" | "file") | ("rg", "ignore-file") => Value::Path,
            ("git log", "L") => Value::LineRange,
            _ if lists(self.numeric, option) => Value::Number,
            _ => Value::Text,
        }
    }
}

/// Values that turn an allowed option into one that runs a program or undoes the gate's own options.
pub fn value_problem(rules: &Rules, option: &str, value: &str) -> Option<String> {
    let git = rules.name.starts_with("git ");
    let bad = match option {
        // `%G?` and `%(signature)` run gpg, `%(describe)` runs git describe.
        "format" | "pretty" | "sort" if git => ["%G", "signature", "describe"].iter().any(|word| value.contains(word)),
        // `remerge` runs merge drivers.
        "diff-merges" => !lists("off none on m first-parent 1 separate combined c dense-combined cc", value),
        // Anything laxer looks into submodules, which runs what their settings name.
        "ignore-submodules" => !lists("all dirty", value),
        "directories" | "d" if rules.name == "grep" => !lists("skip read recurse", value),
        _ => false,
    };
    bad.then(|| format!("the value {value:?} of option {option} of {} is not on the list", rules.name))
}

/// Print their words, or nothing. Models put them between commands (`ls; echo ---; cat x`, `grep x y || true`). There they run;
/// alone they do nothing for anybody, and ask like everything that is not on the list.
pub const BETWEEN: &str = "echo printf true";

/// Short POSIX lists, looked at first on macOS.
const POSIX: &[Rules] = &[
    Rules { name: "ls", flags: "1ACFRSacdfgiklmnopqrstux", positionals: Positionals::Paths, ..NOTHING },
    Rules { name: "cat", flags: "benstuv", positionals: Positionals::Paths, ..NOTHING },
    Rules {
        name: "head",
        valued: "cn",
        numeric: "c n",
        minus_number: true,
        positionals: Positionals::Paths,
        ..NOTHING
    },
    Rules {
        name: "tail",
        valued: "cn",
        numeric: "c n",
        minus_number: true,
        positionals: Positionals::Paths,
        ..NOTHING
    },
    Rules { name: "wc", flags: "clmw", positionals: Positionals::Paths, ..NOTHING },
    Rules { name: "file", flags: "bhi", positionals: Positionals::Paths, ..NOTHING },
    Rules {
        name: "grep",
        // No -r: the excludes that recursion needs are GNU's.
        flags: "EFHchilnqsvwx",
        valued: "ABCefm",
        numeric: "A B C m",
        positionals: Positionals::PatternThenPaths,
        ..NOTHING
    },
];

const LISTED: &[Rules] = &[
    Rules {
        name: "ls",
        flags: "1ABCDFGNQRSUXZabcdfghiklmnopqrstuvx",
        valued: "ITw",
        long: "all almost-all author context directory dired escape file-type full-time \
            group-directories-first hide-control-chars human-readable ignore-backups inode \
            kibibytes literal no-group numeric-uid-gid quote-name recursive reverse \
            show-control-chars si size zero",
        long_valued: "block-size format hide ignore indicator-style quoting-style sort tabsize time \
            time-style width",
        long_optional: "classify color",
        numeric: "T w tabsize width",
        positionals: Positionals::Paths,
        ..NOTHING
    },
    Rules { name: "pwd", flags: "LP", long: "logical physical", positionals: Positionals::None, ..NOTHING },
    Rules {
        name: "cat",
        flags: "AETbenstuv",
        long: "number number-nonblank show-all show-ends show-nonprinting show-tabs squeeze-blank",
        positionals: Positionals::Paths,
        ..NOTHING
    },
    Rules {
        name: "head",
        flags: "qvz",
        valued: "cn",
        long: "quiet silent verbose zero-terminated",
        long_valued: "bytes lines",
        numeric: "c n bytes lines",
        minus_number: true,
        positionals: Positionals::Paths,
        ..NOTHING
    },
    Rules {
        name: "tail",
        flags: "qvz",
        valued: "cn",
        long: "quiet silent verbose zero-terminated",
        long_valued: "bytes lines",
        numeric: "c n bytes lines",
        minus_number: true,
        positionals: Positionals::Paths,
        ..NOTHING
    },
    Rules {
        name: "wc",
        flags: "Lclmw",
        long: "bytes chars lines max-line-length words",
        long_valued: "total",
        positionals: Positionals::Paths,
        ..NOTHING
    },
    Rules {
        name: "file",
        flags: "0ELNbhiknr",
        valued: "F",
        long: "apple brief dereference extension keep-going mime mime-encoding mime-type no-buffer \
            no-dereference no-pad print0 raw",
        long_valued: "separator",
        positionals: Positionals::Paths,
        ..NOTHING
    },
    Rules {
        name: "tree",
        flags: "ACDFJNQUXacdfghinpqrstuvx",
        valued: "ILP",
        long: "device dirsfirst du filesfirst gitignore ignore-case inodes matchdirs metafirst \
            noreport prune si",
        long_valued: "charset filelimit sort timefmt",
        numeric: "L filelimit",
        positionals: Positionals::Paths,
        ..NOTHING
    },
    Rules {
        name: "grep",
        flags: "EFGHILPTUZabchilnoqrsvwxyz",
        valued: "ABCdefm",
        long: "basic-regexp binary byte-offset count extended-regexp files-with-matches \
            files-without-match fixed-strings ignore-case initial-tab invert-match line-buffered \
            line-number line-regexp no-filename no-group-separator no-ignore-case no-messages \
            null null-data only-matching perl-regexp quiet recursive silent text with-filename \
            word-regexp",
        long_valued: "after-context before-context binary-files context directories exclude exclude-dir \
            file group-separator include max-count regexp",
        long_optional: "color colour",
        numeric: "A B C m after-context before-context context max-count",
        minus_number: true,
        positionals: Positionals::PatternThenPaths,
        ..NOTHING
    },
    Rules {
        name: "rg",
        flags: ".0FHINPSUVabcilnopqsuvwx",
        valued: "ABCEMTdefgjmrt",
        long: "binary block-buffered byte-offset case-sensitive column count count-matches crlf \
            files files-with-matches files-without-match fixed-strings glob-case-insensitive \
            heading hidden ignore ignore-case include-zero invert-match json line-buffered \
            line-number line-regexp max-columns-preview mmap multiline multiline-dotall \
            no-config no-filename no-follow no-heading no-hidden no-ignore no-ignore-dot \
            no-ignore-exclude no-ignore-global no-ignore-parent no-ignore-vcs no-line-number \
            no-messages no-mmap no-pre no-require-git no-search-zip no-unicode null null-data \
            one-file-system only-matching passthru pcre2 pretty quiet smart-case stats text trim \
            type-list unicode unrestricted version vimgrep with-filename word-regexp",
        long_valued: "after-context before-context color colors context context-separator dfa-size-limit \
            encoding engine field-context-separator field-match-separator file glob iglob \
            ignore-file max-columns max-count max-depth max-filesize maxdepth path-separator \
            regex-size-limit regexp replace sort sortr threads type type-add type-clear type-not",
        numeric: "A B C M d j m after-context before-context context max-columns max-count max-depth maxdepth threads",
        positionals: Positionals::PatternThenPaths,
        ..NOTHING
    },
    Rules {
        name: "git status",
        flags: "bsz",
        optional: "u",
        long: "ahead-behind branch long no-ahead-behind no-branch no-column no-renames \
            no-show-stash null renames short show-stash",
        long_optional: "column find-renames ignore-submodules ignored porcelain untracked-files",
        positionals: Positionals::Git,
        ..NOTHING
    },
    Rules {
        name: "git diff",
        flags: "RWabcpsuwz",
        valued: "GSl",
        optional: "BCMU",
        long: "binary cached cc check combined-all-paths compact-summary cumulative default-prefix \
            exit-code find-copies-harder full-index function-context histogram ignore-all-space \
            ignore-blank-lines ignore-cr-at-eol ignore-space-at-eol ignore-space-change \
            indent-heuristic merge-base minimal name-only name-status no-color no-color-moved \
            no-ext-diff no-indent-heuristic no-patch no-prefix no-relative no-renames \
            no-textconv numstat patch patch-with-raw patch-with-stat patience pickaxe-all \
            pickaxe-regex quiet raw shortstat staged summary text",
        long_valued: "anchored diff-algorithm diff-filter dst-prefix inter-hunk-context line-prefix \
            max-depth rotate-to skip-to src-prefix stat-count stat-name-width stat-width \
            word-diff-regex ws-error-highlight",
        long_optional: "abbrev break-rewrites color color-moved color-words dirstat find-copies find-renames \
            ignore-submodules relative stat unified word-diff",
        numeric: "U l unified inter-hunk-context max-depth stat-count stat-name-width stat-width",
        minus_number: true,
        positionals: Positionals::Git,
    },
    Rules {
        name: "git log",
        flags: "EFPRWabcgimpqstuwz",
        valued: "GLSln",
        optional: "BCMU",
        long: "abbrev-commit all all-match ancestry-path author-date-order basic-regexp binary \
            bisect boundary branches cached cc check cherry cherry-mark cherry-pick children \
            clear-decorations combined-all-paths compact-summary cumulative date-order \
            decorate-refs-exclude default-prefix dense exit-code extended-regexp \
            find-copies-harder first-parent fixed-strings follow full-history full-index \
            function-context graph histogram ignore-all-space ignore-blank-lines \
            ignore-cr-at-eol ignore-space-at-eol ignore-space-change indent-heuristic \
            invert-grep left-only left-right log-size mailmap merge merge-base merges minimal \
            name-only name-status no-abbrev-commit no-color no-color-moved no-decorate \
            no-diff-merges no-ext-diff no-indent-heuristic no-mailmap no-merges no-notes \
            no-patch no-prefix no-relative no-renames no-show-signature no-textconv \
            no-use-mailmap no-walk not numstat oneline parents patch patch-with-raw \
            patch-with-stat patience perl-regexp pickaxe-all pickaxe-regex quiet raw \
            regexp-ignore-case relative-date remotes reverse right-only shortstat show-pulls \
            simplify-by-decoration simplify-merges source sparse staged summary tags text \
            topo-order use-mailmap walk-reflogs",
        long_valued: "after anchored author before committer date decorate-refs diff-algorithm diff-filter \
            diff-merges dst-prefix encoding exclude glob grep grep-reflog inter-hunk-context \
            line-prefix max-count max-depth max-parents min-parents rotate-to since \
            since-as-filter skip skip-to src-prefix stat-count stat-name-width stat-width until \
            word-diff-regex ws-error-highlight",
        long_optional: "abbrev branches break-rewrites color color-moved color-words decorate dirstat \
            find-copies find-renames format ignore-submodules pretty relative remotes stat tags \
            unified word-diff",
        numeric: "U l n unified inter-hunk-context max-count max-depth max-parents min-parents skip stat-count stat-name-width stat-width",
        minus_number: true,
        positionals: Positionals::Git,
    },
    Rules {
        name: "git branch",
        flags: "ailqrv",
        long: "all ignore-case list no-abbrev no-color no-column omit-empty remotes show-current \
            verbose",
        long_valued: "contains_ format points-at sort",
        long_optional: "abbrev color column contains merged no-contains no-merged",
        positionals: Positionals::Branch,
        ..NOTHING
    },
    Rules { name: "echo", positionals: Positionals::Text, ..NOTHING },
    Rules { name: "printf", positionals: Positionals::Text, ..NOTHING },
    Rules { name: "true", positionals: Positionals::Text, ..NOTHING },
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_that_writes_runs_or_follows_is_listed() {
        let never = [
            ("tree", "oRlH"),
            ("tail", "fF"),
            ("ls", "LH"),
            ("grep", "RD"),
            ("rg", "zL"),
            ("file", "Cfmpszs"),
            ("git branch", "dDmMcCfutv"),
            ("git status", "v"),
            ("git diff", "O"),
            ("git log", "O"),
        ];
        for (name, letters) in never {
            let rules = rules(name).unwrap();
            for letter in letters.chars().filter(|c| (name, *c) != ("git branch", 'v')) {
                let listed = [rules.flags, rules.valued, rules.optional].iter().any(|list| list.contains(letter));
                assert!(!listed, "{name} -{letter}");
            }
        }
        let long =
            ["output", "ext-diff", "textconv", "no-index", "pre", "search-zip", "follow", "hostname-bin", "full-diff"];
        for rules in LISTED {
            for option in long.iter().filter(|option| (rules.name, **option) != ("git log", "follow")) {
                let listed =
                    [rules.long, rules.long_valued, rules.long_optional].iter().any(|list| lists(list, option));
                assert!(!listed, "{} --{option}", rules.name);
            }
        }
    }

    #[test]
    fn values_that_run_programs_ask() {
        let log = rules("git log").unwrap();
        assert!(value_problem(log, "format", "%h %G?").is_some());
        assert!(value_problem(log, "diff-merges", "remerge").is_some());
        assert!(value_problem(log, "format", "%h %s").is_none());
        assert!(value_problem(rules("git diff").unwrap(), "ignore-submodules", "none").is_some());
        assert!(value_problem(rules("grep").unwrap(), "d", "rec").is_some());
    }
}
