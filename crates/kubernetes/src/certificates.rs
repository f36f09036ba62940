//! Certificates of etcd, as the cluster keeps them in Secrets.

use std::time::SystemTime;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use kube::core::DynamicObject;
use model::Error;
use net::certificate;

use super::connect::KubernetesCluster;
use super::resources::SECRETS;

/// Member of a Secret with a certificate, as a JSON pointer.
const CERTIFICATE: &str = "/data/tls.crt";

/// A certificate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListedCertificate {
    /// Name of its Secret.
    pub secret: String,
    /// End of its validity.
    pub not_after: SystemTime,
}

impl KubernetesCluster {
    /// Certificates of etcd; those that cannot be read are left out.
    ///
    /// Errors: as [`Self::list`].
    pub async fn certificates(&self) -> Result<Vec<ListedCertificate>, Error> {
        let secrets = self.list(&SECRETS, certificate).await?;
        Ok(secrets.unwrap_or_default().into_iter().flatten().collect())
    }
}

fn certificate(secret: &DynamicObject) -> Option<ListedCertificate> {
    let encoded = secret.data.pointer(CERTIFICATE)?.as_str()?;
    let pem = BASE64_STANDARD.decode(encoded).ok()?;
    // The first one is the Secret's own; its authorities follow.
    let chain = certificate::of_pem(&pem).ok()?;
    let summary = certificate::read(chain.first()?).ok()?;
    Some(ListedCertificate {
        secret: secret.metadata.name.clone()?,
        not_after: summary.not_after,
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn secrets_without_a_certificate_are_left_out() {
        for data in [
            json!({}),
            json!({ "tls.crt": "" }),
            json!({ "tls.crt": "%" }),
            json!({ "tls.crt": BASE64_STANDARD.encode("-----BEGIN CERTIFICATE-----\nAA==\n-----END CERTIFICATE-----\n") }),
        ] {
            let secret = json!({ "metadata": { "name": "etcd-peer-master-0" }, "data": data });
            let secret: DynamicObject = serde_json::from_value(secret).unwrap();
            assert_eq!(certificate(&secret), None);
        }
    }

    #[test]
    fn the_end_of_a_certificate_is_read() {
        let made = rcgen::generate_simple_self_signed(["etcd".to_owned()]).unwrap();
        let encoded = BASE64_STANDARD.encode(made.cert.pem());
        let secret =
            json!({ "metadata": { "name": "etcd-peer-master-0" }, "data": { "tls.crt": encoded } });
        let secret: DynamicObject = serde_json::from_value(secret).unwrap();
        let found = certificate(&secret).unwrap();
        assert_eq!(found.secret, "etcd-peer-master-0");
        assert!(found.not_after > SystemTime::now());
    }
}
