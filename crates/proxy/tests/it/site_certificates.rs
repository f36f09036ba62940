//! The certificate list: demands of its lines on clients, and lines that are out of force.

use std::fs;
use std::io;
use std::net::SocketAddr;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;

use rcgen::{
    BasicConstraints, CertificateParams, CertificateRevocationListParams, DnType, IsCa, Issuer,
    KeyIdMethod, KeyPair, RevokedCertParams, SerialNumber,
};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::version::{TLS12, TLS13};
use rustls::{ALL_VERSIONS, ClientConfig, RootCertStore, SupportedProtocolVersion};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

use crate::site_process::SiteProcess;
use crate::site_world::{Made, SiteWorld, json_of, made, parsed};
use crate::world::soon;

/// An authority of clients.
struct Authority {
    issuer: Issuer<'static, KeyPair>,
    pem: String,
}

type ClientIdentity = (CertificateDer<'static>, Vec<u8>);

impl Authority {
    fn new(name: &str) -> Self {
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.distinguished_name.push(DnType::CommonName, name);
        let pem = params.self_signed(&key).unwrap().pem();
        let issuer = Issuer::new(params, key);
        Self { issuer, pem }
    }

    fn client(&self, serial: u64) -> ClientIdentity {
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::default();
        params.serial_number = Some(serial.into());
        let signed = params.signed_by(&key, &self.issuer).unwrap();
        (signed.der().clone(), key.serialize_der())
    }

    fn revoking(&self, serial: u64) -> String {
        let now = std::time::SystemTime::now();
        let day = std::time::Duration::from_hours(24);
        let params = CertificateRevocationListParams {
            this_update: (now - day).into(),
            next_update: (now + day).into(),
            crl_number: SerialNumber::from(1_u64),
            issuing_distribution_point: None,
            revoked_certs: vec![RevokedCertParams {
                serial_number: serial.into(),
                revocation_time: (now - day).into(),
                reason_code: None,
                invalidity_date: None,
            }],
            key_identifier_method: KeyIdMethod::Sha256,
        };
        params.signed_by(&self.issuer).unwrap().pem().unwrap()
    }
}

/// A client of the site.
struct SiteClient<'a> {
    site: &'a SiteWorld,
    trusted: Vec<CertificateDer<'static>>,
    identity: Option<&'a ClientIdentity>,
    versions: &'a [&'static SupportedProtocolVersion],
    /// Application protocols that it offers.
    protocols: &'a [&'a str],
}

impl SiteClient<'_> {
    /// The status for `host`, over a connection for `sni`.
    async fn status(&self, sni: &str, host: &str) -> io::Result<u16> {
        let mut roots = RootCertStore::empty();
        for trusted in &self.trusted {
            roots.add(trusted.clone()).unwrap();
        }
        let config = ClientConfig::builder_with_protocol_versions(self.versions)
            .with_root_certificates(roots);
        let mut config = match self.identity.cloned() {
            None => config.with_no_client_auth(),
            Some((certificate, key)) => {
                let key = PrivateKeyDer::Pkcs8(key.into());
                config
                    .with_client_auth_cert(vec![certificate], key)
                    .unwrap()
            }
        };
        config.enable_sni = !sni.is_empty();
        config.alpn_protocols = self
            .protocols
            .iter()
            .map(|it| it.as_bytes().to_vec())
            .collect();
        let name = if sni.is_empty() { "api.site.test" } else { sni };
        let name = ServerName::try_from(name.to_owned()).unwrap();
        let stream = TcpStream::connect(self.site.at.https).await?;
        let connecting = TlsConnector::from(Arc::new(config)).connect(name, stream);
        let mut stream = soon(connecting).await?;
        let request = format!("GET /x HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n");
        stream.write_all(request.as_bytes()).await?;
        let mut answer = String::new();
        // With TLS 1.3, the refusal comes after the handshake of the client.
        soon(stream.read_to_string(&mut answer)).await?;
        Ok(parsed(&answer).0.as_u16())
    }
}

