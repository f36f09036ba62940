//! The real registry with TLS and one user, that can be stopped and started again.

use std::fs;
use std::net::SocketAddr;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use oci_client::{Client, ClientOptions, Credentials};
use registry::{HttpAddr, Settings};
use service::CancellationToken;
use service::server::Running;

const USER: &str = "installer";
pub(crate) const PASSWORD: &str = "not-to-be-seen";

pub(crate) struct Registry {
    pub(crate) address: String,
    pub(crate) ca: Vec<u8>,
    folder: tempfile::TempDir,
    serving: Option<(Running, CancellationToken)>,
}

impl Registry {
    pub(crate) async fn start() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let made = rcgen::generate_simple_self_signed(["127.0.0.1".to_owned()]).unwrap();
        let (certificate, key) = (made.cert.pem(), made.signing_key.serialize_pem());
        let line = registry::htpasswd::line(USER, PASSWORD).unwrap();
        for (name, text) in [
            ("cert.pem", &certificate),
            ("key.pem", &key),
            ("htpasswd", &line),
        ] {
            fs::write(folder.path().join(name), text).unwrap();
        }
        let mut registry = Self {
            address: "127.0.0.1:0".to_owned(),
            ca: certificate.into_bytes(),
            folder,
            serving: None,
        };
        registry.resume().await;
        registry
    }

    /// Stops it and waits until its port is closed.
    pub(crate) async fn stop(&mut self) {
        let (running, shutdown) = self.serving.take().unwrap();
        shutdown.cancel();
        running.wait().await.unwrap();
    }

    /// Starts it with the address and the content it had.
    pub(crate) async fn resume(&mut self) {
        let path = |name: &str| self.folder.path().join(name);
        let address: SocketAddr = self.address.parse().unwrap();
        let settings = Settings {
            registry_http_addr: HttpAddr(address),
            registry_http_tls_certificate: Some(path("cert.pem")),
            registry_http_tls_key: Some(path("key.pem")),
            registry_auth_htpasswd_path: Some(path("htpasswd")),
            registry_storage_filesystem_rootdirectory: path("content"),
            ..Settings::default()
        };
        let shutdown = CancellationToken::new();
        let running = registry::start(settings, shutdown.clone()).await.unwrap();
        self.address = running.address().to_string();
        self.serving = Some((running, shutdown));
    }

    pub(crate) fn pull_secret(&self) -> String {
        let auth = STANDARD.encode(format!("{USER}:{PASSWORD}"));
        serde_json::json!({ "auths": { &self.address: { "auth": auth } } }).to_string()
    }

    pub(crate) fn client(&self) -> Client {
        Client::new(ClientOptions {
            credentials: Credentials::from_pull_secret(&self.pull_secret()).unwrap(),
            ca_pem: Some(self.ca.clone()),
            insecure: false,
            ..ClientOptions::default()
        })
        .unwrap()
    }
}
