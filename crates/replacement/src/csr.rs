//! Certificate requests: exactly those of the joining node are approved.
//!
//! A request of the bootstrap account may come from any machine that read the node configuration. The one invariant:
//! an approved request names this node alone, proves the possession of its key, and has no rival with another key.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use kubernetes::CertificateRequest;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};
use x509_parser::certification_request::X509CertificationRequest;
use x509_parser::cri_attributes::{ParsedCriAttribute, X509CriAttribute};
use x509_parser::extensions::{GeneralName, ParsedExtension};
use x509_parser::oid_registry::{OID_X509_COMMON_NAME, OID_X509_ORGANIZATION_NAME};
use x509_parser::prelude::FromDer as _;
use x509_parser::public_key::PublicKey;
use x509_parser::x509::{SubjectPublicKeyInfo, X509Name};

use super::strict_der::{element, is_strict};

/// Largest request; those of kubelets have less than 2 KiB. Units: bytes.
pub const MAX_CSR_BYTES: usize = 16 << 10;
/// Most requests that are looked at.
pub const MAX_CSRS: usize = 1000;
/// Account of the first request of a node. Source: machine-config-operator, node-bootstrapper.
const BOOTSTRAPPER: &str =
    "system:serviceaccount:openshift-machine-config-operator:node-bootstrapper";
const NODES: &str = "system:nodes";
const BEGIN: &str = "-----BEGIN CERTIFICATE REQUEST-----";
const END: &str = "-----END CERTIFICATE REQUEST-----";
/// Sizes of keys. Units: bits. The upper bound limits the cost of a verification.
const RSA_BITS: std::ops::RangeInclusive<usize> = 2048..=8192;
const EC_BITS: &[usize] = &[256, 384];
/// Identifiers of signature algorithms, whole: ECDSA and RSA, each with SHA-256, SHA-384 and SHA-512.
/// Source: RFC 5758, 3.2; RFC 8017, A.2.
const SIGNATURE_ALGORITHMS: &[&[u8]] = &[
    b"\x06\x08\x2a\x86\x48\xce\x3d\x04\x03\x02",
    b"\x06\x08\x2a\x86\x48\xce\x3d\x04\x03\x03",
    b"\x06\x08\x2a\x86\x48\xce\x3d\x04\x03\x04",
    b"\x06\x09\x2a\x86\x48\x86\xf7\x0d\x01\x01\x0b\x05\x00",
    b"\x06\x09\x2a\x86\x48\x86\xf7\x0d\x01\x01\x0c\x05\x00",
    b"\x06\x09\x2a\x86\x48\x86\xf7\x0d\x01\x01\x0d\x05\x00",
];

/// The joining node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExpectedNode {
    /// Name of the node.
    pub name: String,
    /// Its addresses.
    pub addresses: BTreeSet<IpAddr>,
    /// Requests from before it booted: they are not its own.
    pub earlier: BTreeSet<String>,
    /// SHA-256 of the key of its first certificate, once that was approved: another key is another machine.
    pub approved_key: Option<String>,
}

/// Kind of a node's certificate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum CsrKind {
    /// For its requests to the API server.
    Client,
    /// For requests to its kubelet.
    Serving,
}

/// The rules of one kind.
struct CsrRule {
    kind: CsrKind,
    signer: &'static str,
    /// Required usages; key encipherment may be one as well.
    usages: [&'static str; 2],
}

static RULES: &[CsrRule] = &[
    CsrRule {
        kind: CsrKind::Client,
        signer: "kubernetes.io/kube-apiserver-client-kubelet",
        usages: ["client auth", "digital signature"],
    },
    CsrRule {
        kind: CsrKind::Serving,
        signer: "kubernetes.io/kubelet-serving",
        usages: ["digital signature", "server auth"],
    },
];

/// A request to approve.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct CsrApproval {
    /// Its kind.
    pub kind: CsrKind,
    /// SHA-256 of the public key, in hexadecimal.
    pub key_sha256: String,
}

/// The reason against a request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, thiserror::Error)]
#[serde(tag = "reason", rename_all = "kebab-case")]
pub enum CsrRefusal {
    /// Of another purpose.
    #[error("signer {signer} is none of a node's certificates")]
    Signer { signer: String },
    /// Of another account.
    #[error("requestor {requestor} is not {expected}")]
    Requestor { requestor: String, expected: String },
    /// It is older than the node's boot.
    #[error("it was there before the node booted")]
    Earlier,
    /// Too large, or no PEM with one request.
    #[error("malformed request: {detail}")]
    Malformed { detail: String },
    /// Signed with another key.
    #[error("the signature does not prove the possession of the key")]
    Signature,
    /// Weak or unknown.
    #[error("key {key} is not allowed")]
    Key { key: String },
    /// Another node's, or more than a node's.
    #[error("subject {subject} is not CN={expected}, O={NODES}")]
    Subject { subject: String, expected: String },
    /// A name or address of another machine.
    #[error("alternative name {name} is none of the node")]
    AlternativeName { name: String },
    /// A serving certificate without a name.
    #[error("it has no alternative name")]
    NoAlternativeName,
    /// Something that a kubelet does not ask for.
    #[error("{what} is none of a kubelet's request")]
    Unexpected { what: String },
    /// More, or others, than a node's.
    #[error("usages {usages:?} are not those of a node's certificate")]
    Usages { usages: Vec<String> },
    /// The node has a certificate with another key.
    #[error("the node was approved with the key {approved}: find out which machine asks again")]
    AnotherKey { approved: String },
    /// Two machines claim to be the node.
    #[error(
        "{rivals:?} ask for the same node with another key: find out which machine is the node"
    )]
    Rivals { rivals: Vec<String> },
}

