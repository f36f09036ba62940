//! `--check-config` of every service reads the certificates that it would open.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use rcgen::{CertificateParams, KeyPair};

/// Certificate and key of one service.
const PAIRS: [(&str, &str, &str); 5] = [
    ("api-server", "HTTPS_CERT_FILE", "HTTPS_KEY_FILE"),
    ("image-service", "HTTPS_CERT_FILE", "HTTPS_KEY_FILE"),
    (
        "registry",
        "REGISTRY_HTTP_TLS_CERTIFICATE",
        "REGISTRY_HTTP_TLS_KEY",
    ),
    ("catalog-server", "GRPC_CERT_FILE", "GRPC_KEY_FILE"),
    ("catalog-server", "HTTPS_CERT_FILE", "HTTPS_KEY_FILE"),
];

/// Files of authorities.
const AUTHORITIES: [(&str, &str); 15] = [
    ("api-server", "SERVICE_CA_CERT_PATH"),
    ("api-server", "MIRROR_CA_PATH"),
    ("api-server", "BMC_CA_FILE"),
    ("api-server", "S3_CA_FILE"),
    ("api-server", "DB_CA_FILE"),
    ("image-service", "OS_IMAGE_DOWNLOAD_TRUSTED_CA_FILE"),
    ("image-service", "ASSISTED_SERVICE_API_TRUSTED_CA_FILE"),
    ("registry", "REGISTRY_HTTP_TLS_CLIENTCAS"),
    ("registry", "REGISTRY_AUTH_TOKEN_ROOTCERTBUNDLE"),
    ("registry", "REGISTRY_STORAGE_S3_CAFILE"),
    ("registry", "REGISTRY_PROXY_CAFILE"),
    ("registry", "REGISTRY_PROXY_UPSTREAMS_0_CAFILE"),
    ("catalog-server", "CATALOG_CA_FILE"),
    ("webui", "REGISTRY_CA_FILE"),
    ("webui", "OIDC_CA_FILE"),
];

/// A folder with a certificate of 2099, its key and broken files.
struct Files(tempfile::TempDir);

