//! Crashes, cut connections, full disks, and many clients at once.

use std::os::unix::fs::symlink;
use std::time::Duration;

use oci::Digest;
use registry::Settings;
use reqwest::header::{LOCATION, RANGE};
use reqwest::{Method, StatusCode};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::process::Process;
use crate::server::{Server, eventually, header, is, manifest, refusal};

/// Sends the head of a request and only a part of its body, then goes away.
async fn cut_off(server: &Server, method: &str, location: &str, announced: usize, body: &[u8]) {
    let path = location.strip_prefix(&server.base).unwrap();
    let head = format!(
        "{method} {path} HTTP/1.1\r\nHost: localhost\r\nContent-Length: {announced}\r\n\r\n"
    );
    let mut stream = TcpStream::connect(server.address()).await.unwrap();
    stream.write_all(head.as_bytes()).await.unwrap();
    stream.write_all(body).await.unwrap();
    stream.shutdown().await.unwrap();
}

#[tokio::test]
async fn a_cut_upload_goes_on_where_it_ended() {
    let server = Server::plain().await;
    let content = vec![3; 1_000_000];
    let location = server.upload("a").await;
    cut_off(
        &server,
        "PATCH",
        &location,
        content.len(),
        &content[..400_000],
    )
    .await;
    eventually(async || header(&server.get(&location).await, &RANGE) == "0-399999").await;
    let digest = Digest::sha256(&content);
    assert_eq!(
        server.head(&format!("/v2/a/blobs/{digest}")).await.status(),
        StatusCode::NOT_FOUND
    );
    let rest = server
        .patch(&location, Some("400000-999999"), &content[400_000..])
        .await;
    assert_eq!(rest.status(), StatusCode::ACCEPTED);
    assert_eq!(
        server
            .finish(&location, &digest.to_string(), b"")
            .await
            .status(),
        StatusCode::CREATED
    );
    assert_eq!(
        server
            .get(&format!("/v2/a/blobs/{digest}"))
            .await
            .bytes()
            .await
            .unwrap(),
        content
    );
}

// limit: silence within a request body
#[tokio::test]
async fn a_push_may_pause_as_long_as_the_setting_says() {
    let idle = |settings: &Settings| settings.http.body_idle_timeout;
    assert_eq!(idle(&Settings::default()), Duration::from_mins(5));
    let limit = Duration::from_secs(1);
    let server = Server::with(|settings| settings.http.body_idle_timeout = limit).await;
    // A client that compresses while it pushes sends nothing meanwhile.
    for (pause, expected) in [(limit / 5, "202"), (limit * 5, "408")] {
        let location = server.upload("a").await;
        let path = location.strip_prefix(&server.base).unwrap();
        let head = format!(
            "PATCH {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Length: 4\r\n\r\n"
        );
        let mut stream = TcpStream::connect(server.address()).await.unwrap();
        stream.write_all(head.as_bytes()).await.unwrap();
        stream.write_all(b"ha").await.unwrap();
        tokio::time::sleep(pause).await;
        // Beyond the limit, the connection is closed already.
        stream.write_all(b"lf").await.ok();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.ok();
        let status = answer.split(' ').nth(1);
        assert_eq!(status, Some(expected), "{answer}");
    }
}

#[tokio::test]
async fn a_cut_last_request_stores_nothing() {
    let server = Server::plain().await;
    let location = server.upload("a").await;
    // The digest of the bytes that arrive: complete for the hash, but not for the client.
    let digest = Digest::sha256(b"half");
    cut_off(
        &server,
        "PUT",
        &format!("{location}?digest={digest}"),
        8,
        b"half",
    )
    .await;
    eventually(async || header(&server.get(&location).await, &RANGE) == "0-3").await;
    assert_eq!(
        server.head(&format!("/v2/a/blobs/{digest}")).await.status(),
        StatusCode::NOT_FOUND
    );
}

#[tokio::test]
async fn everything_survives_a_restart() {
    let server = Server::closed().await.restart().await;
    drop(server);
    let server = Server::plain().await;
    let body = server.push_image("a", "t", "x").await;
    let location = server.upload("a").await;
    server.patch(&location, None, b"hello ").await;
    let path = location.strip_prefix(&server.base).unwrap().to_owned();
    let server = server.restart().await;
    assert_eq!(
        server.get("/v2/a/manifests/t").await.text().await.unwrap(),
        body
    );
    assert_eq!(header(&server.get(&path).await, &RANGE), "0-5");
    assert_eq!(
        server.patch(&path, Some("6-10"), b"world").await.status(),
        StatusCode::ACCEPTED
    );
    let digest = Digest::sha256(b"hello world").to_string();
    assert_eq!(
        server.finish(&path, &digest, b"").await.status(),
        StatusCode::CREATED
    );
}

#[tokio::test]
async fn abandoned_uploads_do_not_stay() {
    let server = Server::with(|settings| {
        settings.registry_storage_maintenance_uploadpurging_age = std::time::Duration::ZERO;
        settings.registry_storage_maintenance_uploadpurging_interval = std::time::Duration::ZERO;
    })
    .await;
    let location = server.upload("a").await;
    eventually(async || server.get(&location).await.status() == StatusCode::NOT_FOUND).await;
    assert!(
        !server
            .content("repositories/a/_uploads")
            .join(location.rsplit('/').next().unwrap())
            .exists()
    );
}

