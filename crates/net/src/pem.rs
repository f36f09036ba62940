//! PEM files as people bring them: with a byte-order mark, with a key that is encrypted, or in another format.

use std::borrow::Cow;

use rustls::pki_types::pem::{self, PemObject};
use rustls::pki_types::{CertificateDer, CertificateRevocationListDer, PrivateKeyDer};

/// Before UTF-8.
const BYTE_ORDER_MARK: &[u8] = "\u{feff}".as_bytes();
const ENCRYPTED_LABEL: &str = "ENCRYPTED PRIVATE KEY";
/// Header of an encrypted key in the older format. Source: RFC 1421, section 4.6.1.1.
const ENCRYPTED_HEADER: &[u8] = b"Proc-Type: 4,ENCRYPTED";
const KEY_LABEL: &str = "PRIVATE KEY";
/// In errors: a certificate, and in upper case its label.
const CERTIFICATE: &str = "certificate";
/// Start of the first line of a section.
const BEGIN: &[u8] = b"-----BEGIN ";
/// The same in base64.
const BEGIN_IN_BASE64: &[u8] = b"LS0tLS1CRUdJTi";
/// A line end as in JSON and in variables.
const ESCAPED_LINE_END: &[u8] = b"\\n";
const ESCAPED: &str = "its lines end with the two characters \\n: replace them by line ends";
/// Labels in an error.
const SHOWN_LABELS: usize = 5;
/// Longest label of a section; a longer one is content, which may be that of a key. Units: bytes.
const LABEL_LIMIT: usize = 32;

/// `bytes` without a byte-order mark.
pub fn unmarked(bytes: &[u8]) -> &[u8] {
    bytes.strip_prefix(BYTE_ORDER_MARK).unwrap_or(bytes)
}

/// The text without byte-order marks, missing line ends and older labels, which the parser does not know. Marks are also before later
/// sections, where marked files were joined. Source: OpenSSL, `PEM_STRING_X509_OLD` and `PEM_STRING_X509_TRUSTED`.
fn normalised(bytes: &[u8]) -> Cow<'_, [u8]> {
    let mut text = Cow::Borrowed(bytes);
    for (from, to) in [
        (BYTE_ORDER_MARK, &b""[..]),
        // Files without a line end that were joined, by the last letters of CERTIFICATE, KEY, CRL and PARAMETERS: other
        // dashes before a section are decoration.
        (b"E----------BEGIN ", b"E-----\n-----BEGIN "),
        (b"Y----------BEGIN ", b"Y-----\n-----BEGIN "),
        (b"L----------BEGIN ", b"L-----\n-----BEGIN "),
        (b"S----------BEGIN ", b"S-----\n-----BEGIN "),
        (b" X509 CERTIFICATE-----", b" CERTIFICATE-----"),
        (b" TRUSTED CERTIFICATE-----", b" CERTIFICATE-----"),
    ] {
        if has(&text, from) {
            text = Cow::Owned(replaced(&text, from, to));
        }
    }
    text
}

fn has(text: &[u8], part: &[u8]) -> bool {
    text.windows(part.len()).any(|found| found == part)
}

fn replaced(mut text: &[u8], from: &[u8], to: &[u8]) -> Vec<u8> {
    let mut result = Vec::with_capacity(text.len());
    while let Some(at) = text.windows(from.len()).position(|part| part == from) {
        result.extend_from_slice(&text[..at]);
        result.extend_from_slice(to);
        text = &text[at + from.len()..];
    }
    result.extend_from_slice(text);
    result
}

/// A certificate without the trailer that OpenSSL writes behind trusted ones.
fn without_trailer(der: CertificateDer<'static>) -> CertificateDer<'static> {
    // A sequence of 256 to 65535 bytes, as all but toys are. Source: X.690, section 8.1.3.
    let [0x30, 0x82, high, low, ..] = *der else {
        return der;
    };
    let end = 4 + usize::from(u16::from_be_bytes([high, low]));
    match der.get(..end) {
        Some(own) if end < der.len() => own.to_vec().into(),
        _ => der,
    }
}

/// The certificates of a text, at least one, in their order.
///
/// Errors: the reason, for the path of the file: no certificate, broken PEM.
pub fn certificates(bytes: &[u8]) -> Result<Vec<CertificateDer<'static>>, String> {
    let found = all(bytes, CERTIFICATE)?;
    Ok(found.into_iter().map(without_trailer).collect())
}

