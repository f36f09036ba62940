//! Content of the tests: images, and catalogs that reference them.

use bytes::Bytes;
use oci::{Digest, Manifest, Reference, media_type};
use serde_json::{Value, json};

use crate::server::Server;

/// Pushes an image with one layer.
pub(crate) async fn push(server: &Server, name: &str, layer: Vec<u8>, config: Value) -> Digest {
    let (client, reference) = (&server.client, reference(server, name));
    let layer_type = media_type::OCI_LAYER;
    let diff_id = Digest::sha256(&layer);
    let layer = client
        .push_blob_bytes(&reference, layer_type, layer.into())
        .await
        .unwrap();
    let config = json!({
        "architecture": "amd64", "os": "linux", "config": config,
        "rootfs": {"type": "layers", "diff_ids": [diff_id]},
    });
    let config = Bytes::from(config.to_string());
    let config = client
        .push_blob_bytes(&reference, media_type::OCI_CONFIG, config)
        .await
        .unwrap();
    let manifest = json!({"schemaVersion": 2, "config": config, "layers": [layer]});
    let manifest = Manifest::parse(manifest.to_string().into(), None).unwrap();
    client.push_manifest(&reference, &manifest).await.unwrap();
    manifest.digest
}

pub(crate) fn reference(server: &Server, name: &str) -> Reference {
    format!("{}/{name}", server.address).parse().unwrap()
}

/// Pushes a catalog of two packages: `thing` has so many versions and depends on the last but one of `other`.
pub(crate) async fn push_catalog(server: &Server, versions: usize) {
    push_catalog_of(server, &server.address, versions).await;
}

/// As [`push_catalog`], of images that are reached at another address.
pub(crate) async fn push_catalog_of(server: &Server, address: &str, versions: usize) {
    let named = |name: &str| -> Reference { format!("{address}/{name}").parse().unwrap() };
    let mut documents = Vec::new();
    for package in ["other", "thing"] {
        documents
            .push(json!({"schema": "olm.package", "name": package, "defaultChannel": "stable"}));
        let mut entries = Vec::new();
        for version in 0..versions {
            let name = format!("{package}.v1.{version}.0");
            let image = format!("acme/{package}-bundle:v{version}");
            let digest = push(server, &image, name.clone().into_bytes(), json!({})).await;
            let image = named(&image).with_digest(digest);
            let mut properties = vec![
                json!({"type": "olm.package", "value": {"packageName": package, "version": format!("1.{version}.0")}}),
            ];
            if package == "thing" {
                properties.push(json!({"type": "olm.package.required", "value": {"packageName": "other", "versionRange": "<1.2.0"}}));
            }
            let related = [json!({"name": "tool", "image": named("acme/tool:v1").to_string()})];
            documents.push(json!({"schema": "olm.bundle", "package": package, "name": name, "image": image.to_string(), "properties": properties, "relatedImages": related}));
            let replaced = version
                .checked_sub(1)
                .map(|below| format!("{package}.v1.{below}.0"));
            entries.push(json!({"name": name, "replaces": replaced.unwrap_or_default()}));
        }
        documents.push(json!({"schema": "olm.channel", "package": package, "name": "stable", "entries": entries}));
    }
    for image in ["tool", "extra"] {
        let name = format!("acme/{image}:v1");
        push(server, &name, image.as_bytes().to_vec(), json!({})).await;
    }
    push_documents(server, &documents).await;
}

/// Pushes a catalog of these documents.
pub(crate) async fn push_documents(server: &Server, documents: &[Value]) {
    let catalog: Vec<_> = documents.iter().map(Value::to_string).collect();
    let mut tar = tar::Builder::new(Vec::new());
    let mut header = tar::Header::new_gnu();
    let content = catalog.join("\n");
    header.set_size(content.len() as u64);
    header.set_mode(0o644);
    tar.append_data(&mut header, "catalogs/all.json", content.as_bytes())
        .unwrap();
    let labels =
        json!({"Labels": {"operators.operatorframework.io.index.configs.v1": "/catalogs"}});
    push(server, "acme/index:v1", tar.into_inner().unwrap(), labels).await;
}