#[tokio::test]
async fn a_full_disk_is_a_clean_error_and_reads_go_on() {
    let server = Server::plain().await;
    let body = server.push_image("a", "t", "x").await;
    let location = server.upload("a").await;
    let id = location.rsplit('/').next().unwrap();
    let data = server.content(&format!("repositories/a/_uploads/{id}/data"));
    std::fs::remove_file(&data).unwrap();
    symlink("/dev/full", &data).unwrap();
    assert_eq!(
        refusal(server.patch(&location, None, b"too much").await).await,
        is(507, "UNKNOWN")
    );
    assert_eq!(
        server.get("/v2/a/manifests/t").await.text().await.unwrap(),
        body
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn many_clients_push_the_same_and_different_things() {
    let server = Server::plain().await;
    let server = &server;
    let shared = vec![8; 300_000];
    let pushes = (0..16).map(|n| {
        let shared = shared.clone();
        async move {
            let name = format!("team{}/app", n % 4);
            let config = server.push_blob(&name, b"{}").await;
            let layer = server.push_blob(&name, &shared).await;
            let own = server.push_blob(&name, format!("own {n}").as_bytes()).await;
            let body = manifest(&config, &[(&layer, shared.len()), (&own, 6)]);
            for tag in [format!("v{n}"), "latest".to_owned()] {
                assert_eq!(
                    server.put_manifest(&name, &tag, &*body).await.status(),
                    StatusCode::CREATED
                );
            }
            (name, n, body)
        }
    });
    let pushed = futures_util::future::join_all(pushes).await;
    for (name, n, body) in &pushed {
        let got = server.get(&format!("/v2/{name}/manifests/v{n}")).await;
        assert_eq!(&got.text().await.unwrap(), body);
        let latest = server
            .get(&format!("/v2/{name}/manifests/latest"))
            .await
            .text()
            .await
            .unwrap();
        assert!(
            pushed
                .iter()
                .any(|(other, _, body)| other == name && *body == latest)
        );
        let digest = Digest::sha256(&shared);
        assert_eq!(
            server
                .get(&format!("/v2/{name}/blobs/{digest}"))
                .await
                .bytes()
                .await
                .unwrap(),
            shared
        );
    }
}

#[tokio::test]
async fn a_download_ends_whole_although_the_blob_is_deleted() {
    let server = Server::plain().await;
    let content = vec![6; 8_000_000];
    let digest = server.push_blob("a", &content).await;
    let path = format!("/v2/a/blobs/{digest}");
    let download = server.get(&path).await;
    assert_eq!(server.delete(&path).await.status(), StatusCode::ACCEPTED);
    assert_eq!(download.bytes().await.unwrap(), content);
}

/// Pushes an image without layers to the server at `base`; its manifest.
async fn push(talker: &Server, base: &str) -> String {
    let location = start(talker, base).await;
    let digest = Digest::sha256(b"{}");
    let done = talker.finish(&location, &digest.to_string(), b"{}").await;
    assert_eq!(done.status(), StatusCode::CREATED);
    let body = manifest(&digest, &[]);
    let put = talker.request(Method::PUT, &format!("{base}/v2/a/manifests/t"));
    let put = put.body(body.clone()).send().await.unwrap();
    assert_eq!(put.status(), StatusCode::CREATED);
    body
}

async fn start(talker: &Server, base: &str) -> String {
    let start = talker.request(Method::POST, &format!("{base}/v2/a/blobs/uploads/"));
    header(&start.send().await.unwrap(), &LOCATION)
}

#[tokio::test]
async fn what_was_acknowledged_survives_kill_9_and_uploads_go_on() {
    // A server in this process is the one that knows how to talk; the killed one has its place.
    let talker = Server::plain().await;
    let root = tempfile::tempdir().unwrap();
    let process = Process::start(root.path(), &[]).await;
    let (base, port) = (process.base.clone(), process.port());
    let body = push(&talker, &base).await;
    let upload = start(&talker, &base).await;
    // A piece that never ends: it is on its way when the process dies.
    let (sender, receiver) = tokio::sync::mpsc::channel::<Result<Vec<u8>, std::io::Error>>(1);
    let stream = futures_util::stream::unfold(receiver, async |mut receiver| {
        Some((receiver.recv().await?, receiver))
    });
    let patch = talker.request(Method::PATCH, &upload);
    let patch = tokio::spawn(patch.body(reqwest::Body::wrap_stream(stream)).send());
    sender.send(Ok(vec![1; 600_000])).await.unwrap();
    let id = upload.rsplit('/').next().unwrap();
    let data = format!("docker/registry/v2/repositories/a/_uploads/{id}/data");
    let data = root.path().join(data);
    eventually(async || std::fs::metadata(&data).is_ok_and(|metadata| metadata.len() > 0)).await;
    drop(process);
    assert!(patch.await.unwrap().is_err());

    let _process = Process::start_at(root.path(), port, &[]).await;
    let got = talker.get(&format!("{base}/v2/a/manifests/t")).await;
    assert_eq!(got.text().await.unwrap(), body);
    let range = header(&talker.get(&upload).await, &RANGE);
    let received = range.strip_prefix("0-").unwrap().parse::<usize>().unwrap() + 1;
    assert!((1..=600_000).contains(&received), "{range}");
    let digest = Digest::sha256(&vec![1; 600_000]).to_string();
    let done = talker
        .finish(&upload, &digest, &vec![1; 600_000 - received])
        .await;
    assert_eq!(done.status(), StatusCode::CREATED);
}
