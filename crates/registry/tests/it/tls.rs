//! Certificates of clients, versions of TLS, and certificates that are replaced.

use std::path::Path;

use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, ExtendedKeyUsagePurpose, IsCa, KeyPair,
};
use reqwest::tls::Version as Spoken;
use reqwest::{Certificate, ClientBuilder, Identity};
use service::settings::{CommaList, FromValues as _, Values};
use service::tls::{Demand, TlsVersion};
use testkit::certificates::{self, Pem};

use crate::server::{Server, eventually};

fn server_pem() -> Pem {
    certificates::self_signed("127.0.0.1").unwrap()
}

/// An authority for clients.
fn authority() -> CertifiedIssuer<'static, KeyPair> {
    let mut params = CertificateParams::default();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap()
}

/// A certificate with its key, as `reqwest` wants them.
fn issued_by(authority: &CertifiedIssuer<'static, KeyPair>) -> String {
    let key = KeyPair::generate().unwrap();
    let mut params = CertificateParams::new(vec!["client".to_owned()]).unwrap();
    params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
    let cert = params.signed_by(&key, authority).unwrap();
    cert.pem() + &key.serialize_pem()
}

/// With a certificate for 127.0.0.1 and the additions of `change`.
async fn server(pem: &Pem, dir: &Path, change: impl FnOnce(&mut registry::Settings)) -> Server {
    let (cert, key) = (dir.join("cert"), dir.join("key"));
    std::fs::write(&cert, &pem.cert).unwrap();
    std::fs::write(&key, &pem.key).unwrap();
    Server::with(|settings| {
        settings.registry_http_tls_certificate = Some(cert);
        settings.registry_http_tls_key = Some(key);
        change(settings);
    })
    .await
}

/// A client that trusts the server.
fn client(pem: &Pem) -> ClientBuilder {
    service::tls::install_provider();
    let trusted = Certificate::from_pem(pem.cert.as_bytes()).unwrap();
    reqwest::Client::builder().tls_certs_only([trusted])
}

fn showing(pem: &Pem, shown: &str) -> ClientBuilder {
    client(pem).identity(Identity::from_pem(shown.as_bytes()).unwrap())
}

/// Whether a new connection is let in.
async fn lets_in(server: &Server, client: ClientBuilder) -> bool {
    let url = format!("https://{}/v2/", server.address());
    let answer = client.build().unwrap().get(url).send().await;
    answer.is_ok_and(|response| response.status().is_success())
}

#[tokio::test]
async fn clients_show_what_is_demanded() {
    let (ours, others) = (authority(), authority());
    let (good, strange) = (issued_by(&ours), issued_by(&others));
    let pem = server_pem();
    // Client certificates: none, ours, a stranger's.
    for (demand, expected) in [
        (None, [false, true, false]),
        (Some(Demand::RequireAndVerify), [false, true, false]),
        (Some(Demand::VerifyIfGiven), [true, true, false]),
        (Some(Demand::RequireAny), [false, true, true]),
        (Some(Demand::Request), [true, true, true]),
    ] {
        let dir = tempfile::tempdir().unwrap();
        let ca = dir.path().join("ca");
        std::fs::write(&ca, ours.pem()).unwrap();
        let server = server(&pem, dir.path(), |settings| {
            settings.registry_http_tls_clientcas = CommaList(vec![ca.display().to_string()]);
            settings.registry_http_tls_clientauth = demand;
        })
        .await;
        let found = [
            lets_in(&server, client(&pem)).await,
            lets_in(&server, showing(&pem, &good)).await,
            lets_in(&server, showing(&pem, &strange)).await,
        ];
        assert_eq!(found, expected, "{demand:?}");
        // The reply of `health`.
        let own = format!("{}{}", pem.cert, pem.key);
        assert!(lets_in(&server, showing(&pem, &own)).await, "{demand:?}");
    }
}

#[tokio::test]
async fn any_certificate_will_do_without_authorities() {
    let pem = server_pem();
    let dir = tempfile::tempdir().unwrap();
    let server = server(&pem, dir.path(), |settings| {
        settings.registry_http_tls_clientauth = Some(Demand::RequireAny);
    })
    .await;
    assert!(lets_in(&server, showing(&pem, &issued_by(&authority()))).await);
    assert!(!lets_in(&server, client(&pem)).await);
}

#[tokio::test]
async fn old_versions_are_refused_when_configured() {
    let pem = server_pem();
    for (minimum, is_let_in) in [(TlsVersion::Tls12, true), (TlsVersion::Tls13, false)] {
        let dir = tempfile::tempdir().unwrap();
        let server = server(&pem, dir.path(), |settings| {
            settings.registry_http_tls_minimumtls = minimum;
        })
        .await;
        let old = client(&pem).tls_version_max(Spoken::TLS_1_2);
        assert_eq!(lets_in(&server, old).await, is_let_in, "{minimum:?}");
        assert!(lets_in(&server, client(&pem)).await);
    }
}

#[tokio::test]
async fn a_replaced_certificate_is_served_and_a_broken_one_is_not() {
    let (old, new) = (server_pem(), server_pem());
    let dir = tempfile::tempdir().unwrap();
    let server = server(&old, dir.path(), |_| {}).await;
    std::fs::write(dir.path().join("cert"), "garbage").unwrap();
    assert!(lets_in(&server, client(&old)).await);
    std::fs::write(dir.path().join("key"), &new.key).unwrap();
    assert!(lets_in(&server, client(&old)).await);
    std::fs::write(dir.path().join("cert"), &new.cert).unwrap();
    eventually(|| async {
        let is_new = lets_in(&server, client(&new)).await;
        assert!(
            is_new || lets_in(&server, client(&old)).await || lets_in(&server, client(&new)).await
        );
        is_new
    })
    .await;
}

#[test]
fn settings_as_distribution_spells_them() {
    let values = Values::from_pairs([
        ("registry_http_tls_clientcas_0", "/a.pem"),
        ("registry_http_tls_clientcas_1", "/b.pem"),
        (
            "registry_http_tls_clientauth",
            "verify-client-cert-if-given",
        ),
        ("registry_http_tls_minimumtls", "tls1.3"),
    ]);
    let settings = registry::Settings::from_values(&values).unwrap();
    assert_eq!(*settings.registry_http_tls_clientcas, ["/a.pem", "/b.pem"]);
    assert_eq!(
        settings.registry_http_tls_clientauth,
        Some(Demand::VerifyIfGiven)
    );
    assert_eq!(settings.registry_http_tls_minimumtls, TlsVersion::Tls13);
    for (name, wrong) in [
        ("registry_http_tls_clientauth", "none"),
        ("registry_http_tls_minimumtls", "tls1.0"),
    ] {
        let reported = registry::Settings::from_values(&Values::from_pairs([(name, wrong)]));
        let reported = reported.unwrap_err().to_string();
        assert!(reported.contains(&name.to_uppercase()), "{reported}");
    }
}
