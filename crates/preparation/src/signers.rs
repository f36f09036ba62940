//! Signatures of release images: a signed image is trusted from any registry.

use std::path::Path;
use std::time::Duration;

use model::Error;
use net::web::Web;
use oci::Reference;
use oci_client::signature::{self, Keyring, SignatureStore};

/// Trusted signers of release images, and their signature stores.
#[derive(Debug, Clone)]
pub struct Signers {
    keyring: Keyring,
    stores: Vec<SignatureStore>,
    web: Web,
}

impl Signers {
    /// Reads the keyring file; `ca_pem` is trusted beside the system's certificates.
    ///
    /// Errors: Invalid – a file without keys, or `ca_pem` without certificates.
    pub fn load(
        keyring: &Path,
        stores: Vec<SignatureStore>,
        ca_pem: Option<&str>,
    ) -> Result<Self, Error> {
        Ok(Self {
            keyring: self::keyring(keyring)?,
            stores,
            web: Web::new(ca_pem.map(str::as_bytes))?,
        })
    }

    /// Verifies that a release image is pinned to a digest that one of them signed, within `timeout`.
    ///
    /// Errors: Invalid – unsigned, or not pinned; Unavailable – a signature store cannot be reached.
    pub(crate) async fn check(&self, image: &str, timeout: Duration) -> Result<(), Error> {
        // The signature covers the digest, so the image must be pulled by it.
        let Some(digest) = image.parse::<Reference>()?.digest else {
            return Err(unsigned(
                "it is not pinned by digest, as in registry/repository@sha256:…",
            ));
        };
        let search = signature::find(&digest, &self.keyring, &self.stores, &self.web);
        let found = tokio::time::timeout(timeout, search).await;
        let found = found.map_err(|late| Error::unavailable("a signature store", late));
        found??;
        tracing::info!(image, "release image signature verified");
        Ok(())
    }
}

/// The error for an image without a trusted signature.
pub(crate) fn unsigned(reason: &str) -> Error {
    Error::invalid("release signature", reason)
}

/// The public keys of a file.
///
/// Errors: Invalid – unreadable, or without keys.
pub fn keyring(path: &Path) -> Result<Keyring, Error> {
    let bytes = std::fs::read(path)
        .map_err(|error| Error::invalid("keyring", format!("{}: {error}", path.display())))?;
    Keyring::parse(&bytes)
}
