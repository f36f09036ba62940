//! Calls and pages over TLS.

use std::net::SocketAddr;
use std::path::Path;
use std::time::Instant;

use reqwest::{Client, Version};
use testkit::certificates::{self, Pem};

use crate::content::package;
use crate::operation::{DEADLINE, LOOK, World, folder_with};

fn certificate(folder: &Path) -> Pem {
    let pem = certificates::self_signed("127.0.0.1").unwrap();
    for (name, text) in [("key", &pem.key), ("cert", &pem.cert)] {
        let part = folder.join("part");
        std::fs::write(&part, text).unwrap();
        std::fs::rename(part, folder.join(name)).unwrap();
    }
    pem
}

/// Reply of `ListPackages`; `None` when the certificate is not `pem`.
async fn listed(address: SocketAddr, pem: &Pem) -> Option<Vec<u8>> {
    // A new connection: established ones keep their certificate.
    let client: Client = service::http_client(Some(pem.cert.as_bytes()), false).unwrap();
    let request = client
        .post(format!("https://{address}/api.Registry/ListPackages"))
        .header("content-type", "application/grpc")
        .body(vec![0; 5]);
    let response = request.send().await.ok()?;
    assert_eq!(response.version(), Version::HTTP_2);
    Some(response.bytes().await.unwrap().to_vec())
}

#[tokio::test]
async fn calls_and_pages_use_the_current_certificate() {
    let folder = folder_with(&package("a", "1.0.0"));
    let old = certificate(folder.path());
    let files = [
        ("grpc_cert_file", "FOLDER/cert"),
        ("grpc_key_file", "FOLDER/key"),
        ("https_cert_file", "FOLDER/cert"),
        ("https_key_file", "FOLDER/key"),
        ("catalog_http_port", "0"),
    ];
    let world = World::start_with(folder, "FOLDER/configs", &files).await;
    let [pages, calls] = *world.addresses() else {
        panic!("{:?}", world.addresses())
    };
    let ready = async |pem: &Pem| {
        let client = service::http_client(Some(pem.cert.as_bytes()), false).unwrap();
        let answer = client.get(format!("https://{pages}/readyz")).send().await;
        answer.is_ok_and(|answer| answer.status().is_success())
    };
    let deadline = Instant::now() + DEADLINE;
    while !ready(&old).await {
        assert!(Instant::now() < deadline, "it is not ready");
        tokio::time::sleep(LOOK).await;
    }
    // One message with a name of one letter.
    let package = b"\0\0\0\0\x03\x0a\x01a";
    assert_eq!(listed(calls, &old).await.unwrap(), package);
    let new = certificate(world.folder.path());
    while !(ready(&new).await && listed(calls, &new).await.is_some()) {
        assert!(Instant::now() < deadline, "the old certificate stays");
        tokio::time::sleep(LOOK).await;
    }
    assert_eq!(listed(calls, &new).await.unwrap(), package);
    assert_eq!(listed(calls, &old).await, None);
    assert!(!ready(&old).await);
}