fn list(folder: &Path, text: &str) {
    fs::write(folder.join("crt-list.txt"), text).unwrap();
}

/// A site with `text` as its list, and bundles `api.pem` and `web.pem` beside that of the wildcard.
async fn site(files: &[(&str, &str)], text: &str) -> (SiteWorld, [Made; 2]) {
    let own = [made(&["api.site.test"]), made(&["web.site.test"])];
    let bundles = [own[0].bundle.clone(), own[1].bundle.clone()];
    let site = SiteWorld::start_with(|settings| {
        let folder = settings.site.certificate_list.parent().unwrap();
        fs::write(folder.join("api.pem"), &bundles[0]).unwrap();
        fs::write(folder.join("web.pem"), &bundles[1]).unwrap();
        for (name, text) in files {
            fs::write(folder.join(name), text).unwrap();
        }
        list(folder, text);
        settings.status_page_port = Some(0);
    })
    .await;
    (site, own)
}

fn client<'a>(site: &'a SiteWorld, own: &[Made; 2]) -> SiteClient<'a> {
    let wildcard = site.wildcard.der.clone();
    SiteClient {
        site,
        trusted: vec![wildcard, own[0].der.clone(), own[1].der.clone()],
        identity: None,
        versions: ALL_VERSIONS,
        protocols: &[],
    }
}

#[tokio::test]
async fn a_line_verifies_the_clients_of_its_names() {
    let (own, other) = (Authority::new("clients"), Authority::new("others"));
    let ours = own.client(1);
    let theirs = other.client(2);
    let (site, made) = site(
        &[("ca.pem", &own.pem)],
        "site.pem\n\
         api.pem [alpn h2,http/1.1 verify required ca-file ca.pem] # operators\n\
         web.pem [verify optional ca-file ca.pem no-ca-names]\n",
    )
    .await;
    for versions in [&[&TLS12][..], &[&TLS13]] {
        for (identity, sni, admitted) in [
            (None, "api.site.test", false),
            (Some(&theirs), "api.site.test", false),
            (Some(&ours), "api.site.test", true),
            (None, "web.site.test", true),
            (Some(&theirs), "web.site.test", false),
            (Some(&ours), "web.site.test", true),
            (None, "service.site.test", true),
            (Some(&theirs), "service.site.test", true),
        ] {
            let client = SiteClient {
                identity,
                versions,
                ..client(&site, &made)
            };
            let status = client.status(sni, sni).await;
            assert_eq!(status.is_ok(), admitted, "{sni} {versions:?}: {status:?}");
        }
    }
}

#[tokio::test]
async fn another_name_or_none_does_not_evade_the_demands() {
    let own = Authority::new("clients");
    let ours = own.client(1);
    let (site, made) = site(
        &[("ca.pem", &own.pem)],
        "site.pem\nsite.pem [verify required ca-file ca.pem] api.site.test web.site.test\n",
    )
    .await;
    let stranger = client(&site, &made);
    for sni in ["service.site.test", "unknown.site.test", ""] {
        assert_eq!(stranger.status(sni, "api.site.test").await.unwrap(), 421);
        assert_eq!(
            stranger.status(sni, "API.site.test.:443").await.unwrap(),
            421
        );
        let status = stranger.status(sni, "service.site.test").await.unwrap();
        assert_eq!(status, 200, "{sni}");
    }
    // Both names are of one line.
    let admitted = SiteClient {
        identity: Some(&ours),
        ..client(&site, &made)
    };
    for host in ["api.site.test", "web.site.test", "service.site.test"] {
        let status = admitted.status("web.site.test", host).await.unwrap();
        assert_eq!(status, 200, "{host}");
    }
}

