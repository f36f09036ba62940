//! OpenPGP signatures of release images: trust, stores, and ConfigMaps for clusters.
//!
//! Source: `openshift/library-go`, `pkg/verify`.

mod config_map;
mod keyring;
mod store;

use serde::Deserialize;

pub use config_map::Signatures;
pub use keyring::Keyring;
pub use store::SignatureStore;

use model::Error;
use net::web::Web;
use oci::Digest;

/// Limit of signatures of a release per store.
const SEARCH_LIMIT: usize = 10;
/// Type of a signature of an image. Source: containers/image.
const KIND: &str = "atomic container signature";
#[derive(Deserialize)]
struct SignedClaim {
    critical: Critical,
}

#[derive(Deserialize)]
struct Critical {
    #[serde(rename = "type")]
    kind: String,
    image: ClaimedImage,
    identity: Identity,
}

#[derive(Deserialize)]
struct ClaimedImage {
    #[serde(rename = "docker-manifest-digest")]
    digest: String,
}

#[derive(Deserialize)]
struct Identity {
    #[serde(rename = "docker-reference")]
    reference: String,
}

/// Searches the stores, in order, for a signature of an image by a trusted key.
///
/// Errors: Invalid – none, with the reason of each refused signature; Unavailable – the same, and a store could not be
/// read.
pub async fn find(
    digest: &Digest,
    keyring: &Keyring,
    stores: &[SignatureStore],
    web: &Web,
) -> Result<Signatures, Error> {
    let (mut reasons, mut is_one_away) = (Vec::new(), false);
    for store in stores {
        for number in 1..=SEARCH_LIMIT {
            let signature = match store.signature(digest, number, web).await {
                Ok(signature) => signature,
                Err(Error::NotFound { .. }) if number > 1 => break,
                Err(error) => {
                    is_one_away |= matches!(error, Error::Unavailable { .. });
                    reasons.push(error.chain());
                    break;
                }
            };
            match check(digest, keyring, &signature) {
                Ok(()) => {
                    let (digest, signatures) = (digest.clone(), vec![signature]);
                    return Ok(Signatures { digest, signatures });
                }
                Err(reason) => reasons.push(format!("signature {number} of {store}: {reason}")),
            }
        }
    }
    let reasons = reasons.join("; ");
    let reason = format!("{digest} has no signature that counts: {reasons}");
    Err(if is_one_away {
        Error::unavailable(store::ROLE, reason)
    } else {
        Error::invalid("release signature", reason)
    })
}

/// Checks that a trusted key signed this image.
fn check(digest: &Digest, keyring: &Keyring, signature: &[u8]) -> Result<(), String> {
    let content = keyring.content(signature)?;
    let claim: SignedClaim =
        serde_json::from_slice(&content).map_err(|e| format!("it does not sign an image: {e}"))?;
    let Critical {
        kind,
        image,
        identity,
    } = claim.critical;
    if kind != KIND {
        return Err(format!("it is a {kind:?}, not an {KIND:?}"));
    }
    if identity.reference.is_empty() {
        return Err("it does not name the image".to_owned());
    }
    if image.digest != digest.to_string() {
        return Err(format!("it signs {}", image.digest));
    }
    Ok(())
}