/// The revocation lists of a text, at least one.
///
/// Errors: the reason, for the path of the file: no list, broken PEM.
pub fn revocations(bytes: &[u8]) -> Result<Vec<CertificateRevocationListDer<'static>>, String> {
    all(bytes, "list of revoked certificates (X509 CRL)")
}

/// The first private key of a text.
///
/// Errors: the reason, for the path of the file, without content of the key: no key, an encrypted one, broken PEM.
pub fn private_key(bytes: &[u8]) -> Result<PrivateKeyDer<'static>, String> {
    let bytes = &*normalised(bytes);
    match PrivateKeyDer::pem_slice_iter(bytes).next() {
        Some(Ok(key)) => Ok(key),
        Some(Err(error)) => Err(encrypted(bytes)
            .unwrap_or_else(|| format!("its private key is broken PEM: {}", fault(&error)))),
        None => Err(encrypted(bytes).unwrap_or_else(|| lack(bytes, "private key"))),
    }
}

/// The remark on an encrypted key, if the file has one.
fn encrypted(bytes: &[u8]) -> Option<String> {
    let is_encrypted =
        has(bytes, ENCRYPTED_HEADER) || labels(bytes).iter().any(|label| label == ENCRYPTED_LABEL);
    is_encrypted.then(|| {
        "its private key is encrypted, and there is no passphrase: decrypt it by `openssl pkey -in FILE -out KEY`"
            .to_owned()
    })
}

/// Whether the text has a section of a private key.
pub fn has_private_key(bytes: &[u8]) -> bool {
    labels(bytes).iter().any(|label| label.ends_with(KEY_LABEL))
}

fn all<T: PemObject>(bytes: &[u8], expected: &str) -> Result<Vec<T>, String> {
    let bytes = &*normalised(bytes);
    let found = T::pem_slice_iter(bytes)
        .collect::<Result<Vec<_>, _>>()
        .map_err(|error| {
            encrypted(bytes).unwrap_or_else(|| format!("broken PEM: {}", fault(&error)))
        })?;
    if found.is_empty() {
        return Err(lack(bytes, expected));
    }
    Ok(found)
}

/// The reason why a section cannot be read, and a way out.
fn fault(error: &pem::Error) -> String {
    match error {
        // The parser takes a line from a first mark to a last one for a label, content included.
        pem::Error::MissingSectionEnd { end_marker } if end_marker.len() > LABEL_LIMIT => {
            "a section is on one line: write its first mark, its content and its last mark on lines of their own"
                .to_owned()
        }
        pem::Error::MissingSectionEnd { end_marker } => format!(
            "a section has no end `-----END {}-----`: the file was cut off, copy it again",
            String::from_utf8_lossy(end_marker)
        ),
        pem::Error::Base64Decode(_) => {
            "a section is not base64, or its end is missing: copy the file again".to_owned()
        }
        pem::Error::IllegalSectionStart { line } if has(line, ESCAPED_LINE_END) => {
            ESCAPED.to_owned()
        }
        pem::Error::IllegalSectionStart { .. } => {
            "the first line of a section does not end with -----: copy the file again".to_owned()
        }
        error => error.to_string(),
    }
}