#[tokio::test]
async fn clients_without_a_protocol_of_the_line_are_served() {
    let (site, made) = site(&[], "site.pem\napi.pem [alpn h2]\nweb.pem [no-alpn]\n").await;
    for protocols in [&["http/1.1"][..], &["spdy/1", "http/1.1"], &["ftp"]] {
        for name in ["service.site.test", "api.site.test", "web.site.test"] {
            let client = SiteClient {
                protocols,
                ..client(&site, &made)
            };
            let status = client.status(name, name).await;
            assert_eq!(status.unwrap(), 200, "{name} {protocols:?}");
        }
    }
}

#[tokio::test]
async fn signatures_are_those_of_the_line() {
    let own = Authority::new("clients");
    let ours = own.client(1);
    // Keys of server and client sign by ECDSA on P-256.
    let (site, made) = site(
        &[("ca.pem", &own.pem)],
        "site.pem [verify required ca-file @system-ca]\n\
         api.pem [verify required ca-file ca.pem sigalgs ECDSA+SHA256]\n\
         web.pem [verify required ca-file ca.pem sigalgs ECDSA+SHA256 client-sigalgs RSA-PSS+SHA256]\n",
    )
    .await;
    for versions in [&[&TLS12][..], &[&TLS13]] {
        for (sni, admitted) in [
            ("service.site.test", false),
            ("api.site.test", true),
            ("web.site.test", false),
        ] {
            let client = SiteClient {
                identity: Some(&ours),
                versions,
                ..client(&site, &made)
            };
            let status = client.status(sni, sni).await;
            assert_eq!(status.is_ok(), admitted, "{sni} {versions:?}: {status:?}");
        }
    }
}

#[tokio::test]
async fn revoked_clients_are_refused() {
    let own = Authority::new("clients");
    let (ours, revoked) = (own.client(1), own.client(2));
    let (site, made) = site(
        &[("ca.pem", &own.pem), ("crl.pem", &own.revoking(2))],
        "site.pem\napi.pem [verify required ca-file ca.pem crl-file crl.pem]\n",
    )
    .await;
    for (identity, admitted) in [(&ours, true), (&revoked, false)] {
        let client = SiteClient {
            identity: Some(identity),
            ..client(&site, &made)
        };
        let status = client.status("api.site.test", "api.site.test").await;
        assert_eq!(status.is_ok(), admitted, "{status:?}");
    }
}

#[tokio::test]
async fn versions_are_those_of_the_line() {
    let (site, made) = site(
        &[],
        "site.pem\napi.pem [ssl-min-ver TLSv1.3]\nweb.pem [ssl-max-ver TLSv1.2]\n",
    )
    .await;
    for (version, sni, admitted) in [
        (&TLS12, "api.site.test", false),
        (&TLS13, "api.site.test", true),
        (&TLS12, "web.site.test", true),
        (&TLS13, "web.site.test", false),
        (&TLS12, "service.site.test", true),
        (&TLS13, "service.site.test", true),
    ] {
        let client = SiteClient {
            versions: &[version],
            ..client(&site, &made)
        };
        let status = client.status(sni, sni).await;
        assert_eq!(status.is_ok(), admitted, "{sni} {version:?}: {status:?}");
    }
    // The other name's connection may be of an older version.
    let old = SiteClient {
        versions: &[&TLS12],
        ..client(&site, &made)
    };
    let status = old.status("service.site.test", "api.site.test").await;
    assert_eq!(status.unwrap(), 421);
}

