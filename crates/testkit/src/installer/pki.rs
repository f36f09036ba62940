//! Identity of the new cluster: ids, certificates, first password.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose,
};
use serde::{Deserialize, Serialize};
use serde_json::json;
use uuid::Uuid;

use super::config::InstallConfig;
use super::files::{InstallerFailure, yaml};

/// Longest part of the cluster's name in its infrastructure id.
const INFRA_NAME_CHARS: usize = 21;
/// Alphabet of passwords, without characters that look alike.
const PASSWORD_ALPHABET: &[u8] = b"23456789abcdefghijkmnopqrstuvwxyzABCDEFGHIJKLMNPQRSTUVWXYZ";
/// A password is four groups of five.
const PASSWORD_CHARS: usize = 20;

#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Identity {
    pub(super) cluster_id: Uuid,
    pub(super) infra_id: String,
    pub(super) kubeadmin_password: String,
    /// Signs the machine config server, so nodes trust it. PEM.
    pub(super) root_ca: String,
    /// Signs the API's front. PEM.
    pub(super) api_ca: String,
    /// Client certificate and key of the first administrator. PEM.
    pub(super) admin_certificate: String,
    pub(super) admin_key: String,
}

impl Identity {
    pub(super) fn generate(config: &InstallConfig) -> Result<Self, InstallerFailure> {
        let name: String = config
            .metadata
            .name
            .chars()
            .take(INFRA_NAME_CHARS)
            .collect();
        let suffix = &Uuid::new_v4().simple().to_string()[..5];
        make(name.trim_end_matches('-'), suffix)
            .map_err(|error| InstallerFailure(format!("failed to generate certificates: {error}")))
    }

    /// The administrator's kubeconfig, as YAML.
    pub(super) fn kubeconfig(&self, config: &InstallConfig) -> Result<String, InstallerFailure> {
        let name = &config.metadata.name;
        let encode = |text: &str| STANDARD.encode(text);
        let kubeconfig = json!({
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{ "name": name, "cluster": {
                "server": format!("https://api.{name}.{}:6443", config.base_domain),
                "certificate-authority-data": encode(&self.api_ca),
            }}],
            "contexts": [{ "name": "admin", "context": { "cluster": name, "user": "admin" }}],
            "current-context": "admin",
            "preferences": {},
            "users": [{ "name": "admin", "user": {
                "client-certificate-data": encode(&self.admin_certificate),
                "client-key-data": encode(&self.admin_key),
            }}],
        });
        yaml(&kubeconfig)
    }
}

fn make(name: &str, suffix: &str) -> Result<Identity, rcgen::Error> {
    let root = authority("root-ca")?;
    let api = authority("kube-apiserver-lb-signer")?;
    let signer = authority("admin-kubeconfig-signer")?;
    let key = KeyPair::generate()?;
    let mut params = CertificateParams::new(Vec::new())?;
    params
        .distinguished_name
        .push(DnType::OrganizationName, "system:masters");
    params
        .distinguished_name
        .push(DnType::CommonName, "system:admin");
    params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
    let admin = params.signed_by(&key, &signer.issuer)?;
    Ok(Identity {
        cluster_id: Uuid::new_v4(),
        infra_id: format!("{name}-{suffix}"),
        kubeadmin_password: password(),
        root_ca: root.pem,
        api_ca: api.pem,
        admin_certificate: admin.pem(),
        admin_key: key.serialize_pem(),
    })
}

struct Authority {
    pem: String,
    issuer: Issuer<'static, KeyPair>,
}

fn authority(name: &str) -> Result<Authority, rcgen::Error> {
    let key = KeyPair::generate()?;
    let mut params = CertificateParams::new(Vec::new())?;
    params
        .distinguished_name
        .push(DnType::OrganizationalUnitName, "openshift");
    params.distinguished_name.push(DnType::CommonName, name);
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    let pem = params.self_signed(&key)?.pem();
    Ok(Authority {
        pem,
        issuer: Issuer::new(params, key),
    })
}

fn password() -> String {
    let random = [Uuid::new_v4(), Uuid::new_v4()];
    let bytes = random.iter().flat_map(|uuid| uuid.as_bytes().iter());
    let mut text = String::new();
    for (index, byte) in bytes.take(PASSWORD_CHARS).enumerate() {
        if index > 0 && index % 5 == 0 {
            text.push('-');
        }
        let choice = usize::from(*byte) % PASSWORD_ALPHABET.len();
        text.push(char::from(PASSWORD_ALPHABET[choice]));
    }
    text
}
