//! The site's names on HTTP and HTTPS.

use std::fs;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::body::Bytes;
use http::StatusCode;
use http_body_util::{BodyExt as _, Empty};
use hyper::client::conn::http2;
use hyper_util::rt::{TokioExecutor, TokioIo};
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, ClientConnection};
use serde_json::json;
use service::forward::Upstream;
use service::server::HttpSettings;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

use crate::raw;
use crate::site_world::{HSTS, SiteWorld, client_config, connect, json_of, made, parsed, upstream};
use crate::world::{eventually, soon};

#[tokio::test]
async fn each_host_reaches_its_upstream() {
    let site = SiteWorld::start().await;
    for (host, expected) in [
        ("api.site.test", "api"),
        ("API.Site.Test:8443", "api"),
        ("api.site.test.", "api"),
        ("web.site.test", "web"),
        ("service.site.test:443", "web"),
    ] {
        let (status, headers, body) = site
            .asked(
                "api.site.test",
                host,
                "X-Forwarded-Proto: http\r\nX-Forwarded-For: 6.6.6.6\r\nX-Forwarded-Host: evil\r\n",
            )
            .await;
        assert_eq!(status, 200, "{host}");
        assert_eq!(headers["strict-transport-security"], HSTS);
        let body = json_of(&body);
        assert_eq!(
            (&body["upstream"], &body["path"]),
            (&json!(expected), &json!("/a//b?x=%zz"))
        );
        let values = |name: &str| -> Vec<String> {
            let pairs = body["headers"].as_array().unwrap().iter();
            let named = pairs.filter(|pair| pair[0] == name);
            named
                .map(|pair| pair[1].as_str().unwrap().to_owned())
                .collect()
        };
        assert_eq!(values("x-forwarded-proto"), ["https"]);
        assert_eq!(values("x-forwarded-for"), ["127.0.0.1"]);
        assert_eq!(values("host"), [host]);
        assert_eq!(values("x-forwarded-host"), [host]);
    }
}

#[tokio::test]
async fn a_trusted_proxy_in_front_is_believed() {
    let site = SiteWorld::start_with(|settings| {
        settings.http = HttpSettings {
            trusted_proxies: service::settings::Setting::parse("127.0.0.1").unwrap(),
            ..HttpSettings::default()
        };
    })
    .await;
    let (_, _, body) = site
        .asked(
            "api.site.test",
            "api.site.test",
            "X-Forwarded-For: 192.0.2.7\r\n",
        )
        .await;
    assert!(body.contains("192.0.2.7, 127.0.0.1"), "{body}");
}

#[tokio::test]
async fn requests_of_one_connection_are_routed_one_by_one() {
    let site = SiteWorld::start().await;
    let mut stream = site.connect(&site.wildcard, "api.site.test").await.unwrap();
    for expected in ["api", "web", "api"] {
        let request = format!("GET / HTTP/1.1\r\nHost: {expected}.site.test\r\n\r\n");
        stream.write_all(request.as_bytes()).await.unwrap();
        let answer = raw::read_until(&mut stream, "}").await;
        let named = format!("\"upstream\":\"{expected}\"");
        assert!(answer.contains(&named), "{answer}");
    }
}

#[tokio::test]
async fn http_2_is_spoken_and_routed_by_its_authority() {
    let site = SiteWorld::start().await;
    let pem = site
        .wildcard
        .bundle
        .split_inclusive("-----END CERTIFICATE-----")
        .next()
        .unwrap();
    let client = reqwest::Client::builder()
        .tls_certs_only([reqwest::Certificate::from_pem(pem.as_bytes()).unwrap()])
        .resolve("web.site.test", site.at.https)
        .build()
        .unwrap();
    let url = format!("https://web.site.test:{}/x", site.at.https.port());
    let response = client.get(url).send().await.unwrap();
    assert_eq!(response.version(), http::Version::HTTP_2);
    let body = json_of(&response.text().await.unwrap());
    assert_eq!(body["upstream"], "web");
}