/// Decides about each pending request, by its name. Pure.
///
/// Source: openshift/cluster-machine-approver, and Kubernetes' rules of the two signers.
pub fn decide_csrs(
    pending: &[CertificateRequest],
    expected: &ExpectedNode,
) -> BTreeMap<String, Result<CsrApproval, CsrRefusal>> {
    let mut decided: BTreeMap<_, _> = pending
        .iter()
        .take(MAX_CSRS)
        .map(|request| (request.name.clone(), decide(request, expected)))
        .collect();
    // A request for a serving certificate is made with the first certificate: its account is proven. Anyone with the
    // bootstrap account could make one for the first.
    let accepted = decided.iter().filter_map(|(name, decision)| {
        let approval = decision.as_ref().ok()?;
        (approval.kind == CsrKind::Client).then(|| (name.clone(), approval.key_sha256.clone()))
    });
    let accepted: Vec<_> = accepted.collect();
    for (name, key) in &accepted {
        let rivals = accepted.iter().filter(|(_, other)| other != key);
        let rivals: Vec<_> = rivals.map(|(name, _)| name.clone()).collect();
        if !rivals.is_empty() {
            decided.insert(name.clone(), Err(CsrRefusal::Rivals { rivals }));
        }
    }
    decided
}

fn decide(
    request: &CertificateRequest,
    expected: &ExpectedNode,
) -> Result<CsrApproval, CsrRefusal> {
    let rule = RULES.iter().find(|rule| rule.signer == request.signer);
    let rule = rule.ok_or_else(|| CsrRefusal::Signer {
        signer: request.signer.clone(),
    })?;
    let subject = format!("system:node:{}", expected.name);
    requestor(request, rule, &subject)?;
    if expected.earlier.contains(&request.name) {
        return Err(CsrRefusal::Earlier);
    }
    usages(request, rule)?;
    let der = der(&request.pem)?;
    if !is_strict(&der) {
        return Err(malformed("it is no DER"));
    }
    let (rest, parsed) = X509CertificationRequest::from_der(&der).map_err(malformed)?;
    if !rest.is_empty() {
        return Err(malformed("bytes follow it"));
    }
    let info = &parsed.certification_request_info;
    key(&info.subject_pki)?;
    let algorithm = signature_algorithm(&der).unwrap_or_default();
    if !SIGNATURE_ALGORITHMS.contains(&algorithm) || parsed.verify_signature().is_err() {
        return Err(CsrRefusal::Signature);
    }
    is_subject(&info.subject, &subject)?;
    let attributes = info.iter_attributes();
    let names = alternative_names(attributes, expected)?;
    match rule.kind {
        CsrKind::Client if names > 0 => Err(CsrRefusal::Unexpected {
            what: "an alternative name".to_owned(),
        }),
        CsrKind::Serving if names == 0 => Err(CsrRefusal::NoAlternativeName),
        kind => {
            let key_sha256 = hex::encode(Sha256::digest(info.subject_pki.raw));
            match &expected.approved_key {
                Some(approved) if kind == CsrKind::Client && *approved != key_sha256 => {
                    let approved = approved.clone();
                    Err(CsrRefusal::AnotherKey { approved })
                }
                _ => Ok(CsrApproval { kind, key_sha256 }),
            }
        }
    }
}

fn requestor(
    request: &CertificateRequest,
    rule: &CsrRule,
    subject: &str,
) -> Result<(), CsrRefusal> {
    let (expected, group) = match rule.kind {
        CsrKind::Client => (BOOTSTRAPPER, None),
        CsrKind::Serving => (subject, Some(NODES)),
    };
    let has_group = group.is_none_or(|group| request.groups.iter().any(|it| it == group));
    if request.requestor == expected && has_group {
        return Ok(());
    }
    Err(CsrRefusal::Requestor {
        requestor: request.requestor.clone(),
        expected: expected.to_owned(),
    })
}

fn usages(request: &CertificateRequest, rule: &CsrRule) -> Result<(), CsrRefusal> {
    let usages = &request.usages;
    let is_known =
        |usage: &String| rule.usages.contains(&usage.as_str()) || usage == "key encipherment";
    let has = |usage: &&str| usages.iter().any(|it| it == usage);
    if usages.iter().all(is_known) && rule.usages.iter().all(has) {
        return Ok(());
    }
    Err(CsrRefusal::Usages {
        usages: usages.clone(),
    })
}

