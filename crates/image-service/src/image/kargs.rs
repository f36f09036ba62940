//! Changes of the kernel arguments of an image.

use super::customise::CustomiseError;

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
    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.delete.is_empty() && self.replace.is_empty() && self.append.is_empty()
    }

    /// `line` without the arguments to remove, and with those replaced.
    ///
    /// Errors: it does not have one of them, or the new one has a control character.
    pub(super) fn apply(&self, line: &str) -> Result<String, CustomiseError> {
        if self.delete.is_empty() && self.replace.is_empty() {
            return Ok(line.to_owned());
        }
        let mut words: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
        let missing = |karg: &str| CustomiseError::NoSuchKarg {
            karg: karg.to_owned(),
            present: line.to_owned(),
        };
        for karg in &self.delete {
            let count = words.len();
            words.retain(|word| word != karg.trim());
            if words.len() == count {
                return Err(missing(karg));
            }
        }
        for karg in &self.replace {
            let (old, new) = replacement(karg, &words).ok_or_else(|| missing(karg))?;
            if new.chars().any(|c| c.is_control() || c.is_whitespace()) {
                return Err(CustomiseError::KargsNotPrintable(new));
            }
            for word in words.iter_mut().filter(|word| **word == old) {
                word.clone_from(&new);
            }
        }
        Ok(words.join(" "))
    }
}

/// The old and the new argument of `KEY=OLD=NEW`; either value may have an equals sign, as in `root=UUID=1`.
fn replacement(karg: &str, words: &[String]) -> Option<(String, String)> {
    let karg = karg.trim();
    let (key, _) = karg.split_once('=')?;
    let ends = karg.match_indices('=').skip(1);
    ends.map(|(end, _)| (&karg[..end], &karg[end + 1..]))
        .find(|(old, _)| words.iter().any(|word| word == old))
        .map(|(old, new)| (old.to_owned(), format!("{key}={new}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn changed(line: &str, delete: &[&str], replace: &[&str]) -> Result<String, String> {
        let owned = |all: &[&str]| all.iter().map(ToString::to_string).collect();
        let change = KargsChange {
            delete: owned(delete),
            replace: owned(replace),
            append: Vec::new(),
        };
        change.apply(line).map_err(|error| error.to_string())
    }

    #[test]
    fn arguments_are_removed_and_replaced_as_whole_words() {
        let line = "a quiet console=tty0 console=ttyS0,115200 root=UUID=1 quietx";
        assert_eq!(
            changed(line, &["quiet", "console=tty0"], &[]).unwrap(),
            "a console=ttyS0,115200 root=UUID=1 quietx"
        );
        let replaced = ["console=tty0=tty1", "root=UUID=1=LABEL=x"];
        assert_eq!(
            changed(line, &[], &replaced).unwrap(),
            "a quiet console=tty1 console=ttyS0,115200 root=LABEL=x quietx"
        );
        assert_eq!(changed("a=1 b", &[], &["a=1="]).unwrap(), "a= b");
        assert_eq!(changed("a  b", &[], &[]).unwrap(), "a  b");
    }

    #[test]
    fn arguments_that_are_not_there_are_named() {
        for (delete, replace) in [
            (&["quie"][..], &[][..]),
            (&["console"], &[]),
            (&[], &["console=tty1=tty2"]),
            (&[], &["quiet=x"]),
            (&[], &["quiet"]),
        ] {
            let error = changed("quiet console=tty0", delete, replace).unwrap_err();
            let named = delete.iter().chain(replace).next().unwrap();
            assert!(error.contains(named) && error.contains("tty0"), "{error}");
        }
        assert!(changed("a=1", &[], &["a=1=x\ny"]).is_err());
    }
}