#[tokio::test]
async fn names_of_a_line_out_of_force_are_refused() {
    let (site, made) = site(
        &[("empty.pem", "")],
        "site.pem\n\
         api.pem [verify required ca-file missing.pem]\n\
         missing.pem [force-tlsv13] web.site.test\n\
         empty.pem service.site.test\n",
    )
    .await;
    let client = client(&site, &made);
    for name in ["api.site.test", "web.site.test"] {
        let error = client.status(name, name).await.unwrap_err();
        assert!(
            error.to_string().contains("UnrecognisedName"),
            "{name}: {error}"
        );
        let status = client.status("service.site.test", name).await.unwrap();
        assert_eq!(status, 421, "{name}");
    }
    // A line without demands only lacks its certificate.
    let name = "service.site.test";
    assert_eq!(client.status(name, name).await.unwrap(), 200);
    let request = "GET /status.json HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
    let answer = crate::raw::ask(site.page.unwrap(), request).await;
    let (_, _, body) = parsed(&answer);
    let certificates = &json_of(&body)["certificates"]["certificates"];
    for (index, reason) in [
        (1, "missing.pem: No such file"),
        (2, "`force-tlsv13` is one of `bind` lines"),
        (3, "empty.pem: the file is empty"),
    ] {
        let problem = certificates[index]["problem"].as_str().unwrap();
        assert!(problem.contains(reason), "{problem}");
        assert_eq!(certificates[index]["is_in_force"], false);
    }
}

#[tokio::test]
async fn a_demand_that_is_added_and_cannot_be_met_ends_the_line() {
    let trusted = [made(&["*.site.test"])];
    let certificate = made(&["api.site.test"]);
    let site = SiteProcess::start(&trusted[0], "").await;
    // Its port is open before the list is read.
    assert!(serves(site.https, &trusted[0]).await);
    fs::write(site.path("api.pem"), &certificate.bundle).unwrap();
    let replace = |text: &str| {
        let part = site.path("crt-list.part");
        fs::write(&part, text).unwrap();
        fs::rename(part, site.path("crt-list.txt")).unwrap();
        site.process.hang_up();
    };
    replace("site.pem\napi.pem\n");
    site.process.log.until("certificate reloaded", 1).await;
    let connects = async || serves(site.https, &certificate).await;
    assert!(connects().await);
    replace("site.pem\napi.pem [verify required ca-file missing.pem]\n");
    site.process.log.until("its line is out of force", 1).await;
    assert!(!connects().await);
    // Nothing is known of the names that this line protects.
    replace("site.pem\napi.pem\nnone.pem [verify required ca-file missing.pem]\n");
    let lines = site.process.log.until("certificates not reloaded", 1).await;
    assert!(lines[0].contains("none.pem") && lines[0].contains("add them to the line"));
    assert!(!connects().await);
}

async fn serves(address: SocketAddr, certificate: &Made) -> bool {
    let trusted = [certificate.copy()];
    crate::site_world::KeepAlive::connect(address, &trusted, "api.site.test")
        .await
        .is_ok()
}

