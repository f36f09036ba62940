//! Names of Kubernetes objects.

/// A form of names. Source: RFC 1123; Kubernetes, apimachinery/pkg/util/validation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NameForm {
    /// Units: bytes.
    pub longest: usize,
    /// Whether labels are joined by dots.
    pub is_dotted: bool,
}

/// Names of namespaces.
pub const LABEL: NameForm = NameForm {
    longest: 63,
    is_dotted: false,
};
/// Names of most objects.
pub const SUBDOMAIN: NameForm = NameForm {
    longest: 253,
    is_dotted: true,
};

impl NameForm {
    /// Errors: the reason why the name is not of this form.
    pub fn check(self, name: &str) -> Result<(), String> {
        if name.len() > self.longest {
            let longest = self.longest;
            return Err(format!("has more than {longest} characters"));
        }
        let is_good = if self.is_dotted {
            name.split('.').all(is_label)
        } else {
            is_label(name)
        };
        if is_good {
            return Ok(());
        }
        let dots = if self.is_dotted { ", dots" } else { "" };
        Err(format!(
            "may only have lower-case letters, digits{dots} and inner hyphens"
        ))
    }
}

fn is_label(text: &str) -> bool {
    let fits = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    !text.is_empty() && text.bytes().all(fits) && !text.starts_with('-') && !text.ends_with('-')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forms() {
        for (name, label, subdomain) in [
            ("cp-0", true, true),
            ("0", true, true),
            ("cp-0.example.com", false, true),
            ("", false, false),
            ("cp_0", false, false),
            ("Cp", false, false),
            ("-a", false, false),
            ("a-", false, false),
            ("a..b", false, false),
            ("a.-b", false, false),
        ] {
            assert_eq!(LABEL.check(name).is_ok(), label, "{name}");
            assert_eq!(SUBDOMAIN.check(name).is_ok(), subdomain, "{name}");
        }
        assert!(LABEL.check(&"a".repeat(63)).is_ok());
        assert!(LABEL.check(&"a".repeat(64)).is_err());
        assert!(SUBDOMAIN.check(&"a".repeat(253)).is_ok());
        assert!(SUBDOMAIN.check(&"a".repeat(254)).is_err());
    }
}
