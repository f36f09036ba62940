//! Certificate requests: exactly those of the joining node are approved.
//!
//! A request of the bootstrap account may come from any machine that read the node configuration. The one invariant:
//! an approved request names this node alone, proves the possession of its key, and has no rival with another key.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

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

/// A pending CertificateSigningRequest.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CertificateRequest {
    /// Name of the record.
    pub name: String,
    /// Signer.
    pub signer: String,
    /// Account that created it, as the API server recorded it.
    pub requestor: String,
    /// Groups of the account.
    pub groups: Vec<String>,
    /// Requested usages.
    pub usages: Vec<String>,
    /// The request, as PEM.
    pub pem: Vec<u8>,
}

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
mod tests {
    use std::net::Ipv4Addr;

    use rcgen::{
        BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, KeyPair,
        PKCS_ECDSA_P384_SHA384, PKCS_ED25519, SanType,
    };

    use super::*;

    const NODE: &str = "control-2.example.com";
    const ADDRESS: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 12);

    fn expected() -> ExpectedNode {
        ExpectedNode {
            name: NODE.to_owned(),
            addresses: BTreeSet::from([ADDRESS.into()]),
            earlier: BTreeSet::from(["csr-earlier".to_owned()]),
            approved_key: None,
        }
    }

    fn params(names: &[&str]) -> CertificateParams {
        let names: Vec<String> = names.iter().map(ToString::to_string).collect();
        let mut params = CertificateParams::new(names).unwrap();
        params.distinguished_name = rcgen::DistinguishedName::new();
        let name = &mut params.distinguished_name;
        name.push(DnType::OrganizationName, NODES);
        name.push(DnType::CommonName, format!("system:node:{NODE}"));
        params
    }

    fn signed(params: &CertificateParams, key: &KeyPair) -> Vec<u8> {
        let request = params.serialize_request(key).unwrap();
        request.pem().unwrap().into_bytes()
    }

    fn client_with(params: &CertificateParams, key: &KeyPair) -> CertificateRequest {
        CertificateRequest {
            name: "csr-1".to_owned(),
            signer: RULES[0].signer.to_owned(),
            requestor: BOOTSTRAPPER.to_owned(),
            groups: vec!["system:authenticated".to_owned()],
            usages: vec!["digital signature".to_owned(), "client auth".to_owned()],
            pem: signed(params, key),
        }
    }

    fn client() -> CertificateRequest {
        client_with(&params(&[]), &KeyPair::generate().unwrap())
    }

    fn serving_with(params: &CertificateParams) -> CertificateRequest {
        CertificateRequest {
            name: "csr-2".to_owned(),
            signer: RULES[1].signer.to_owned(),
            requestor: format!("system:node:{NODE}"),
            groups: vec![NODES.to_owned()],
            usages: vec!["digital signature".to_owned(), "server auth".to_owned()],
            pem: signed(params, &KeyPair::generate().unwrap()),
        }
    }

    fn serving(names: &[&str]) -> CertificateRequest {
        serving_with(&params(names))
    }

    fn one(request: &CertificateRequest) -> Result<CsrKind, CsrRefusal> {
        decide(request, &expected()).map(|it| it.kind)
    }

    #[test]
    fn both_requests_of_the_node_are_approved() {
        assert_eq!(one(&client()), Ok(CsrKind::Client));
        let names: &[&[&str]] = &[&[NODE, "192.0.2.12"], &[NODE], &["192.0.2.12"]];
        for names in names {
            assert_eq!(one(&serving(names)), Ok(CsrKind::Serving), "{names:?}");
        }
        // RSA keys encipher as well.
        let mut request = client();
        request.usages.push("key encipherment".to_owned());
        assert_eq!(one(&request), Ok(CsrKind::Client));
        let key = KeyPair::generate_for(&PKCS_ECDSA_P384_SHA384).unwrap();
        assert_eq!(one(&client_with(&params(&[]), &key)), Ok(CsrKind::Client));
    }

    /// The reason against a changed request.
    fn reason(mut request: CertificateRequest, change: impl Fn(&mut CertificateRequest)) -> String {
        change(&mut request);
        let refusal = one(&request).unwrap_err();
        let value = serde_json::to_value(&refusal).unwrap();
        value["reason"].as_str().unwrap().to_owned()
    }

    #[test]
    fn hostile_records_are_refused() {
        let names = [NODE];
        let signer = |it: &mut CertificateRequest| {
            it.signer = "kubernetes.io/kube-apiserver-client".to_owned();
        };
        assert_eq!(reason(client(), signer), "signer");
        for requestor in [
            "system:serviceaccount:default:node-bootstrapper",
            "system:node:control-1.example.com",
            "kube:admin",
            "",
        ] {
            let other = |it: &mut CertificateRequest| it.requestor = requestor.to_owned();
            assert_eq!(reason(client(), other), "requestor", "{requestor}");
            assert_eq!(reason(serving(&names), other), "requestor", "{requestor}");
        }
        // Each account of the other kind.
        let node = |it: &mut CertificateRequest| it.requestor = format!("system:node:{NODE}");
        assert_eq!(reason(client(), node), "requestor");
        let bootstrapper = |it: &mut CertificateRequest| it.requestor = BOOTSTRAPPER.to_owned();
        assert_eq!(reason(serving(&names), bootstrapper), "requestor");
        assert_eq!(reason(serving(&names), |it| it.groups.clear()), "requestor");
        let earlier = |it: &mut CertificateRequest| it.name = "csr-earlier".to_owned();
        assert_eq!(reason(client(), earlier), "earlier");
        for usages in [
            &["digital signature", "client auth", "cert sign"][..],
            &["digital signature", "client auth", "server auth"],
            &["client auth"],
            &["any"],
            &[],
        ] {
            let other = |it: &mut CertificateRequest| {
                it.usages = usages.iter().map(ToString::to_string).collect();
            };
            assert_eq!(reason(client(), other), "usages", "{usages:?}");
        }
        let swapped = |it: &mut CertificateRequest| it.usages = client().usages;
        assert_eq!(reason(serving(&names), swapped), "usages");
    }

    #[test]
    fn hostile_requests_are_refused() {
        let subject = |parts: &[(DnType, &str)]| {
            let mut params = params(&[]);
            params.distinguished_name = rcgen::DistinguishedName::new();
            for (kind, text) in parts {
                params.distinguished_name.push(kind.clone(), *text);
            }
            reason(client_with(&params, &KeyPair::generate().unwrap()), |_| {})
        };
        let (name, node) = (DnType::CommonName, format!("system:node:{NODE}"));
        let organization = DnType::OrganizationName;
        for parts in [
            &[][..],
            &[(name.clone(), node.as_str())],
            &[(organization.clone(), NODES)],
            &[
                (organization.clone(), NODES),
                (name.clone(), "system:node:control-1"),
            ],
            &[
                (organization.clone(), NODES),
                (name.clone(), "system:admin"),
            ],
            &[
                (organization.clone(), "system:masters"),
                (name.clone(), node.as_str()),
            ],
            &[
                (organization.clone(), NODES),
                (name.clone(), node.as_str()),
                (DnType::OrganizationalUnitName, "x"),
            ],
            &[
                (organization.clone(), NODES),
                (name.clone(), &format!("{node}\0")),
            ],
        ] {
            assert_eq!(subject(parts), "subject", "{parts:?}");
        }
        for other in [
            "control-1.example.com",
            "*.example.com",
            "192.0.2.13",
            "2001:db8::1",
        ] {
            assert_eq!(
                reason(serving(&[NODE, other]), |_| {}),
                "alternative-name",
                "{other}"
            );
        }
        let mut mail = params(&[NODE]);
        let text = "a@example.com".try_into().unwrap();
        mail.subject_alt_names.push(SanType::Rfc822Name(text));
        assert_eq!(reason(serving_with(&mail), |_| {}), "alternative-name");
        assert_eq!(reason(serving(&[]), |_| {}), "no-alternative-name");
        let named = client_with(&params(&[NODE]), &KeyPair::generate().unwrap());
        assert_eq!(reason(named, |_| {}), "unexpected");
        let mut purpose = params(&[NODE]);
        purpose.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
        assert_eq!(reason(serving_with(&purpose), |_| {}), "unexpected");
        let mut authority = params(&[NODE]);
        authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        assert_eq!(reason(serving_with(&authority), |_| {}), "unexpected");
        let ed25519 = KeyPair::generate_for(&PKCS_ED25519).unwrap();
        assert_eq!(reason(client_with(&params(&[]), &ed25519), |_| {}), "key");
    }

    #[test]
    fn malformed_requests_are_refused() {
        let replaced = |pem: &[u8]| reason(client(), |it| it.pem = pem.to_vec());
        let whole = client().pem;
        let text = String::from_utf8(whole.clone()).unwrap();
        for pem in [
            "",
            "x",
            &format!("{text}{text}"),
            &text.replace("CERTIFICATE REQUEST", "CERTIFICATE"),
            &format!("x{text}"),
            &text.replacen(BEGIN, &format!("{BEGIN}\nProc-Type: 4,ENCRYPTED\n"), 1),
            "-----BEGIN CERTIFICATE REQUEST-----\nAAAA\n-----END CERTIFICATE REQUEST-----\n",
        ] {
            assert_eq!(replaced(pem.as_bytes()), "malformed", "{pem}");
        }
        // limit: bytes of a certificate request
        let padded = |length: usize| [&whole[..], &vec![b'\n'; length - whole.len()]].concat();
        let mut request = client();
        request.pem = padded(MAX_CSR_BYTES);
        assert_eq!(one(&request), Ok(CsrKind::Client));
        assert_eq!(replaced(&padded(MAX_CSR_BYTES + 1)), "malformed");
    }

    #[test]
    fn the_signature_proves_possession() {
        let key = KeyPair::generate().unwrap();
        let request = client_with(&params(&[]), &key);
        let mut content = der(&request.pem).unwrap();
        // A bit of the key, which is before the signature.
        let (_, parsed) = X509CertificationRequest::from_der(&content).unwrap();
        let info = &parsed.certification_request_info;
        let own = info.subject_pki.subject_public_key.data.to_vec();
        let mut windows = content.windows(own.len());
        let at = windows.position(|it| it == own).unwrap();
        content[at + 10] ^= 1;
        let forged = base64(&content);
        let changed = |it: &mut CertificateRequest| it.pem.clone_from(&forged);
        assert_eq!(reason(client(), changed), "signature");
    }

    fn base64(der: &[u8]) -> Vec<u8> {
        let text = data_encoding::BASE64.encode(der);
        format!("{BEGIN}\n{text}\n{END}\n").into_bytes()
    }

    #[test]
    fn two_keys_for_one_node_are_decided_by_a_person() {
        let key = KeyPair::generate().unwrap();
        let mut again = client_with(&params(&[]), &key);
        again.name = "csr-again".to_owned();
        let first = client_with(&params(&[]), &key);
        let serving = serving(&[NODE]);
        // A repeated request has the same key.
        let pending = [first.clone(), again.clone(), serving.clone()];
        let decided = decide_csrs(&pending, &expected());
        assert!(decided.values().all(Result::is_ok), "{decided:?}");
        let mut rival = client();
        rival.name = "csr-rival".to_owned();
        let decided = decide_csrs(&[first, again, serving, rival], &expected());
        let rivals = |name: &str| match &decided[name] {
            Err(CsrRefusal::Rivals { rivals }) => rivals.clone(),
            other => panic!("{other:?}"),
        };
        assert_eq!(rivals("csr-1"), ["csr-rival"]);
        assert_eq!(rivals("csr-rival"), ["csr-1", "csr-again"]);
        assert!(decided["csr-2"].is_ok());
    }

    #[test]
    fn an_approved_node_has_one_key() {
        let key = KeyPair::generate().unwrap();
        let first = client_with(&params(&[]), &key);
        let approved = decide(&first, &expected()).unwrap().key_sha256;
        let later = ExpectedNode {
            approved_key: Some(approved.clone()),
            ..expected()
        };
        assert!(decide(&first, &later).is_ok());
        let refused = decide(&client(), &later).unwrap_err();
        assert_eq!(refused, CsrRefusal::AnotherKey { approved });
        // Kubelets have new keys for each serving certificate.
        let pending = ["csr-2", "csr-3"].map(|name| CertificateRequest {
            name: name.to_owned(),
            ..serving(&[NODE])
        });
        let decided = decide_csrs(&pending, &later);
        assert!(decided.values().all(Result::is_ok), "{decided:?}");
    }

    #[test]
    fn no_more_requests_than_the_bound_are_looked_at() {
        let mut foreign = client();
        foreign.signer = "example.com/own".to_owned();
        let many = |count: usize| {
            let each = (0..count).map(|number| CertificateRequest {
                name: number.to_string(),
                ..foreign.clone()
            });
            decide_csrs(&each.collect::<Vec<_>>(), &expected()).len()
        };
        // limit: certificate requests
        assert_eq!(many(MAX_CSRS), MAX_CSRS);
        assert_eq!(many(MAX_CSRS + 1), MAX_CSRS);
    }

    proptest::proptest! {
        #[test]
        fn damaged_requests_are_refused(at: u16, byte: u8) {
            let mut request = client();
            let at = usize::from(at) % request.pem.len();
            let is_same = request.pem[at] == byte;
            request.pem[at] = byte;
            // Blanks between the lines are irrelevant.
            if one(&request).is_ok() {
                proptest::prop_assert!(is_same || byte.is_ascii_whitespace(), "{at} {byte}");
            }
        }
    }
}
