//! Credentials of a request.

use axum::http::{HeaderMap, header};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

/// The `Authorization` of a request.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Credentials {
    /// None, or empty ones: podman sends those without a login.
    None,
    /// A user and a password.
    Basic(Login),
    /// A token that was given for a password, or without one.
    Bearer(String),
    /// Credentials that cannot be valid.
    Unreadable,
}

/// A user and the password that the user claims to have.
#[derive(PartialEq, Eq)]
pub(crate) struct Login {
    pub(super) user: String,
    pub(super) password: String,
}

impl Credentials {
    pub(crate) fn of(headers: &HeaderMap) -> Self {
        match headers.get(header::AUTHORIZATION) {
            None => Self::None,
            Some(value) => value
                .to_str()
                .ok()
                .and_then(Self::parse)
                .unwrap_or(Self::Unreadable),
        }
    }

    fn parse(text: &str) -> Option<Self> {
        let (scheme, rest) = text.split_once(' ')?;
        let rest = rest.trim();
        if scheme.eq_ignore_ascii_case("bearer") {
            return Some(Self::Bearer(rest.to_owned()));
        }
        if !scheme.eq_ignore_ascii_case("basic") {
            return None;
        }
        let text = String::from_utf8(STANDARD.decode(rest).ok()?).ok()?;
        let (user, password) = text.split_once(':')?;
        if user.is_empty() && password.is_empty() {
            return Some(Self::None);
        }
        Some(Self::Basic(Login {
            user: user.to_owned(),
            password: password.to_owned(),
        }))
    }
}

impl std::fmt::Debug for Login {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Login").field(&self.user).finish()
    }
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;
    use proptest::prelude::*;

    use super::*;

    fn of(value: &str) -> Credentials {
        let value = HeaderValue::from_str(value).unwrap();
        Credentials::of(&HeaderMap::from_iter([(header::AUTHORIZATION, value)]))
    }

    fn basic(text: &str) -> Credentials {
        of(&format!("Basic {}", STANDARD.encode(text)))
    }

    #[test]
    fn what_a_request_may_say() {
        let login = |user: &str, password: &str| {
            Credentials::Basic(Login {
                user: user.to_owned(),
                password: password.to_owned(),
            })
        };
        assert_eq!(Credentials::of(&HeaderMap::new()), Credentials::None);
        assert_eq!(of("Basic Og=="), Credentials::None);
        assert_eq!(basic("u:p:w ü"), login("u", "p:w ü"));
        assert_eq!(basic(":p"), login("", "p"));
        assert_eq!(of("bearer  x"), Credentials::Bearer("x".to_owned()));
        for wrong in [
            "",
            "Basic",
            "Basic !",
            "Basic dQ==",
            "Digest x",
            "Basic /w==",
        ] {
            assert_eq!(of(wrong), Credentials::Unreadable, "{wrong:?}");
        }
    }

    #[test]
    fn passwords_are_not_shown() {
        assert!(!format!("{:?}", basic("u:hunter2")).contains("hunter2"));
    }

    proptest! {
        #[test]
        fn a_login_comes_as_it_was_sent(user in "[^:]{1,20}", password in "\\PC{0,20}") {
            let Credentials::Basic(login) = basic(&format!("{user}:{password}")) else {
                panic!("a login");
            };
            prop_assert_eq!((login.user, login.password), (user, password));
        }
    }
}
