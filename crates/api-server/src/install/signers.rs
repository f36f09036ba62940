//! Release images that are trusted for their signature, wherever they come from.

use std::path::Path;

use model::Error;
use net::web::Web;
use oci::Reference;
use oci_client::signature::{self, Keyring, SignatureStore};

use super::context::Context;

/// Who may sign release images, and where their signatures are.
#[derive(Debug, Clone)]
pub struct Signers {
    keyring: Keyring,
    stores: Vec<SignatureStore>,
    web: Web,
}

impl Signers {
    /// Reads the keys of the file `keyring`; `ca_pem` is trusted besides the system's certificates.
    ///
    /// Errors: Invalid – the file has no keys, or `ca_pem` no certificate.
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
}

/// The public keys of a file.
///
/// Errors: Invalid – it cannot be read, or has none.
pub(crate) fn keyring(path: &Path) -> Result<Keyring, Error> {
    let bytes = std::fs::read(path)
        .map_err(|error| Error::invalid("keyring", format!("{}: {error}", path.display())))?;
    Keyring::parse(&bytes)
}

impl Context {
    /// Whether a release image is named by a digest that one of the signers has signed.
    ///
    /// Errors: Invalid – it is not, and why; Unavailable – not all stores of signatures can be asked.
    pub(crate) async fn check_signed(&self, image: &str) -> Result<(), Error> {
        let unsigned = |why: &str| Err(Error::invalid("release signature", why));
        let Some(signers) = &self.options().signers else {
            return unsigned("RELEASE_KEYRING is empty: no key is trusted to sign release images");
        };
        // The very bytes that are signed are what an image is pulled by.
        let Some(digest) = image.parse::<Reference>()?.digest else {
            return unsigned("it is not named by its digest, as in registry/repository@sha256:…");
        };
        let Signers {
            keyring,
            stores,
            web,
        } = signers;
        let search = signature::find(&digest, keyring, stores, web);
        let found = tokio::time::timeout(self.options().release_timeout, search).await;
        let found = found.map_err(|late| Error::unavailable("a store of release signatures", late));
        found??;
        tracing::info!(image, "the release image is signed");
        Ok(())
    }
}
