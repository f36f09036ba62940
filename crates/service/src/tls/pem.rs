//! PEM files as people bring them: with a byte-order mark, with a key that is encrypted, or in another format.

use std::path::Path;

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, CertificateRevocationListDer, PrivateKeyDer};

/// Before UTF-8.
const BYTE_ORDER_MARK: &[u8] = "\u{feff}".as_bytes();
const ENCRYPTED_LABEL: &str = "ENCRYPTED PRIVATE KEY";
/// Header of an encrypted key in the older format. Source: RFC 1421, section 4.6.1.1.
const ENCRYPTED_HEADER: &[u8] = b"Proc-Type: 4,ENCRYPTED";
const KEY_LABEL: &str = "PRIVATE KEY";
/// Labels in an error.
const SHOWN_LABELS: usize = 5;

/// `bytes` without a byte-order mark.
pub(super) fn unmarked(bytes: &[u8]) -> &[u8] {
    bytes.strip_prefix(BYTE_ORDER_MARK).unwrap_or(bytes)
}

/// The certificates of the file at `path`, at least one.
///
/// Errors: no certificate, broken PEM.
pub(super) fn certificates(
    path: &Path,
    bytes: &[u8],
) -> Result<Vec<CertificateDer<'static>>, String> {
    all(path, bytes, "certificate")
}

/// The revocation lists of the file at `path`, at least one.
///
/// Errors: no list, broken PEM.
pub(super) fn revocations(
    path: &Path,
    bytes: &[u8],
) -> Result<Vec<CertificateRevocationListDer<'static>>, String> {
    all(path, bytes, "list of revoked certificates (X509 CRL)")
}

/// The first private key of the file at `path`.
///
/// Errors: no key, an encrypted one, broken PEM; without content of the key.
pub(super) fn private_key(path: &Path, bytes: &[u8]) -> Result<PrivateKeyDer<'static>, String> {
    let shown = path.display();
    match PrivateKeyDer::pem_slice_iter(unmarked(bytes)).next() {
        Some(Ok(key)) => Ok(key),
        Some(Err(error)) => Err(encrypted(path, bytes)
            .unwrap_or_else(|| format!("{shown}: its private key is broken PEM: {error}"))),
        None => Err(encrypted(path, bytes)
            .unwrap_or_else(|| format!("{shown}: {}", lack(path, bytes, "private key")))),
    }
}

/// The remark on an encrypted key, if the file has one.
fn encrypted(path: &Path, bytes: &[u8]) -> Option<String> {
    let mut headers = bytes.windows(ENCRYPTED_HEADER.len());
    let is_encrypted = headers.any(|it| it == ENCRYPTED_HEADER)
        || labels(bytes).iter().any(|label| label == ENCRYPTED_LABEL);
    let shown = path.display();
    is_encrypted.then(|| {
        format!(
            "{shown}: its private key is encrypted, and the server has no passphrase: decrypt it by `openssl pkey -in {shown} -out KEY`"
        )
    })
}

/// Whether the text has a section of a private key.
pub(super) fn has_private_key(bytes: &[u8]) -> bool {
    labels(bytes).iter().any(|label| label.ends_with(KEY_LABEL))
}

fn all<T: PemObject>(path: &Path, bytes: &[u8], expected: &str) -> Result<Vec<T>, String> {
    let shown = path.display();
    let found = T::pem_slice_iter(unmarked(bytes))
        .collect::<Result<Vec<_>, _>>()
        .map_err(|error| encrypted(path, bytes).unwrap_or_else(|| format!("{shown}: {error}")))?;
    if found.is_empty() {
        return Err(format!("{shown}: {}", lack(path, bytes, expected)));
    }
    Ok(found)
}