/// Exit code and output of `--check-config` with a list of `text`, in a folder with `files`.
fn checked(files: &[(&str, &[u8])], text: &str) -> (Option<i32>, String) {
    let folder = tempfile::tempdir().unwrap();
    for (name, text) in files {
        let path = folder.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    list(folder.path(), text);
    let settings = folder.path().join("proxy.env");
    let certificates = folder.path().join("crt-list.txt");
    let certificates = certificates.display();
    let lines = format!("NETWORK_DOMAIN=site.test\nCERTIFICATE_LIST={certificates}\n");
    fs::write(&settings, lines).unwrap();
    let output = Command::new(env!("CARGO_BIN_EXE_proxy"))
        .arg("--config")
        .arg(&settings)
        .arg("--check-config")
        .env_clear()
        .output()
        .unwrap();
    let text = [output.stdout, output.stderr].concat();
    (output.status.code(), String::from_utf8(text).unwrap())
}

/// Certificate and key of `made`.
fn parts(made: &Made) -> (String, String) {
    let end = made.bundle.find("-----BEGIN PRIVATE").unwrap();
    let (certificate, key) = made.bundle.split_at(end);
    (certificate.to_owned(), key.to_owned())
}

#[test]
fn the_check_of_settings_names_certificates_that_cannot_be_used() {
    let own = made(&["*.site.test"]);
    let (certificate, key) = parts(&own);
    let (other, _) = parts(&made(&["other.test"]));
    let site = ("site.pem", own.bundle.as_bytes());
    for (files, text, expected) in [
        (vec![site], "missing.pem\n", "missing.pem: No such file"),
        (
            vec![site, ("dir/x.txt", b"")],
            "dir\n",
            "dir/x.txt: the file is empty",
        ),
        (
            vec![site, ("x.pem", &own.der)],
            "site.pem\nx.pem\n",
            "it is DER",
        ),
        (
            vec![("x.pem", certificate.as_bytes())],
            "x.pem\n",
            "no private key in it, and no file",
        ),
        (
            vec![("x.crt", other.as_bytes()), ("x.crt.key", key.as_bytes())],
            "x.crt\n",
            "x.crt: the private key is that of another certificate",
        ),
        (
            vec![site],
            "site.pem [verify required]\n",
            "lacks `ca-file`",
        ),
        (vec![site], "site.pem [bogus]\n", "`bogus` is not supported"),
        (
            vec![site],
            "site.pem [ca-sign-file ca.pem generate-certificates]\n",
            "`ca-sign-file` is one of `bind` lines",
        ),
        (
            vec![site],
            "site.pem [sigalgs RSA+SHA256]\n",
            "its private key signs by none",
        ),
        (
            vec![site],
            "site.pem [verify required ca-file none/ca.pem]\n",
            "exists of its folders",
        ),
        (vec![site], "site.pem [alpn h2\n", "line 1: the bracket"),
        (vec![site], "# nothing\n", "names no certificate"),
    ] {
        let (code, output) = checked(&files, text);
        assert_eq!(code, Some(2), "{text}: {output}");
        assert!(output.contains("CERTIFICATE_LIST"), "{output}");
        assert!(output.contains(expected), "{text}: {output}");
    }
}

fn expired() -> String {
    let key = KeyPair::generate().unwrap();
    let mut params = CertificateParams::new(vec!["site.test".to_owned()]).unwrap();
    params.not_before = rcgen::date_time_ymd(2019, 1, 1);
    params.not_after = rcgen::date_time_ymd(2020, 1, 1);
    params.self_signed(&key).unwrap().pem() + &key.serialize_pem()
}

#[test]
fn certificates_are_read_as_people_bring_them() {
    let own = made(&["*.site.test"]);
    let (certificate, key) = parts(&own);
    let authority = Authority::new("site").pem;
    let turned = format!("{authority}{key}{certificate}");
    let marked = format!("\u{feff}{}", own.bundle.replace('\n', "\r\n"));
    let (certificate, key) = (certificate.as_bytes(), key.as_bytes());
    for (files, text) in [
        (vec![("x.pem", turned.as_bytes())], "x.pem"),
        (
            vec![("x.pem", marked.as_bytes())],
            "\u{feff}x.pem [alpn h2]\r\n# end\r\n",
        ),
        (vec![("x.crt", certificate), ("x.crt.key", key)], "x.crt"),
        (
            vec![("tls.crt", certificate), ("tls.key", key)],
            "tls.crt # beside it",
        ),
        (
            vec![("x.crt", certificate), ("k", key)],
            "x.crt[key k] *.site.test",
        ),
        (vec![("x.pem.ecdsa", own.bundle.as_bytes())], "x.pem"),
        (vec![("d/a.crt", certificate), ("d/a.key", key)], "d"),
    ] {
        let (code, output) = checked(&files, text);
        assert_eq!(code, Some(0), "{text}: {output}");
    }
    let files = [("x.pem", own.bundle.as_bytes())];
    let (code, output) = checked(&files, "x.pem [npn h2] other.test\n");
    assert_eq!(code, Some(0), "{output}");
    assert!(output.contains("`npn` has no effect"), "{output}");
    assert!(output.contains("lacks the name other.test"), "{output}");
    let (code, output) = checked(&[("old.pem", expired().as_bytes())], "old.pem\n");
    assert_eq!(code, Some(0), "{output}");
    let remark = "warning: CERTIFICATE_LIST: ";
    assert!(output.contains(remark), "{output}");
    assert!(
        output.contains("old.pem: the certificate has expired on 2020"),
        "{output}"
    );
}
