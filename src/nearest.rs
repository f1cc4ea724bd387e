//! "Did you mean …?": the known word nearest to one that is not known.

/// The known word that needs the fewest changed letters, if those are few for the word's length: a third of it.
pub fn nearest<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let near =
        known.into_iter().map(|candidate| (distance(word, candidate), candidate)).min_by_key(|(steps, _)| *steps)?;
    (near.0 <= word.chars().count().max(3) / 3).then_some(near.1)
}

/// Letters to insert, delete, replace or swap with their neighbour (Levenshtein, with Damerau's transpositions).
fn distance(a: &str, b: &str) -> usize {
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
    let mut steps: Vec<Vec<usize>> = (0..=a.len()).map(|i| (i..=i + b.len()).collect()).collect();
    for (i, x) in a.iter().enumerate() {
        for (j, y) in b.iter().enumerate() {
            let changed = steps[i][j] + usize::from(x != y);
            let mut least = changed.min(steps[i][j + 1] + 1).min(steps[i + 1][j] + 1);
            if i > 0 && j > 0 && a[i - 1] == *y && b[j - 1] == *x {
                least = least.min(steps[i - 1][j - 1] + 1);
            }
            steps[i + 1][j + 1] = least;
        }
    }
    steps[a.len()][b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slip_is_found_and_another_word_is_not() {
        let known = ["model", "max-turns", "yes"];
        assert_eq!(nearest("modl", known), Some("model"));
        assert_eq!(nearest("max-turn", known), Some("max-turns"));
        assert_eq!(nearest("yse", known), Some("yes"));
        assert_eq!(nearest("yxz", known), None);
        assert_eq!(nearest("ye", known), Some("yes"));
        assert_eq!(nearest("frobnicate", known), None);
    }
}
