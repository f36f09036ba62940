//! Certificate requests of kubelets.

use anyhow::Result;
use rcgen::{CertificateParams, DnType, KeyPair};
use serde_json::{Value, json};

/// Path of the requests.
pub(super) const CSRS: &str = "/apis/certificates.k8s.io/v1/certificatesigningrequests";

/// A request for the first certificate of a node.
pub(super) fn client(name: &str, node: &str) -> Result<Value> {
    request(
        name,
        node,
        "kubernetes.io/kube-apiserver-client-kubelet",
        &[],
        "client auth",
    )
}

/// A request for a serving certificate of a node with this address.
pub(super) fn serving(name: &str, node: &str, address: &str) -> Result<Value> {
    request(
        name,
        node,
        "kubernetes.io/kubelet-serving",
        &[node, address],
        "server auth",
    )
}

fn request(name: &str, node: &str, signer: &str, names: &[&str], usage: &str) -> Result<Value> {
    let names: Vec<String> = names.iter().map(ToString::to_string).collect();
    let mut params = CertificateParams::new(names)?;
    params.distinguished_name.remove(DnType::CommonName);
    let subject = &mut params.distinguished_name;
    subject.push(DnType::OrganizationName, "system:nodes");
    subject.push(DnType::CommonName, format!("system:node:{node}"));
    let pem = params.serialize_request(&KeyPair::generate()?)?.pem()?;
    Ok(json!({
        "apiVersion": "certificates.k8s.io/v1", "kind": "CertificateSigningRequest",
        "metadata": { "name": name },
        "spec": {
            "request": data_encoding::BASE64.encode(pem.as_bytes()),
            "signerName": signer,
            "usages": ["digital signature", usage],
        },
    }))
}