/// Browsers use one connection for every name of its certificate, but the registry's is not decrypted here.
#[tokio::test]
async fn shared_connections_of_http_2_reach_each_host_but_the_registry() {
    let site = SiteWorld::start().await;
    for sni in ["api.site.test", "web.site.test", "unknown.site.test"] {
        let mut config = Arc::unwrap_or_clone(client_config(&site.wildcard, rustls::ALL_VERSIONS));
        config.alpn_protocols = vec![b"h2".to_vec()];
        let stream = TcpStream::connect(site.at.https).await.unwrap();
        let name = ServerName::try_from(sni).unwrap();
        let stream = TlsConnector::from(Arc::new(config)).connect(name, stream);
        let stream = TokioIo::new(soon(stream).await.unwrap());
        let (mut sender, connection) = http2::handshake(TokioExecutor::new(), stream)
            .await
            .unwrap();
        tokio::spawn(connection);
        for (authority, host, expected) in [
            ("api.site.test", None, (200, "\"upstream\":\"api\"")),
            ("registry.site.test", None, (421, "connections of its own")),
            (
                "REGISTRY.site.test:443",
                None,
                (421, "connections of its own"),
            ),
            ("web.site.test", None, (200, "\"upstream\":\"web\"")),
            // The authority counts, not the line of HTTP/1, and the upstream gets no other.
            (
                "web.site.test",
                Some("registry.site.test"),
                (200, "[\"host\",\"web.site.test\"]"),
            ),
            (
                "registry.site.test",
                Some("web.site.test"),
                (421, "connections of its own"),
            ),
            ("other.test", None, (404, "")),
        ] {
            let request = http::Request::get(format!("https://{authority}/v2/"));
            let request = match host {
                Some(host) => request.header(http::header::HOST, host),
                None => request,
            };
            let request = request.body(Empty::<Bytes>::new()).unwrap();
            let response = soon(sender.send_request(request)).await.unwrap();
            let status = response.status().as_u16();
            let body = response.into_body().collect().await.unwrap().to_bytes();
            let body = String::from_utf8_lossy(&body);
            assert!(
                status == expected.0 && body.contains(expected.1),
                "{sni} {authority} {host:?}: {status} {body}"
            );
        }
    }
}

#[tokio::test]
async fn http_is_redirected_except_well_known_paths() {
    let site = SiteWorld::start().await;
    let ask = async |request: &str| raw::ask(site.at.http, request).await;
    let answer =
        ask("GET /a//b?x=%zz HTTP/1.1\r\nHost: API.site.test:8081\r\nConnection: close\r\n\r\n")
            .await;
    let (status, headers, body) = parsed(&answer);
    assert_eq!((status.as_u16(), body.as_str()), (301, ""));
    assert_eq!(headers["location"], "https://api.site.test/a//b?x=%zz");
    assert_eq!(headers["content-length"], "0");
    assert!(!headers.contains_key("strict-transport-security"));
    for (request, expected) in [
        (
            "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\nConnection: close\r\n\r\nabc",
            301,
        ),
        ("GET / HTTP/1.1\r\nConnection: close\r\n\r\n", 400),
        ("GET / HTTP/1.0\r\n\r\n", 400),
        (
            "GET / HTTP/1.1\r\nHost: a b\r\nConnection: close\r\n\r\n",
            400,
        ),
        (
            "GET /%2ewell-known/x HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n",
            301,
        ),
        (
            "GET /.WELL-known/x HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n",
            404,
        ),
        (
            "CONNECT a:443 HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n",
            400,
        ),
    ] {
        let (status, _, _) = parsed(&ask(request).await);
        assert_eq!(status.as_u16(), expected, "{request}");
    }
}

#[tokio::test]
async fn challenges_of_certificate_authorities_may_have_an_upstream() {
    let acme = upstream("acme").await;
    let site = SiteWorld::start_with(|settings| settings.site.acme_url = Some(acme)).await;
    let request =
        "GET /.well-known/acme-challenge/token HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n";
    let (status, headers, body) = parsed(&raw::ask(site.at.http, request).await);
    assert_eq!(
        (status.as_u16(), &json_of(&body)["upstream"]),
        (200, &json!("acme"))
    );
    assert!(!headers.contains_key("strict-transport-security"));
    assert!(!body.contains("\"https\""), "{body}");
}

