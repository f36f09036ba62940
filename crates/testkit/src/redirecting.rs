//! A registry that redirects its blobs to a server with a challenge, whose realm is a third one: a client that answers the
//! challenge leaks the registry's login (CVE-2020-15157).

use anyhow::{Result, ensure};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use oci::{Digest, media_type};
use serde_json::json;

use crate::wire::{Wire, answer, has_login};

/// User of the registry.
pub const USER: &str = "me";
pub const PASSWORD: &str = "secret";
/// The repository of its only image, under any tag.
pub const REPOSITORY: &str = "acme/thing";

/// The three servers, by plain HTTP.
#[derive(Debug)]
pub struct Redirecting {
    /// The registry itself.
    pub registry: Wire,
    /// Target of its redirects.
    pub storage: Wire,
    /// Realm of the challenge of that server.
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

    /// Checks that the login went to the registry alone, and that the client's `output` has the reason.
    ///
    /// Errors: the failed check.
    pub fn check(&self, output: &str) -> Result<()> {
        self.check_requests()?;
        let reason = format!("redirects to http://{}", self.storage.address);
        ensure!(
            output.contains(&reason),
            "no reason in the output: {output}"
        );
        ensure!(
            !output.contains(PASSWORD),
            "the password is in the output: {output}"
        );
        Ok(())
    }

    /// Checks that the login went to the registry alone.
    ///
    /// Errors: the failed check.
    pub fn check_requests(&self) -> Result<()> {
        let logged_in = self.registry.requests();
        ensure!(
            logged_in.iter().any(|head| has_login(head)),
            "no login: {logged_in:?}"
        );
        let (asked, tokens) = (self.storage.requests(), self.realm.requests());
        ensure!(!asked.is_empty(), "the redirect was not followed");
        for head in asked.iter().chain(&tokens) {
            ensure!(!has_login(head), "the login leaked: {head}");
        }
        ensure!(tokens.is_empty(), "a token was requested: {tokens:?}");
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
