//! Good and hostile certificate requests.

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
