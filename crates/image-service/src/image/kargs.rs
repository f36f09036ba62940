//! Changes of the kernel arguments of an image.

use super::error::CustomiseError;

/// Changes of kernel arguments, in the order of its members. Source: coreos-installer, `iso kargs modify`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct KargsChange {
    /// Arguments to remove, as `KEY` or `KEY=VALUE`.
    pub delete: Vec<String>,
    /// Arguments to replace, as `KEY=OLD=NEW`.
    pub replace: Vec<String>,
    /// Arguments to add at the end.
    pub append: Vec<String>,
}

impl KargsChange {
    /// Arguments to add alone.
    pub const fn adding(append: Vec<String>) -> Self {
        Self {
            delete: Vec::new(),
            replace: Vec::new(),
            append,
        }
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.delete.is_empty() && self.replace.is_empty() && self.append.is_empty()
    }

    /// The changed `line`. Arguments that it does not have change nothing.
    ///
    /// Errors: an argument to replace of another form; a control character.
    pub(super) fn apply(&self, line: &str) -> Result<String, CustomiseError> {
        Ok(self.changed(line)?.0)
    }

    /// Those arguments to remove or replace that `line` does not have.
    pub fn absent(&self, line: &str) -> Vec<&str> {
        self.changed(line)
            .map_or_else(|_| Vec::new(), |(_, absent)| absent)
    }

    fn changed(&self, line: &str) -> Result<(String, Vec<&str>), CustomiseError> {
        let mut words: Vec<&str> = line.split_whitespace().collect();
        let mut absent = Vec::new();
        for karg in &self.delete {
            let count = words.len();
            remove(&mut words, karg);
            if words.len() == count {
                absent.push(karg.as_str());
            }
        }
        for karg in &self.append {
            printable(karg)?;
            words.extend(Some(karg.trim()).filter(|karg| !karg.is_empty()));
        }
        let mut words: Vec<String> = words.into_iter().map(str::to_owned).collect();
        for karg in &self.replace {
            printable(karg)?;
            let (old, new) = replacement(karg, &words)?;
            if !words.contains(&old) {
                absent.push(karg.as_str());
            }
            for word in words.iter_mut().filter(|word| **word == old) {
                word.clone_from(&new);
            }
        }
        Ok((words.join(" "), absent))
    }
}

/// Errors: the argument has a control character, which would end the line.
fn printable(karg: &str) -> Result<(), CustomiseError> {
    if karg.contains(char::is_control) {
        return Err(CustomiseError::KargsNotPrintable(karg.to_owned()));
    }
    Ok(())
}

/// Removes each occurrence of the words of `karg`, which may be several in a row.
fn remove(words: &mut Vec<&str>, karg: &str) {
    let removed: Vec<&str> = karg.split_whitespace().collect();
    let mut at = 0;
    while !removed.is_empty() && at + removed.len() <= words.len() {
        if words[at..].starts_with(&removed) {
            words.drain(at..at + removed.len());
        } else {
            at += 1;
        }
    }
}

/// The old and the new argument of `KEY=OLD=NEW`; either value may have an equals sign, as in `root=UUID=1`: then the old
/// argument is one that the words have.
fn replacement(karg: &str, words: &[String]) -> Result<(String, String), CustomiseError> {
    let karg = karg.trim();
    let malformed = || CustomiseError::MalformedReplacement(karg.to_owned());
    let key = karg.split('=').next().unwrap_or_default();
    if key.is_empty() {
        return Err(malformed());
    }
    let ends = karg.match_indices('=').skip(1);
    let pairs = ends.map(|(end, _)| (&karg[..end], &karg[end + 1..]));
    let is_present = |(old, _): &(&str, &str)| words.iter().any(|word| word == old);
    let (old, new) = pairs
        .clone()
        .find(is_present)
        .or_else(|| pairs.clone().next())
        .ok_or_else(malformed)?;
    Ok((old.to_owned(), format!("{key}={new}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn change(delete: &[&str], append: &[&str], replace: &[&str]) -> KargsChange {
        let owned = |all: &[&str]| all.iter().map(ToString::to_string).collect();
        KargsChange {
            delete: owned(delete),
            replace: owned(replace),
            append: owned(append),
        }
    }

    #[test]
    fn arguments_are_changed_as_whole_words() {
        let line = "a quiet console=tty0 console=ttyS0,115200 root=UUID=1 quietx";
        for (line, delete, append, replace, expected) in [
            (
                line,
                &["quiet", "console=tty0"][..],
                &[][..],
                &[][..],
                "a console=ttyS0,115200 root=UUID=1 quietx",
            ),
            (
                line,
                &[],
                &[],
                &["console=tty0=tty1", "root=UUID=1=LABEL=x"],
                "a quiet console=tty1 console=ttyS0,115200 root=LABEL=x quietx",
            ),
            ("a=1 b", &[], &[], &["a=1="], "a= b"),
            ("x y x y z", &["x y"], &[], &[], "z"),
            ("x x y", &["x"], &[], &[], "y"),
            // Removed before others are added, and replaced after that.
            ("a", &["x=1"], &["x=1"], &["x=1=2"], "a x=2"),
            ("q=1 q=2 q=1", &[], &[], &["q=1=3", "q=3=4"], "q=4 q=2 q=4"),
            ("a", &[], &[" b ", "", "c d"], &[], "a b c d"),
            ("", &[], &["b"], &[], "b"),
        ] {
            let changed = change(delete, append, replace).apply(line);
            assert_eq!(changed.unwrap(), expected, "{line:?}");
        }
    }

    #[test]
    fn absent_arguments_are_named_and_change_nothing() {
        let line = "quiet console=tty0";
        for (delete, replace) in [
            (&["quie"][..], &[][..]),
            (&["console"], &[]),
            (&[""], &[]),
            (&[], &["console=tty1=tty2"]),
            (&[], &["quiet=x=y"]),
        ] {
            let change = change(delete, &[], replace);
            assert_eq!(change.apply(line).unwrap(), line);
            let named: Vec<_> = delete.iter().chain(replace).copied().collect();
            assert_eq!(change.absent(line), named);
        }
        assert!(
            change(&["quiet"], &["a"], &["a=1=2"])
                .absent("quiet a=1")
                .is_empty()
        );
    }

    #[test]
    fn malformed_changes_are_refused() {
        for replace in ["quiet", "quiet=x", "=a=b", ""] {
            let error = change(&[], &[], &[replace]).apply("quiet").unwrap_err();
            assert!(error.to_string().contains("KEY=OLD=NEW"), "{error}");
        }
        assert!(change(&[], &[], &["a=1=x\ny"]).apply("a=1").is_err());
        assert!(change(&[], &["x\ny"], &[]).apply("a=1").is_err());
    }
}