fn malformed(detail: impl std::fmt::Display) -> CsrRefusal {
    CsrRefusal::Malformed {
        detail: detail.to_string(),
    }
}

/// The one request of a PEM text: nothing that the signer's parser might read differently.
fn der(pem: &[u8]) -> Result<Vec<u8>, CsrRefusal> {
    if pem.len() > MAX_CSR_BYTES {
        return Err(malformed(format!("more than {MAX_CSR_BYTES} bytes")));
    }
    let text = std::str::from_utf8(pem).map_err(malformed)?.trim_ascii();
    let content = text
        .strip_prefix(BEGIN)
        .and_then(|rest| rest.strip_suffix(END))
        .ok_or_else(|| malformed("expected one PEM section CERTIFICATE REQUEST"))?;
    let base64: String = content.split_ascii_whitespace().collect();
    data_encoding::BASE64
        .decode(base64.as_bytes())
        .map_err(malformed)
}

/// The content of the second of the three elements: it is not signed.
fn signature_algorithm(der: &[u8]) -> Option<&[u8]> {
    const TAGS: [u8; 4] = [0x30, 0x30, 0x30, 0x03];
    let (request, content, _) = element(der)?;
    let (info, _, rest) = element(content)?;
    let (identifier, algorithm, rest) = element(rest)?;
    let (signature, _, _) = element(rest)?;
    ([request, info, identifier, signature] == TAGS).then_some(algorithm)
}

fn key(info: &SubjectPublicKeyInfo<'_>) -> Result<(), CsrRefusal> {
    let refused = |key: String| Err(CsrRefusal::Key { key });
    match info.parsed().map_err(malformed)? {
        PublicKey::EC(point) if EC_BITS.contains(&point.key_size()) => Ok(()),
        PublicKey::EC(point) => refused(format!("EC of {} bits", point.key_size())),
        PublicKey::RSA(key) if RSA_BITS.contains(&key.key_size()) => Ok(()),
        PublicKey::RSA(key) => refused(format!("RSA of {} bits", key.key_size())),
        _ => refused(format!("of algorithm {}", info.algorithm.algorithm)),
    }
}

/// Whether the subject is exactly a node's.
fn is_subject(subject: &X509Name<'_>, expected: &str) -> Result<(), CsrRefusal> {
    let mut found = Vec::new();
    for part in subject.iter_rdn() {
        // Several attributes in one part are unusual, and none of a kubelet's.
        let attributes: Vec<_> = part.iter().collect();
        let [attribute] = attributes[..] else {
            found.push(None);
            continue;
        };
        found.push(
            attribute
                .as_str()
                .ok()
                .map(|text| (attribute.attr_type(), text)),
        );
    }
    let wanted = [
        (&OID_X509_ORGANIZATION_NAME, NODES),
        (&OID_X509_COMMON_NAME, expected),
    ];
    let is_exact =
        found.len() == wanted.len() && wanted.iter().all(|wanted| found.contains(&Some(*wanted)));
    if is_exact {
        return Ok(());
    }
    Err(CsrRefusal::Subject {
        subject: subject.to_string(),
        expected: expected.to_owned(),
    })
}

/// Number of alternative names, all of which are the node's. Nothing else may be asked for.
fn alternative_names<'a, 'b: 'a>(
    attributes: impl Iterator<Item = &'a X509CriAttribute<'b>>,
    expected: &ExpectedNode,
) -> Result<usize, CsrRefusal> {
    let unexpected = |what: String| CsrRefusal::Unexpected { what };
    let mut count = 0;
    for attribute in attributes {
        let ParsedCriAttribute::ExtensionRequest(request) = attribute.parsed_attribute() else {
            return Err(unexpected("an attribute".to_owned()));
        };
        for extension in &request.extensions {
            let ParsedExtension::SubjectAlternativeName(names) = extension.parsed_extension()
            else {
                return Err(unexpected(format!("the extension {}", extension.oid)));
            };
            for name in &names.general_names {
                if !is_own(name, expected) {
                    let name = shown(name);
                    return Err(CsrRefusal::AlternativeName { name });
                }
                count += 1;
            }
        }
    }
    Ok(count)
}

fn is_own(name: &GeneralName<'_>, expected: &ExpectedNode) -> bool {
    match name {
        GeneralName::DNSName(name) => *name == expected.name,
        GeneralName::IPAddress(bytes) => {
            address(bytes).is_some_and(|address| expected.addresses.contains(&address))
        }
        _ => false,
    }
}

/// None for bytes of no address.
fn address(bytes: &[u8]) -> Option<IpAddr> {
    let v4 = <[u8; 4]>::try_from(bytes).map(IpAddr::from);
    let address = v4.or_else(|_| <[u8; 16]>::try_from(bytes).map(IpAddr::from));
    address.ok()
}

fn shown(name: &GeneralName<'_>) -> String {
    match name {
        GeneralName::DNSName(name) => (*name).to_owned(),
        GeneralName::IPAddress(bytes) => {
            address(bytes).map_or_else(|| name.to_string(), |address| address.to_string())
        }
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests;
