//! Suggestion for a mistyped name.

/// The known name of the smallest edit distance, ignoring case, up to `limit`; of several, the
/// first in the alphabet.
pub fn nearest<'a>(
    name: &str,
    known: impl IntoIterator<Item = &'a str>,
    limit: usize,
) -> Option<&'a str> {
    known
        .into_iter()
        .map(|known| (distance(name, known), known))
        .filter(|(distance, _)| *distance <= limit)
        .min()
        .map(|(_, known)| known)
}

/// Edit distance: letters to insert, delete or replace. Source: Levenshtein.
fn distance(a: &str, b: &str) -> usize {
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.bytes().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, y) in b.bytes().enumerate() {
            let changed = diagonal + usize::from(!x.eq_ignore_ascii_case(&y));
            diagonal = row[j + 1];
            row[j + 1] = changed.min(diagonal + 1).min(row[j] + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distances() {
        for (a, b, expected) in [
            ("", "", 0),
            ("abc", "aBc", 0),
            ("abc", "ac", 1),
            ("ac", "abc", 1),
            ("abc", "axc", 1),
            ("kitten", "sitting", 3),
            ("", "abc", 3),
        ] {
            assert_eq!(distance(a, b), expected, "{a} {b}");
        }
    }

    #[test]
    fn distant_names_are_not_suggested() {
        let known = ["catalog", "channels", "packages"];
        assert_eq!(nearest("chanels", known, 2), Some("channels"));
        assert_eq!(nearest("images", known, 2), None);
    }
}
