//! `WWW-Authenticate` headers.

use std::collections::HashMap;

/// A challenge of a registry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Challenge {
    /// User and password on each request.
    Basic,
    /// A token from `realm`.
    Bearer {
        realm: String,
        service: Option<String>,
        scope: Option<String>,
    },
}

/// The preferred supported challenge; `None` when none is supported.
pub(super) fn parse<'a>(headers: impl Iterator<Item = &'a str>) -> Option<Challenge> {
    let mut basic = None;
    for header in headers {
        let (scheme, rest) = header.trim().split_once(' ').unwrap_or((header.trim(), ""));
        if scheme.eq_ignore_ascii_case("bearer") {
            let mut parameters = parameters(rest);
            if let Some(realm) = parameters.remove("realm") {
                return Some(Challenge::Bearer {
                    realm,
                    service: parameters.remove("service"),
                    scope: parameters.remove("scope"),
                });
            }
        }
        if scheme.eq_ignore_ascii_case("basic") {
            basic = Some(Challenge::Basic);
        }
    }
    basic
}

/// Parses `name="value", name=value`; values may contain commas.
fn parameters(text: &str) -> HashMap<String, String> {
    let mut found = HashMap::new();
    let mut rest = text;
    while let Some((name, after)) = rest.split_once('=') {
        let name = name.trim_matches([' ', ',', '\t']).to_ascii_lowercase();
        let value;
        (value, rest) = if let Some(quoted) = after.trim_start().strip_prefix('"') {
            unquoted(quoted)
        } else {
            let (value, rest) = after.split_once(',').unwrap_or((after, ""));
            (value.trim().to_owned(), rest)
        };
        found.insert(name, value);
    }
    found
}

fn unquoted(text: &str) -> (String, &str) {
    let (mut value, mut is_escaped) = (String::new(), false);
    for (at, c) in text.char_indices() {
        match c {
            _ if is_escaped => {
                value.push(c);
                is_escaped = false;
            }
            '\\' => is_escaped = true,
            '"' => return (value, &text[at + 1..]),
            c => value.push(c),
        }
    }
    (value, "")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn challenges_are_parsed() {
        let bearer =
            r#"Bearer realm="https://auth/token",service="r",scope="repository:a/b:pull,push""#;
        let expected = Challenge::Bearer {
            realm: "https://auth/token".to_owned(),
            service: Some("r".to_owned()),
            scope: Some("repository:a/b:pull,push".to_owned()),
        };
        assert_eq!(
            parse([r#"Basic realm="x""#, bearer].into_iter()),
            Some(expected)
        );
        assert_eq!(
            parse([r#"basic realm="Registry""#].into_iter()),
            Some(Challenge::Basic)
        );
        assert_eq!(parse(["Negotiate", "Bearer x"].into_iter()), None);
        let plain = parse([r#"Bearer service=r , realm="a\"b""#].into_iter());
        let expected = Challenge::Bearer {
            realm: "a\"b".to_owned(),
            service: Some("r".to_owned()),
            scope: None,
        };
        assert_eq!(plain, Some(expected));
    }

    proptest! {
        #[test]
        fn any_header_is_read_or_refused(text in "(Bearer |Basic )?\\PC{0,60}") {
            parse([text.as_str()].into_iter());
        }
    }
}
