//! What somebody may have meant.

/// Beyond so many wrong letters, it was something else.
const WRONG_LETTERS: usize = 3;

/// Of `known`, what `name` is most like, if it is like any.
pub(crate) fn nearest<'a>(name: &str, known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let allowed = WRONG_LETTERS.min(name.chars().count() / 2);
    let like = known.map(|it| (distance(name, it), it));
    let nearest = like.filter(|(distance, _)| *distance <= allowed).min();
    nearest.map(|(_, it)| it)
}

/// How many letters have to be put in, taken out or changed (Levenshtein). Case does not count.
fn distance(a: &str, b: &str) -> usize {
    let (a, b) = (a.to_lowercase(), b.to_lowercase());
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, letter) in a.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, other) in b.iter().enumerate() {
            let changed = diagonal + usize::from(letter != *other);
            diagonal = row[j + 1];
            row[j + 1] = changed.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_meant_is_found() {
        let known = || ["etcd", "prometheus", "argocd-operator"].into_iter();
        assert_eq!(nearest("etdc", known()), Some("etcd"));
        assert_eq!(
            nearest("argo-cd-operator", known()),
            Some("argocd-operator")
        );
        assert_eq!(nearest("Prometeus", known()), Some("prometheus"));
        assert_eq!(nearest("xy", known()), None);
        assert_eq!(nearest("", known()), None);
    }

    #[test]
    fn distances() {
        for (a, b, expected) in [
            ("kitten", "sitting", 3),
            ("", "abc", 3),
            ("abc", "", 3),
            ("a", "A", 0),
        ] {
            assert_eq!(distance(a, b), expected, "{a} {b}");
        }
    }
}
