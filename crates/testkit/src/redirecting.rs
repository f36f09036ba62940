//! A registry that redirects its blobs to a server which demands a login, with tokens from a third one: whoever meets that
//! demand gives the registry's login away (CVE-2020-15157).

use anyhow::{Result, ensure};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use oci::{Digest, media_type};
use serde_json::json;

use crate::wire::{Wire, answer, has_login};

/// Who the registry knows.
pub const USER: &str = "me";
pub const PASSWORD: &str = "secret";
/// The repository of its only image, whatever the tag.
pub const REPOSITORY: &str = "acme/thing";

/// The three servers, by plain HTTP.
#[derive(Debug)]
pub struct Redirecting {
    /// The registry itself.
    pub registry: Wire,
    /// Where it says that its blobs are.
    pub storage: Wire,
    /// Where that says that tokens are.
    pub realm: Wire,
    /// The digest of the image's manifest.
    pub digest: Digest,
    /// The digest of the image's only layer.
    pub layer: Digest,
}

impl Redirecting {
    /// Starts all three.
    pub async fn start() -> Self {
        let realm = Wire::answering(|_| answer("200 OK", "", r#"{"token":"T"}"#)).await;
        let demand = format!(
            "WWW-Authenticate: Bearer realm=\"http://{}/token\"\r\n",
            realm.address
        );
        let storage = Wire::answering(move |_| answer("401 Unauthorized", &demand, "")).await;
        let layer = Digest::sha256(b"layer");
        let manifest = manifest(&layer);
        let digest = Digest::sha256(manifest.as_bytes());
        let storage_url = format!("http://{}", storage.address);
        let registry = Wire::answering(move |head| of_registry(head, &manifest, &storage_url));
        Self {
            registry: registry.await,
            storage,
            realm,
            digest,
            layer,
        }
    }

    /// The image, by a tag.
    pub fn image(&self) -> String {
        format!("{}/{REPOSITORY}:v1", self.registry.address)
    }

    /// A file of logins with the registry's.
    pub fn logins(&self) -> String {
        let registry = self.registry.address.to_string();
        json!({ "auths": { registry: { "auth": basic() } } }).to_string()
    }

    /// Whether the registry's login stayed with the registry, and the client was `told` why it got nothing.
    ///
    /// Errors: what went wrong.
    pub fn check(&self, told: &str) -> Result<()> {
        self.check_requests()?;
        let reason = format!("redirects to http://{}", self.storage.address);
        ensure!(told.contains(&reason), "no reason is told: {told}");
        ensure!(!told.contains(PASSWORD), "the password is told: {told}");
        Ok(())
    }

    /// Whether the registry's login stayed with the registry.
    ///
    /// Errors: what went wrong.
    pub fn check_requests(&self) -> Result<()> {
        let logged_in = self.registry.requests();
        ensure!(
            logged_in.iter().any(|head| has_login(head)),
            "nobody logged in: {logged_in:?}"
        );
        let (asked, tokens) = (self.storage.requests(), self.realm.requests());
        ensure!(!asked.is_empty(), "nobody followed the redirect");
        for head in asked.iter().chain(&tokens) {
            ensure!(!has_login(head), "the login went elsewhere: {head}");
        }
        ensure!(tokens.is_empty(), "a token was asked for: {tokens:?}");
        Ok(())
    }
}

fn manifest(layer: &Digest) -> String {
    let config = Digest::sha256(b"{}");
    json!({
        "schemaVersion": 2,
        "mediaType": media_type::OCI_MANIFEST,
        "config": {"mediaType": media_type::OCI_CONFIG, "digest": config, "size": 2},
        "layers": [{"mediaType": media_type::OCI_LAYER_GZIP, "digest": layer, "size": 5}],
    })
    .to_string()
}

fn of_registry(head: &str, manifest: &str, storage: &str) -> String {
    let answer = if !head.contains(&format!("Basic {}", basic())) {
        let demand = "WWW-Authenticate: Basic realm=\"registry\"\r\n";
        answer("401 Unauthorized", demand, "")
    } else if head.contains("/manifests/") {
        let kind = format!("Content-Type: {}\r\n", media_type::OCI_MANIFEST);
        answer("200 OK", &kind, manifest)
    } else if head.contains("/blobs/") {
        let elsewhere = format!("Location: {storage}/blob\r\n");
        answer("307 Temporary Redirect", &elsewhere, "")
    } else {
        answer("404 Not Found", "", "")
    };
    if !head.starts_with("HEAD ") {
        return answer;
    }
    let end = answer.find("\r\n\r\n").map_or(answer.len(), |it| it + 4);
    answer[..end].to_owned()
}

fn basic() -> String {
    STANDARD.encode(format!("{USER}:{PASSWORD}"))
}