/// The reason why a file has no `expected` section.
fn lack(bytes: &[u8], expected: &str) -> String {
    match bytes {
        [] => return "the file is empty".to_owned(),
        [0xff, 0xfe, ..] | [0xfe, 0xff, ..] => return "it is UTF-16: save it as UTF-8".to_owned(),
        [0xfe, 0xed, 0xfe, 0xed, ..] => {
            return "it is a Java keystore: export PEM by `keytool` and `openssl`".to_owned();
        }
        // A sequence whose first member is the version 3. Source: RFC 7292, section 4.
        [0x30, 0x82, _, _, 2, 1, 3, ..] | [0x30, 0x80, 2, 1, 3, ..] => {
            return "it is PKCS#12: convert it by `openssl pkcs12 -in FILE -nodes -out FILE.pem`"
                .to_owned();
        }
        [0x30, 0x80..=0x84, ..] => {
            return "it is DER: convert it to PEM by `openssl x509 -inform der -in FILE -out FILE.pem`, a key by `openssl pkey`"
                .to_owned();
        }
        _ => {}
    }
    let labels = labels(bytes);
    if labels.is_empty() {
        return without_sections(bytes, expected);
    }
    if labels.contains(&expected.to_ascii_uppercase()) {
        return format!("its {expected} has no end: the file was cut off, copy it again");
    }
    let conversion = labels.iter().find_map(|label| conversion(label));
    let conversion = conversion.map_or_else(String::new, |way| format!(": {way}"));
    let labels = &labels[..labels.len().min(SHOWN_LABELS)];
    format!(
        "no {expected} in it, only: {}{conversion}",
        labels.join(", ")
    )
}

/// The reason why a text without sections has none.
fn without_sections(bytes: &[u8], expected: &str) -> String {
    if has(bytes, ESCAPED_LINE_END) && has(bytes, BEGIN) {
        return ESCAPED.to_owned();
    }
    if has(bytes, BEGIN) {
        return "its lines are indented: remove the blanks before -----BEGIN".to_owned();
    }
    if has(bytes, BEGIN_IN_BASE64) {
        return "it is PEM in base64, as in a Secret: decode it by `base64 -d`".to_owned();
    }
    format!(
        "no {expected} in it: expected PEM, whose sections begin with -----BEGIN; `openssl x509 -inform der` converts a certificate in DER"
    )
}

/// The way out for a section that is not read.
fn conversion(label: &str) -> Option<&'static str> {
    match label {
        "PKCS7" => Some("convert it by `openssl pkcs7 -print_certs -in FILE -out FILE.pem`"),
        "CERTIFICATE REQUEST" | "NEW CERTIFICATE REQUEST" => {
            Some("an authority makes the certificate of this request")
        }
        "OPENSSH PRIVATE KEY" => Some("convert a copy of it by `ssh-keygen -p -m PEM -f COPY`"),
        "DSA PRIVATE KEY" => Some("keys of DSA are not supported: make one of RSA or ECDSA"),
        _ => None,
    }
}

