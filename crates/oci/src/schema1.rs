//! Docker's schema 1 manifests: signatures are embedded, and the digest is over the signed payload. Source:
//! distribution 2.8, `manifest/schema1`, and docker/libtrust, `jsonsign.go`.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use bytes::Bytes;
use model::Error;
use serde::Deserialize;
use serde::de::IgnoredAny;

use crate::jws::{self, Jwk, PublicKey, wrong};
use crate::{Descriptor, Digest, Repository};

/// The signed payload and its layers.
#[derive(Debug)]
pub(crate) struct SignedContent {
    /// The bytes without the signatures; `None` for an unsigned manifest.
    pub(crate) payload: Option<Bytes>,
    /// Newest first.
    pub(crate) layers: Vec<Descriptor>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Schema1Body {
    name: String,
    fs_layers: Vec<Schema1Layer>,
    history: Vec<IgnoredAny>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Schema1Layer {
    blob_sum: Digest,
}

#[derive(Deserialize)]
struct Signed {
    #[serde(default)]
    signatures: Vec<Signature>,
}

#[derive(Deserialize)]
struct Signature {
    header: SignatureHeader,
    #[serde(rename = "signature")]
    value: String,
    protected: String,
}

#[derive(Deserialize)]
struct SignatureHeader {
    alg: String,
    jwk: Option<Jwk>,
    #[serde(default)]
    x5c: Vec<String>,
}

/// How the payload is restored from the bytes. Source: docker/libtrust, `jsonsign.go`.
#[derive(Deserialize, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
struct PayloadFormat {
    format_length: usize,
    format_tail: String,
}

/// Parses a manifest of schema 1 without verifying its signatures.
///
/// Errors: Invalid – malformed.
pub(crate) fn parse(bytes: &Bytes) -> Result<SignedContent, Error> {
    let damaged = |reason: String| Error::invalid("manifest", reason);
    let signed: Signed = serde_json::from_slice(bytes).map_err(|e| damaged(e.to_string()))?;
    let payload = signed
        .signatures
        .first()
        .map(|signature| payload(bytes, &signature.format()?))
        .transpose()?;
    // From the payload, not from all bytes: unsigned members are ignored.
    let body: Schema1Body = serde_json::from_slice(payload.as_ref().unwrap_or(bytes))
        .map_err(|e| damaged(e.to_string()))?;
    body.name.parse::<Repository>()?;
    if body.fs_layers.len() != body.history.len() || body.fs_layers.is_empty() {
        let (layers, history) = (body.fs_layers.len(), body.history.len());
        return Err(damaged(format!(
            "it has {layers} layers and a history of {history}: both have to be there, once for each layer"
        )));
    }
    let layers = body.fs_layers.into_iter().map(|layer| Descriptor {
        media_type: String::new(),
        digest: layer.blob_sum,
        size: 0,
        platform: None,
        annotations: None,
    });
    Ok(SignedContent {
        payload,
        layers: layers.collect(),
    })
}

/// Verifies that a manifest is signed and that all signatures are valid, by any key.
///
/// Errors: Invalid, field `signature` – none, or an invalid one.
pub(crate) fn verify(bytes: &Bytes) -> Result<(), Error> {
    let signed: Signed = serde_json::from_slice(bytes).map_err(|e| wrong(e.to_string()))?;
    let first = signed
        .signatures
        .first()
        .ok_or_else(|| wrong("the manifest has none"))?;
    let format = first.format()?;
    let text = URL_SAFE_NO_PAD.encode(payload(bytes, &format)?);
    for signature in &signed.signatures {
        if signature.format()? != format {
            return Err(wrong("the signatures are for different texts"));
        }
        let header = &signature.header;
        let key = match &header.jwk {
            Some(jwk) => PublicKey::parse(jwk)?,
            None => PublicKey::from_x5c(&header.x5c)?,
        };
        let message = format!("{}.{text}", signature.protected);
        key.verify(
            &header.alg,
            message.as_bytes(),
            &jws::decode(&signature.value)?,
        )?;
    }
    Ok(())
}

impl Signature {
    fn format(&self) -> Result<PayloadFormat, Error> {
        let protected = jws::decode(&self.protected)?;
        serde_json::from_slice(&protected).map_err(|e| wrong(e.to_string()))
    }
}

fn payload(bytes: &Bytes, format: &PayloadFormat) -> Result<Bytes, Error> {
    let head = bytes
        .get(..format.format_length)
        .ok_or_else(|| wrong("it is for more than the whole manifest"))?;
    let tail = jws::decode(&format.format_tail)?;
    Ok([head, &tail].concat().into())
}

#[cfg(test)]
pub(crate) mod tests {
    use base64::engine::general_purpose::STANDARD;
    use proptest::prelude::*;
    use ring::rand::SystemRandom;
    use ring::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair as _};
    use serde_json::{Value, json};

    use super::*;

    /// A payload with a signature by a new key.
    pub(crate) fn sign(payload: &str) -> String {
        sign_as(payload, |_, point| {
            let encode = |bytes: &[u8]| URL_SAFE_NO_PAD.encode(bytes);
            json!({"alg": "ES256", "jwk": {"kty": "EC", "crv": "P-256", "x": encode(&point[1..33]),
                "y": encode(&point[33..])}})
        })
    }

    /// `describe` returns the key in the header from the document and the point of the key.
    fn sign_as(payload: &str, describe: impl FnOnce(&[u8], &[u8]) -> Value) -> String {
        let random = SystemRandom::new();
        let curve = &ECDSA_P256_SHA256_FIXED_SIGNING;
        let pkcs8 = EcdsaKeyPair::generate_pkcs8(curve, &random).unwrap();
        let key = EcdsaKeyPair::from_pkcs8(curve, pkcs8.as_ref(), &random).unwrap();
        let encode = |bytes: &[u8]| URL_SAFE_NO_PAD.encode(bytes);
        let length = payload.rfind('}').unwrap();
        let protected = json!({"formatLength": length, "formatTail": encode(&payload.as_bytes()[length..]),
            "time": "2026-11-21T00:00:00Z"});
        let protected = encode(protected.to_string().as_bytes());
        let message = format!("{protected}.{}", encode(payload.as_bytes()));
        let signature = key.sign(&random, message.as_bytes()).unwrap();
        let header = describe(pkcs8.as_ref(), key.public_key().as_ref());
        let signatures = json!([{"header": header,
            "signature": encode(signature.as_ref()), "protected": protected}]);
        format!("{},\"signatures\":{signatures}}}", &payload[..length])
    }

    fn payload() -> String {
        let blob = Digest::sha256(b"layer");
        format!(
            "{{\n   \"schemaVersion\": 1,\n   \"name\": \"a/b\",\n   \"tag\": \"t\",\n   \
             \"fsLayers\": [{{\"blobSum\": \"{blob}\"}}],\n   \"history\": [{{\"v1Compatibility\": \"{{}}\"}}]\n}}"
        )
    }

    #[test]
    fn the_payload_is_restored_and_verified() {
        let signed = Bytes::from(sign(&payload()));
        let content = parse(&signed).unwrap();
        assert_eq!(content.payload.unwrap(), payload().as_bytes());
        assert_eq!(content.layers[0].digest, Digest::sha256(b"layer"));
        verify(&signed).unwrap();
    }

    #[test]
    fn a_certificate_may_carry_the_key() {
        let by = |is_own: bool| {
            let signed = sign_as(&payload(), |pkcs8, _| {
                let own = rcgen::KeyPair::try_from(pkcs8).unwrap();
                let key = if is_own {
                    own
                } else {
                    rcgen::KeyPair::generate().unwrap()
                };
                let certificate = rcgen::CertificateParams::default()
                    .self_signed(&key)
                    .unwrap();
                json!({"alg": "ES256", "x5c": [STANDARD.encode(certificate.der())]})
            });
            verify(&signed.into())
        };
        by(true).unwrap();
        by(false).unwrap_err();
    }

    #[test]
    fn changes_after_signing_are_refused() {
        let signed = sign(&payload());
        for (from, to) in [
            ("\"a/b\"", "\"a/c\""),
            ("ES256", "ES384"),
            ("\"signature\":\"", "\"signature\":\"A"),
        ] {
            let changed = Bytes::from(signed.replacen(from, to, 1));
            assert_ne!(changed, signed.as_bytes());
            let error = verify(&changed).unwrap_err().to_string();
            assert!(error.contains("signature"), "{error}");
        }
        verify(&Bytes::from(payload())).unwrap_err();
    }

    #[test]
    fn unsigned_layers_are_ignored() {
        let other = format!(
            ",\"fsLayers\":[{{\"blobSum\":\"{}\"}}],\"signatures\"",
            Digest::sha256(b"other")
        );
        let signed = Bytes::from(sign(&payload()).replacen(",\"signatures\"", &other, 1));
        let content = parse(&signed).unwrap();
        assert_eq!(content.layers[0].digest, Digest::sha256(b"layer"));
    }

    #[test]
    fn malformed_manifests_are_refused() {
        for (from, to) in [
            ("a/b", "a//b"),
            ("sha256:", "sha257:"),
            ("[{\"v1Compatibility\": \"{}\"}]", "[]"),
            ("\"history\"", "\"past\""),
        ] {
            let text = payload().replacen(from, to, 1);
            assert!(parse(&Bytes::from(text.clone())).is_err(), "{text}");
        }
    }

    proptest! {
        #[test]
        fn any_end_and_any_tail_is_read_or_refused(length: usize, tail: Vec<u8>, cut in 0..800_usize) {
            let protected = json!({"formatLength": length, "formatTail": URL_SAFE_NO_PAD.encode(tail)});
            let protected = URL_SAFE_NO_PAD.encode(protected.to_string());
            let signatures = json!([{"header": {"alg": "ES256"}, "signature": "", "protected": protected}]);
            let payload = payload();
            let text = format!("{},\"signatures\":{signatures}}}", &payload[..payload.len() - 1]);
            let bytes = Bytes::from(text);
            parse(&bytes).ok();
            verify(&bytes).unwrap_err();
            parse(&bytes.slice(..cut.min(bytes.len()))).unwrap_err();
        }
    }
}
