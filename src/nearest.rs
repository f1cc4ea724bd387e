//! "Did you mean …?": the known word nearest to one that is not known.

/// The known word that needs the fewest changed letters, if those are few for the word's length: a third of it.
pub fn nearest<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let near =
        known.into_iter().map(|candidate| (distance(word, candidate), candidate)).min_by_key(|(steps, _)| *steps)?;
    (near.0 <= word.chars().count().max(3) / 3).then_some(near.1)
}

/// Letters to insert, delete or replace (Levenshtein), one row at a time.
fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.chars().enumerate() {
        let mut corner = row[0];
        row[0] = i + 1;
        for (j, y) in b.iter().enumerate() {
            let replaced = corner + usize::from(x != *y);
            corner = row[j + 1];
            row[j + 1] = replaced.min(row[j] + 1).min(corner + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slip_is_found_and_another_word_is_not() {
        let known = ["model", "max-turns", "yes"];
        assert_eq!(nearest("modl", known), Some("model"));
        assert_eq!(nearest("max-turn", known), Some("max-turns"));
        assert_eq!(nearest("yse", known), None);
        assert_eq!(nearest("ye", known), Some("yes"));
        assert_eq!(nearest("frobnicate", known), None);
    }
}
