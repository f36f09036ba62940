//! The kubeconfig with the certificate authority of the ingress.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use model::Error;
use serde_json::Value;

const AUTHORITY: &str = "certificate-authority-data";

/// Adds the certificates of `pem` to the trust of each cluster in `text` (YAML). Idempotent.
///
/// Errors: `Invalid` – `pem` is not a list of certificates; `Internal` – the stored kubeconfig is damaged.
pub fn with_ingress_ca(text: &str, pem: &str) -> Result<String, Error> {
    let certificates = certificates(pem)?;
    let mut kubeconfig = read_kubeconfig(text)?;
    let clusters = kubeconfig
        .get_mut("clusters")
        .and_then(Value::as_array_mut)
        .filter(|clusters| !clusters.is_empty())
        .ok_or_else(|| damaged("it names no cluster".to_owned()))?;
    for entry in clusters {
        let cluster = entry
            .get_mut("cluster")
            .and_then(Value::as_object_mut)
            .ok_or_else(|| damaged("a cluster has no members".to_owned()))?;
        let encoded = cluster.get(AUTHORITY).and_then(Value::as_str).unwrap_or("");
        let trusted = STANDARD
            .decode(encoded)
            .ok()
            .and_then(|bytes| String::from_utf8(bytes).ok())
            .ok_or_else(|| damaged(format!("{AUTHORITY} is not base64 of text")))?;
        let together = append(&trusted, &certificates);
        cluster.insert(AUTHORITY.to_owned(), STANDARD.encode(together).into());
    }
    serde_yaml::to_string(&kubeconfig)
        .map_err(|error| Error::internal("printing the kubeconfig", error))
}

/// Errors: `Internal` – the stored kubeconfig is no YAML.
pub fn read_kubeconfig(text: &str) -> Result<Value, Error> {
    // The parser's error may quote a secret.
    serde_yaml::from_str(text).map_err(|_| damaged("it is no YAML".to_owned()))
}

fn damaged(why: String) -> Error {
    Error::internal("reading the stored kubeconfig", why)
}

fn append(trusted: &str, certificates: &[String]) -> String {
    let mut together = trusted.trim_end().to_owned();
    if !together.is_empty() {
        together.push('\n');
    }
    let known = bodies(trusted);
    for certificate in certificates {
        if !known.contains(certificate) {
            together.push_str(&print(certificate));
        }
    }
    together
}

const BEGIN: &str = "-----BEGIN CERTIFICATE-----";
const END: &str = "-----END CERTIFICATE-----";

/// The base64 bodies of the certificates in `pem`, without line breaks; invalid ones are skipped.
fn bodies(pem: &str) -> Vec<String> {
    pem.split(BEGIN)
        .skip(1)
        .filter_map(|part| part.split_once(END))
        .map(|(body, _)| body.split_whitespace().collect::<String>())
        .filter(|body| is_certificate(body))
        .collect()
}

/// Whether `body` decodes to exactly one DER sequence.
fn is_certificate(body: &str) -> bool {
    let Ok(der) = STANDARD.decode(body) else {
        return false;
    };
    let Some((&0x30, rest)) = der.split_first() else {
        return false;
    };
    let Some((&first, rest)) = rest.split_first() else {
        return false;
    };
    if first < 0x80 {
        return usize::from(first) == rest.len();
    }
    let count = usize::from(first & 0x7f);
    if count == 0 || count > 4 || rest.len() < count {
        return false;
    }
    let (length, content) = rest.split_at(count);
    let length = length
        .iter()
        .fold(0_usize, |sum, byte| (sum << 8) | usize::from(*byte));
    length == content.len()
}

fn certificates(pem: &str) -> Result<Vec<String>, Error> {
    let count = pem.matches(BEGIN).count();
    let certificates = bodies(pem);
    if count == 0 || certificates.len() != count {
        return Err(Error::invalid(
            "ingress-cert-params",
            "must contain valid PEM certificates (BEGIN CERTIFICATE … END CERTIFICATE)",
        ));
    }
    Ok(certificates)
}

fn print(body: &str) -> String {
    let mut text = format!("{BEGIN}\n");
    let mut rest = body;
    while !rest.is_empty() {
        // Base64 is ASCII, so every index is a boundary.
        let (line, tail) = rest.split_at(rest.len().min(64));
        text.push_str(line);
        text.push('\n');
        rest = tail;
    }
    text.push_str(END);
    text.push('\n');
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pem(name: &str) -> String {
        // Only the DER sequence is validated.
        let mut der = vec![0x30, u8::try_from(name.len()).unwrap()];
        der.extend(name.as_bytes());
        print(&STANDARD.encode(der))
    }

    fn kubeconfig(trusted: &str) -> String {
        format!(
            "apiVersion: v1\nclusters:\n- name: demo\n  cluster:\n    server: https://api.demo.lab:6443\n    \
             certificate-authority-data: {}\n",
            STANDARD.encode(trusted)
        )
    }

    fn trusted(text: &str) -> String {
        let value: Value = serde_yaml::from_str(text).unwrap();
        let encoded = value["clusters"][0]["cluster"][AUTHORITY].as_str().unwrap();
        String::from_utf8(STANDARD.decode(encoded).unwrap()).unwrap()
    }

    #[test]
    fn adding_certificates_is_idempotent() {
        let once = with_ingress_ca(&kubeconfig(&pem("api")), &pem("ingress")).unwrap();
        assert_eq!(trusted(&once), format!("{}{}", pem("api"), pem("ingress")));
        let twice = with_ingress_ca(&once, &pem("ingress")).unwrap();
        assert_eq!(trusted(&twice), trusted(&once));
    }

    #[test]
    fn other_members_are_unchanged() {
        let text = with_ingress_ca(&kubeconfig(""), &pem("ingress")).unwrap();
        let value: Value = serde_yaml::from_str(&text).unwrap();
        assert_eq!(
            value["clusters"][0]["cluster"]["server"],
            "https://api.demo.lab:6443"
        );
    }

    #[test]
    fn invalid_certificates_are_refused() {
        let broken = pem("ingress").replace('\n', "!\n");
        let half = format!("{}{BEGIN}\nabc", pem("ingress"));
        for pem in ["", "hello", &broken, &half] {
            let answer = with_ingress_ca(&kubeconfig(&self::pem("api")), pem);
            assert!(matches!(answer, Err(Error::Invalid { .. })), "{pem}");
        }
    }
}