/// Labels of the sections of a PEM text.
fn labels(bytes: &[u8]) -> Vec<String> {
    let bytes = normalised(bytes);
    let lines = bytes.split(|byte| matches!(byte, b'\n' | b'\r'));
    lines
        .filter_map(|line| {
            let label = line.strip_prefix(BEGIN)?;
            let end = label.windows(5).position(|it| it == b"-----")?;
            let end = Some(end).filter(|end| *end <= LABEL_LIMIT)?;
            Some(String::from_utf8_lossy(&label[..end]).into_owned())
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key_error(bytes: &[u8]) -> String {
        private_key(bytes).unwrap_err()
    }

    #[test]
    fn a_key_on_one_line_is_not_repeated() {
        let line = b"-----BEGIN PRIVATE KEY----- MIIEvSECRET -----END PRIVATE KEY-----";
        for error in [key_error(line), certificates(line).unwrap_err()] {
            assert!(!error.contains("SECRET"), "{error}");
            assert!(error.contains("on one line"), "{error}");
        }
    }

    #[test]
    fn decoration_is_no_section() {
        let key = b"-----------------BEGIN own key-----------------\n-----BEGIN PRIVATE KEY-----\nAA==\n-----END PRIVATE KEY-----\n";
        assert_eq!(labels(key), ["PRIVATE KEY"]);
    }

    #[test]
    fn other_formats_are_named_with_their_remedy() {
        for (bytes, expected) in [
            (&b""[..], "the file is empty"),
            (b"\xff\xfe-\0", "UTF-16"),
            (b"\x30\x82\x01\x02\x02\x01\x03\x30", "openssl pkcs12"),
            (
                b"\x30\x82\x01\x02\x30\x82",
                "openssl x509 -inform der -in FILE",
            ),
            (b"\xfe\xed\xfe\xed\0", "Java keystore"),
            (b"hello", "no certificate in it: expected PEM"),
            (
                b"-----BEGIN PRIVATE KEY-----\nAA==\n-----END PRIVATE KEY-----\n",
                "no certificate in it, only: PRIVATE KEY",
            ),
            (
                b"-----BEGIN PKCS7-----\nAA==\n-----END PKCS7-----\n",
                "only: PKCS7: convert it by `openssl pkcs7",
            ),
            (
                b"-----BEGIN CERTIFICATE-----\nAA==\n",
                "has no end `-----END CERTIFICATE-----`",
            ),
            (
                b"-----BEGIN CERTIFICATE-----\nA!\n-----END CERTIFICATE-----\n",
                "a section is not base64",
            ),
            (
                b"-----BEGIN CERTIFICATE-----\nAA==\n-----BEGIN PRIVATE KEY-----\nAA==\n-----END PRIVATE KEY-----\n",
                "end",
            ),
            (
                b"-----BEGIN CERTIFICATE REQUEST-----\nAA==\n-----END CERTIFICATE REQUEST-----\n",
                "an authority makes",
            ),
            (
                b"key: -----BEGIN CERTIFICATE-----\\nAA==\\n",
                "two characters \\n",
            ),
            (b"-----BEGIN CERTIFICATE-----\\nAA==\\n", "two characters \\n"),
            (b"  -----BEGIN CERTIFICATE-----\n", "its lines are indented"),
            (b"LS0tLS1CRUdJTiBDRVJUSUZJQ0FURS0tLS0tCk1J", "`base64 -d`"),
        ] {
            let error = certificates(bytes).unwrap_err();
            assert!(error.contains(expected), "{error}");
        }
        let error = revocations(b"hello").unwrap_err();
        assert!(error.contains("X509 CRL"), "{error}");
    }

    #[test]
    fn older_labels_and_marks_between_sections_are_read() {
        let section =
            |label: &str| format!("-----BEGIN {label}-----\nMIIBAA==\n-----END {label}-----\n");
        let [own, old, trusted] =
            ["", "X509 ", "TRUSTED "].map(|kind| section(&format!("{kind}CERTIFICATE")));
        // The last two are of a file without a line end.
        let (trusted, key) = (trusted.trim_end(), section("PRIVATE KEY"));
        let text = format!("\u{feff}{own}\u{feff}{old}{trusted}{key}");
        assert_eq!(certificates(text.as_bytes()).unwrap().len(), 3);
        assert!(private_key(text.as_bytes()).is_ok() && has_private_key(text.as_bytes()));
    }

    #[test]
    fn the_trailer_of_a_trusted_certificate_is_left_out() {
        let own = [&[0x30, 0x82, 1, 0][..], &[7; 256]].concat();
        let with_trailer = [&own[..], &[0x30, 0]].concat();
        for der in [own.clone(), with_trailer] {
            assert_eq!(without_trailer(der.into()).as_ref(), own);
        }
        let cut = own[..100].to_vec();
        assert_eq!(without_trailer(cut.clone().into()).as_ref(), cut);
    }

    #[test]
    fn an_encrypted_key_is_named() {
        let newer = b"-----BEGIN ENCRYPTED PRIVATE KEY-----\nc2VjcmV0\n-----END ENCRYPTED PRIVATE KEY-----\n";
        let older = b"-----BEGIN RSA PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\nDEK-Info: AES-256-CBC,00\n\nc2VjcmV0\n-----END RSA PRIVATE KEY-----\n";
        for text in [&newer[..], older] {
            assert!(has_private_key(text));
            let certificate = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";
            let bundle = [certificate.as_bytes(), text].concat();
            let found = certificates(&bundle).map(|found| found.len());
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
            let key = private_key(text.as_bytes()).unwrap();
            assert_eq!(key.secret_der(), [0, 0, 0]);
        }
        assert!(!has_private_key(parameters.as_bytes()));
        assert!(key_error(parameters.as_bytes()).contains("only: EC PARAMETERS"));
    }
}