impl Files {
    fn new() -> Self {
        let files = Self(tempfile::tempdir().unwrap());
        let (certificate, key) = pair(2099);
        let (old, old_key) = pair(2020);
        let marked = format!("\u{feff}{}", certificate.replace('\n', "\r\n"));
        for (name, text) in [
            ("tls.crt", certificate.as_str()),
            ("tls.key", &key),
            ("marked.crt", &marked),
            ("old.crt", &old),
            ("old.key", &old_key),
            ("empty.pem", ""),
            ("cut.pem", &certificate[..200]),
            (
                "encrypted.key",
                "-----BEGIN ENCRYPTED PRIVATE KEY-----\nAAAA\n-----END ENCRYPTED PRIVATE KEY-----\n",
            ),
        ] {
            fs::write(files.path(name), text).unwrap();
        }
        fs::write(files.path("der.pem"), [0x30, 0x82, 1, 2, 0x30, 0x82]).unwrap();
        files
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// Exit code and output of `--check-config`.
    fn checked(&self, service: &str, settings: &[(&str, &Path)]) -> (Option<i32>, String) {
        let folder = self.0.path();
        let output = Command::new(env!("CARGO_BIN_EXE_atoll-services"))
            .args([service, "--check-config"])
            .env_clear()
            .env("CATALOGS", folder)
            .env("DATA_DIR", folder)
            .env("WORK_DIR", folder)
            .envs(needed(settings))
            .envs(settings.iter().copied())
            .output()
            .unwrap();
        let text = [output.stdout, output.stderr].concat();
        (output.status.code(), String::from_utf8(text).unwrap())
    }
}

/// Certificate and key, valid until the start of a year.
fn pair(year: i32) -> (String, String) {
    let key = KeyPair::generate().unwrap();
    let mut params = CertificateParams::new(vec!["site.test".to_owned()]).unwrap();
    params.not_before = rcgen::date_time_ymd(2019, 1, 1);
    params.not_after = rcgen::date_time_ymd(year, 1, 1);
    let certificate = params.self_signed(&key).unwrap();
    (certificate.pem(), key.serialize_pem())
}

/// Settings without which others have no effect.
fn needed(settings: &[(&str, &Path)]) -> Vec<(&'static str, &'static str)> {
    let name = settings.iter().map(|(name, _)| *name);
    name.flat_map(|name| match name {
        "HTTPS_CERT_FILE" => vec![("SERVE_HTTPS", "true"), ("CATALOG_HTTP_PORT", "1")],
        "S3_CA_FILE" => vec![("STORAGE", "s3"), ("S3_BUCKET", "x")],
        "REGISTRY_STORAGE_S3_CAFILE" => vec![("REGISTRY_STORAGE_S3_BUCKET", "x")],
        "REGISTRY_PROXY_CAFILE" => vec![("REGISTRY_PROXY_REMOTEURL", "https://x.test")],
        "REGISTRY_PROXY_UPSTREAMS_0_CAFILE" => vec![
            ("REGISTRY_PROXY_UPSTREAMS_0_PREFIX", "x"),
            ("REGISTRY_PROXY_UPSTREAMS_0_URL", "https://x.test"),
        ],
        "REGISTRY_AUTH_TOKEN_ROOTCERTBUNDLE" => vec![
            ("REGISTRY_AUTH_TOKEN_REALM", "https://x.test"),
            ("REGISTRY_AUTH_TOKEN_SERVICE", "x"),
            ("REGISTRY_AUTH_TOKEN_ISSUER", "x"),
        ],
        "OIDC_CA_FILE" => vec![
            ("AUTH_TYPE", "oidc"),
            ("OIDC_CLIENT_ID", "x"),
            ("OIDC_ISSUER", "https://x.test"),
            ("WEBUI_BASE_URL", "https://x.test"),
        ],
        _ => Vec::new(),
    })
    .collect()
}

#[test]
fn the_certificate_and_the_key_of_each_listener_are_checked() {
    let files = Files::new();
    let absent = files.path("none/x.pem");
    for (service, of_certificate, of_key) in PAIRS {
        let checked = |certificate: &str, key: &str| {
            let (certificate, key) = (files.path(certificate), files.path(key));
            let settings = [(of_certificate, &*certificate), (of_key, &key)];
            files.checked(service, &settings)
        };
        for (certificate, key, expected) in [
            ("tls.crt", "tls.key", "can be used"),
            ("marked.crt", "tls.key", "can be used"),
            ("old.crt", "old.key", "has expired on 2020-01-01"),
        ] {
            let (code, text) = checked(certificate, key);
            assert_eq!(code, Some(0), "{service} {certificate}: {text}");
            assert!(text.contains(expected), "{service} {certificate}: {text}");
        }
        for (certificate, key, variable, expected) in [
            (
                "empty.pem",
                "tls.key",
                of_certificate,
                "empty.pem: the file is empty",
            ),
            (
                "der.pem",
                "tls.key",
                of_certificate,
                "openssl x509 -inform der",
            ),
            ("cut.pem", "tls.key", of_certificate, "the file was cut off"),
            ("tls.key", "tls.key", of_certificate, "only: PRIVATE KEY"),
            (
                "tls.crt",
                "old.key",
                of_certificate,
                "of another certificate",
            ),
            (
                "tls.crt",
                "encrypted.key",
                of_key,
                "encrypted.key: its private key is encrypted",
            ),
            (
                "tls.crt",
                "tls.crt",
                of_key,
                "tls.crt: no private key in it",
            ),
        ] {
            let (code, text) = checked(certificate, key);
            let shown = format!("{service} {certificate} {key}: {text}");
            assert_eq!(code, Some(2), "{shown}");
            assert!(text.contains(&format!("{variable}: /")), "{shown}");
            assert!(text.contains(expected), "{shown}");
        }
        for (certificate, key, variable) in [
            (&*absent, &*files.path("tls.key"), of_certificate),
            (&files.path("tls.crt"), files.0.path(), of_key),
        ] {
            let settings = [(of_certificate, certificate), (of_key, key)];
            let (code, text) = files.checked(service, &settings);
            assert_eq!(code, Some(2), "{service}: {text}");
            assert!(text.contains(variable), "{service}: {text}");
        }
    }
}

#[test]
fn both_files_of_a_pair_are_reported() {
    let files = Files::new();
    let (empty, der) = (files.path("empty.pem"), files.path("der.pem"));
    let settings = [
        ("GRPC_CERT_FILE", &*empty),
        ("GRPC_KEY_FILE", &der),
        ("CATALOG_CA_FILE", &empty),
    ];
    let (code, text) = files.checked("catalog-server", &settings);
    assert_eq!(code, Some(2), "{text}");
    assert!(text.contains("3 settings cannot be used"), "{text}");
    // Also beside one that is refused without a look at its content.
    let absent = files.path("none.key");
    let settings = [("HTTPS_CERT_FILE", &*empty), ("HTTPS_KEY_FILE", &absent)];
    let (code, text) = files.checked("api-server", &settings);
    assert_eq!(code, Some(2), "{text}");
    assert!(text.contains("2 settings cannot be used"), "{text}");
}

#[test]
fn authorities_of_others_are_checked() {
    let files = Files::new();
    let (certificate, key) = (files.path("tls.crt"), files.path("tls.key"));
    for (service, variable) in AUTHORITIES {
        for (name, code, expected) in [
            ("tls.crt", 0, "can be used"),
            ("marked.crt", 0, "can be used"),
            ("old.crt", 0, "a certificate has expired on 2020-01-01"),
            ("empty.pem", 2, "empty.pem: the file is empty"),
            ("der.pem", 2, "openssl x509 -inform der"),
            ("cut.pem", 2, "the file was cut off"),
            ("tls.key", 2, "only: PRIVATE KEY"),
        ] {
            let path = files.path(name);
            let mut settings = vec![(variable, &*path)];
            if variable == "REGISTRY_HTTP_TLS_CLIENTCAS" {
                settings.push(("REGISTRY_HTTP_TLS_CERTIFICATE", &certificate));
                settings.push(("REGISTRY_HTTP_TLS_KEY", &key));
            }
            let (found, text) = files.checked(service, &settings);
            let shown = format!("{service} {variable} {name}: {text}");
            assert_eq!(found, Some(code), "{shown}");
            assert!(text.contains(expected), "{shown}");
            assert!(
                name.starts_with("tls.crt")
                    || name.starts_with("marked")
                    || text.contains(variable),
                "{shown}"
            );
        }
    }
}
