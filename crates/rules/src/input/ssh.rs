//! Public keys of SSH.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use model::Error;

use super::refusal::refuse;

/// Key types that the platform's machines accept. Keys on security tokens are not among them.
const KINDS: &[&str] = &[
    "ssh-rsa",
    "ssh-dss",
    "ssh-ed25519",
    "ecdsa-sha2-nistp256",
    "ecdsa-sha2-nistp384",
    "ecdsa-sha2-nistp521",
];

/// Checks public keys, one a line; blank lines and an empty text are allowed.
/// Source: assisted-service, internal/cluster/validations/validations.go, ValidateSSHPublicKey.
pub fn ssh_public_keys(field: &str, text: &str) -> Result<(), Error> {
    for line in text.lines().map(str::trim).filter(|line| !line.is_empty()) {
        if !is_key(line) {
            return Err(refuse(
                field,
                line,
                &format!(
                    "is not a public key: each line is \"<kind> <base64> [comment]\", kind one of [{}]",
                    KINDS.join(" ")
                ),
            ));
        }
    }
    Ok(())
}

fn is_key(line: &str) -> bool {
    let mut words = line.split_whitespace();
    let (Some(kind), Some(blob)) = (words.next(), words.next()) else {
        return false;
    };
    KINDS.contains(&kind)
        && STANDARD
            .decode(blob)
            .is_ok_and(|bytes| names_kind(&bytes, kind))
}

/// The blob starts with its key type, preceded by its length, and has a body after that.
fn names_kind(blob: &[u8], kind: &str) -> bool {
    let Some((length, rest)) = blob.split_first_chunk::<4>() else {
        return false;
    };
    let Ok(length) = usize::try_from(u32::from_be_bytes(*length)) else {
        return false;
    };
    rest.len() > length && rest.get(..length) == Some(kind.as_bytes())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const KEY: &str = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIGPKCJpZvGRjDkGAjIK0T3iLZWMFGJ5F9LlKtZ0bGN3b core@example";

    #[test]
    fn keys() {
        for good in ["", "\n", KEY, &format!("{KEY}\n\n{KEY}\n")] {
            assert!(ssh_public_keys("ssh_public_key", good).is_ok(), "{good}");
        }
        let other_kind = KEY.replacen("ssh-ed25519", "ssh-rsa", 1);
        for bad in [
            "ssh-ed25519",
            "ssh-ed25519 AAAA",
            "nonsense",
            &other_kind,
            &format!("{KEY}\nx"),
        ] {
            assert!(ssh_public_keys("ssh_public_key", bad).is_err(), "{bad}");
        }
    }

    proptest! {
        #[test]
        fn no_check_panics(text in "ssh-rsa [A-Za-z0-9+/=]{0,64}|\\PC*") {
            let _ = ssh_public_keys("ssh_public_key", &text);
        }
    }
}