/// The reason why a file has no `expected` section.
fn lack(path: &Path, bytes: &[u8], expected: &str) -> String {
    let shown = path.display();
    match bytes {
        [] => return "the file is empty".to_owned(),
        [0xff, 0xfe, ..] | [0xfe, 0xff, ..] => return "it is UTF-16: save it as UTF-8".to_owned(),
        [0xfe, 0xed, 0xfe, 0xed, ..] => {
            return "it is a Java keystore: export PEM by `keytool` and `openssl`".to_owned();
        }
        // A sequence whose first member is the version 3. Source: RFC 7292, section 4.
        [0x30, 0x82, _, _, 2, 1, 3, ..] | [0x30, 0x80, 2, 1, 3, ..] => {
            return format!(
                "it is PKCS#12: convert it by `openssl pkcs12 -in {shown} -nodes -out FILE.pem`"
            );
        }
        [0x30, 0x80..=0x84, ..] => {
            return format!(
                "it is DER: convert it to PEM by `openssl x509 -inform der -in {shown} -out FILE.pem`, a key by `openssl pkey`"
            );
        }
        _ => {}
    }
    let labels = labels(bytes);
    if labels.is_empty() {
        return format!("no {expected} in it: expected PEM");
    }
    let labels = &labels[..labels.len().min(SHOWN_LABELS)];
    format!("no {expected} in it, only: {}", labels.join(", "))
}

/// Labels of the sections of a PEM text.
fn labels(bytes: &[u8]) -> Vec<String> {
    let lines = unmarked(bytes).split(|byte| matches!(byte, b'\n' | b'\r'));
    lines
        .filter_map(|line| {
            let label = line.strip_prefix(b"-----BEGIN ")?;
            let end = label.windows(5).position(|it| it == b"-----")?;
            Some(String::from_utf8_lossy(&label[..end]).into_owned())
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key_error(bytes: &[u8]) -> String {
        private_key(Path::new("x.pem"), bytes).unwrap_err()
    }

    #[test]
    fn other_formats_are_named_with_their_remedy() {
        for (bytes, expected) in [
            (&b""[..], "x.pem: the file is empty"),
            (b"\xff\xfe-\0", "UTF-16"),
            (b"\x30\x82\x01\x02\x02\x01\x03\x30", "openssl pkcs12"),
            (
                b"\x30\x82\x01\x02\x30\x82",
                "openssl x509 -inform der -in x.pem",
            ),
            (b"\xfe\xed\xfe\xed\0", "Java keystore"),
            (b"hello", "no certificate in it: expected PEM"),
            (
                b"-----BEGIN PRIVATE KEY-----\nAA==\n-----END PRIVATE KEY-----\n",
                "no certificate in it, only: PRIVATE KEY",
            ),
        ] {
            let error = certificates(Path::new("x.pem"), bytes).unwrap_err();
            assert!(error.contains(expected), "{error}");
        }
        let error = revocations(Path::new("x.pem"), b"hello").unwrap_err();
        assert!(error.contains("X509 CRL"), "{error}");
    }

    #[test]
    fn an_encrypted_key_is_named() {
        let newer = b"-----BEGIN ENCRYPTED PRIVATE KEY-----\nc2VjcmV0\n-----END ENCRYPTED PRIVATE KEY-----\n";
        let older = b"-----BEGIN RSA PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\nDEK-Info: AES-256-CBC,00\n\nc2VjcmV0\n-----END RSA PRIVATE KEY-----\n";
        for text in [&newer[..], older] {
            assert!(has_private_key(text));
            let certificate = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";
            let bundle = [certificate.as_bytes(), text].concat();
            let found = certificates(Path::new("x.pem"), &bundle).map(|found| found.len());
            assert!(found.is_ok_and(|it| it == 1) || text == older);
            let error = key_error(text);
            assert!(
                error.contains("is encrypted") && !error.contains("c2Vj"),
                "{error}"
            );
        }
    }

    #[test]
    fn a_key_is_found_behind_a_mark_and_parameters() {
        let section = "-----BEGIN PRIVATE KEY-----\r\nAAAA\r\n-----END PRIVATE KEY-----\r\n";
        let parameters =
            "-----BEGIN EC PARAMETERS-----\nBggqhkjOPQMBBw==\n-----END EC PARAMETERS-----\n";
        for text in [
            format!("\u{feff}{section}"),
            format!("{parameters}{section}"),
        ] {
            let key = private_key(Path::new("x.pem"), text.as_bytes()).unwrap();
            assert_eq!(key.secret_der(), [0, 0, 0]);
        }
        assert!(!has_private_key(parameters.as_bytes()));
        assert!(key_error(parameters.as_bytes()).contains("only: EC PARAMETERS"));
    }
}