/// The client's first bytes in records of `size` bytes, each in a packet of its own.
async fn fragmented(
    address: SocketAddr,
    config: Arc<ClientConfig>,
    sni: &str,
    size: usize,
) -> TcpStream {
    let name = ServerName::try_from(sni.to_owned()).unwrap();
    let mut client = ClientConnection::new(config, name).unwrap();
    let mut hello = Vec::new();
    client.write_tls(&mut hello).unwrap();
    let mut stream = TcpStream::connect(address).await.unwrap();
    stream.set_nodelay(true).unwrap();
    for part in hello[5..].chunks(size) {
        let mut record = hello[..3].to_vec();
        record.extend(u16::try_from(part.len()).unwrap().to_be_bytes());
        record.extend(part);
        stream.write_all(&record).await.unwrap();
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    stream
}

#[tokio::test]
async fn registry_connections_pass_with_their_tls() {
    let site = SiteWorld::start().await;
    for versions in [&[&rustls::version::TLS12][..], &[&rustls::version::TLS13]] {
        for sni in ["registry.site.test", "REGISTRY.site.test"] {
            let mut stream = connect(site.at.https, &site.registry, sni, versions)
                .await
                .unwrap();
            // A Host of another name is not seen.
            stream
                .write_all(b"GET / HTTP/1.1\r\nHost: api.site.test\r\n\r\n")
                .await
                .unwrap();
            let answer = raw::read_until(&mut stream, "\r\n\r\n").await;
            assert!(
                answer.starts_with("GET / "),
                "the registry answers, not the proxy: {answer}"
            );
        }
    }
    // A first message in many records and packets.
    for size in [1, 7, 100] {
        let config = client_config(&site.registry, rustls::ALL_VERSIONS);
        let mut stream = fragmented(site.at.https, config, "registry.site.test", size).await;
        let mut first = [0; 3];
        soon(stream.read_exact(&mut first)).await.unwrap();
        assert_eq!(first, [22, 3, 3], "a handshake record of the registry");
    }
    // On a decrypted connection, the registry's name is a mistake of the client.
    let (status, headers, _) = site.asked("api.site.test", "registry.site.test", "").await;
    assert_eq!(status, StatusCode::MISDIRECTED_REQUEST);
    assert!(!headers.contains_key("strict-transport-security"));
}

#[tokio::test]
async fn a_registry_that_is_down_is_an_alert() {
    let site = SiteWorld::start_with(|settings| settings.site.registry_address.port = 1).await;
    let error = site
        .connect(&site.registry, "registry.site.test")
        .await
        .unwrap_err();
    assert!(error.to_string().contains("InternalError"), "{error}");
}

#[tokio::test]
async fn clients_without_a_name_and_with_foreign_ones_get_the_first_certificate() {
    let site = SiteWorld::start().await;
    let other = made(&["*.other.test"]);
    fs::write(site.certs.path().join("other.pem"), &other.bundle).unwrap();
    fs::write(site.certs.path().join("broken.pem"), "broken").unwrap();
    let list = "site.pem\nbroken.pem\nmissing.pem\nother.pem [alpn http/1.1] *.other.test !not.other.test\n";
    fs::write(site.certs.path().join("crt-list.txt"), list).unwrap();
    // The list is followed, and unusable certificates leave the others in force.
    eventually(async || site.connect(&other, "a.other.test").await.is_ok()).await;
    assert!(site.connect(&site.wildcard, "api.site.test").await.is_ok());
    for sni in ["not.other.test", "x.example", "127.0.0.1"] {
        let error = site
            .connect(&site.wildcard, sni)
            .await
            .unwrap_err()
            .to_string();
        // Trusted, for another name.
        assert!(error.contains("not valid for name"), "{sni}: {error}");
    }
}

#[tokio::test]
async fn errors_are_pages_for_browsers_and_json_for_programs() {
    let folder = tempfile::tempdir().unwrap();
    let pages = folder.path().to_owned();
    let site = SiteWorld::start_with(|settings| {
        settings.site.api_url = Upstream::parse("http://127.0.0.1:1").unwrap();
        settings.site.error_pages = Some(pages);
    })
    .await;
    let ask = async |accept: &str| site.asked("api.site.test", "api.site.test", accept).await;
    let (status, headers, body) = ask("Accept: application/json\r\n").await;
    assert_eq!(status, 503);
    assert!(headers.contains_key("retry-after") && headers["strict-transport-security"] == HSTS);
    assert!(
        json_of(&body)["message"]
            .as_str()
            .unwrap()
            .contains("127.0.0.1:1 cannot be reached"),
        "{body}"
    );
    let (status, headers, body) = ask("Accept: text/html,*/*\r\n").await;
    assert_eq!(
        (status.as_u16(), &headers["content-type"]),
        (503, &"text/html; charset=utf-8".parse().unwrap())
    );
    assert!(body.contains("127.0.0.1:1 cannot be reached"), "{body}");
    assert_eq!(headers["strict-transport-security"], HSTS);
    fs::write(folder.path().join("503.html"), "<p>maintenance").unwrap();
    let (_, _, body) = ask("Accept: text/html\r\n").await;
    assert_eq!(body, "<p>maintenance");
}

#[tokio::test]
async fn garbage_on_the_port_for_tls_is_answered_and_closed() {
    let site = SiteWorld::start().await;
    let answer = raw::ask(site.at.https, "GET / HTTP/1.1\r\nHost: a\r\n\r\n").await;
    assert!(answer.starts_with("HTTP/1.1 400 "), "{answer}");
    for garbage in [
        &b"\x16\x03\x01\xff\xff\x00"[..],
        b"\x16\x03\x01\x00\x05hello",
        b"\x00\x00\x00",
        b"\x80\x2e\x01\x03\x01",
    ] {
        let mut stream = TcpStream::connect(site.at.https).await.unwrap();
        stream.write_all(garbage).await.unwrap();
        stream.shutdown().await.unwrap();
        let mut answer = Vec::new();
        soon(stream.read_to_end(&mut answer)).await.ok();
        assert!(!answer.starts_with(b"HTTP"));
    }
    assert!(site.connect(&site.wildcard, "api.site.test").await.is_ok());
}
