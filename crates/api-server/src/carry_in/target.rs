//! The registry that archives are published to, and whose content is on offer.

use std::path::PathBuf;

use mirror::publish::MirrorTarget;
use mirror::target_name::TargetName;
use model::Error;
use oci_client::{Client, ClientOptions, Credentials, registry_logins};

use preparation::RegistryAccess;

/// The registry, with the login of this server.
#[derive(Debug)]
pub(crate) struct PublicationTarget {
    name: TargetName,
    auth_file: Option<PathBuf>,
    ca_pem: Option<Vec<u8>>,
    is_insecure: bool,
}

impl PublicationTarget {
    pub(crate) fn new(
        name: TargetName,
        auth_file: Option<PathBuf>,
        access: &RegistryAccess,
    ) -> Self {
        Self {
            name,
            auth_file,
            ca_pem: access.ca_pem.clone(),
            is_insecure: access.insecure,
        }
    }

    /// `HOST[:PORT][/NAMESPACE]`.
    pub(crate) fn name(&self) -> String {
        let TargetName {
            registry,
            namespace,
        } = &self.name;
        if namespace.is_empty() {
            registry.to_string()
        } else {
            format!("{registry}/{namespace}")
        }
    }

    /// A client with the login as the file has it now.
    ///
    /// Errors: Invalid – the file or a certificate cannot be read.
    pub(crate) fn open(&self) -> Result<MirrorTarget, Error> {
        let credentials = match &self.auth_file {
            Some(file) => registry_logins(Some(file))?,
            None => Credentials::anonymous(),
        };
        let client = Client::new(ClientOptions {
            credentials,
            ca_pem: self.ca_pem.clone(),
            insecure: self.is_insecure,
            plain_http_remedy: Some("SKIP_CERT_VERIFICATION=true"),
            ..ClientOptions::default()
        })?;
        Ok(MirrorTarget {
            client,
            registry: self.name.registry.clone(),
            namespace: self.name.namespace.clone(),
            max_components: 0,
        })
    }
}
