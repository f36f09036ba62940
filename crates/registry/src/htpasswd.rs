//! Password files: `user:bcrypt` lines.

use std::collections::HashMap;

use model::Error;

/// Work factor of new hashes. Verified ones are remembered, so a slow check costs each client once.
const COST: u32 = 10;
/// Units: bytes. bcrypt ignores further bytes.
pub(crate) const PASSWORD_LIMIT_BYTES: usize = 72;

/// A line for a password file, without its end.
///
/// Errors: Invalid – a user name or password that cannot stand there; Internal – no randomness.
pub fn line(user: &str, password: &str) -> Result<String, Error> {
    if user.is_empty()
        || user.contains([':', '\n', '\r'])
        || user.starts_with('#')
        || user.trim() != user
    {
        return Err(Error::invalid(
            "user",
            "expected a name without colon or line end, not beginning with #",
        ));
    }
    if !is_password(password) {
        let reason = format!("expected 1 to {PASSWORD_LIMIT_BYTES} bytes without NUL");
        return Err(Error::invalid("password", reason));
    }
    let hash =
        bcrypt::hash(password, COST).map_err(|e| Error::internal("hashing a password", e))?;
    Ok(format!("{user}:{hash}"))
}

/// Whether bcrypt sees all of `password`.
pub(crate) fn is_password(password: &str) -> bool {
    (1..=PASSWORD_LIMIT_BYTES).contains(&password.len()) && !password.contains('\0')
}

/// The hashes of a password file, by user; of two lines for one user the later counts.
///
/// Errors: Invalid – a line without a colon, by its number.
pub(crate) fn parse(text: &str) -> Result<HashMap<String, String>, Error> {
    let mut users = HashMap::new();
    for (index, line) in text.lines().enumerate() {
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let (user, hash) = line
            .split_once(':')
            .filter(|(user, _)| !user.is_empty())
            .ok_or_else(|| {
                Error::invalid(
                    "password file",
                    format!("line {}: expected user:hash", index + 1),
                )
            })?;
        users.insert(user.to_owned(), hash.to_owned());
    }
    Ok(users)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_line_lets_its_user_in() {
        let line = line("admin", "p:w ü").unwrap();
        let users = parse(&line).unwrap();
        assert!(bcrypt::verify("p:w ü", &users["admin"]).unwrap());
        assert!(!bcrypt::verify("p:w", &users["admin"]).unwrap());
    }

    #[test]
    fn what_cannot_stand_in_a_line() {
        let long = "x".repeat(73);
        for (user, password) in [
            ("", "p"),
            ("a:b", "p"),
            ("a\nb", "p"),
            ("#a", "p"),
            (" a", "p"),
            ("a", ""),
            ("a", "p\0"),
            ("a", long.as_str()),
        ] {
            assert!(
                matches!(line(user, password), Err(Error::Invalid { .. })),
                "{user:?} {password:?}"
            );
        }
    }

    #[test]
    fn files() {
        let users = parse("# users\n\n  a:1 \nb:2:3\na:4\n").unwrap();
        assert_eq!(
            (users["a"].as_str(), users["b"].as_str(), users.len()),
            ("4", "2:3", 2)
        );
        let error = parse("a:1\ngarbage\n").unwrap_err().to_string();
        assert!(
            error.contains("line 2") && !error.contains("garbage"),
            "{error}"
        );
    }

    proptest! {
        #[test]
        fn any_file_is_read_or_refused(text in "\\PC{0,60}(\n\\PC{0,20}){0,3}") {
            parse(&text).ok();
        }
    }
}
