//! Settings that change while the site is under load.

use std::fs;
use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::routing::get;
use rustls::pki_types::ServerName;
use service::forward::Upstream;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Notify;
use tokio_rustls::TlsConnector;

use crate::raw;
use crate::site_load::ClientLoad;
use crate::site_process::SiteProcess;
use crate::site_world::{
    HSTS, KeepAlive, client_config, connect, made, parsed, registry, upstream,
};
use crate::world::{eventually, soon};

/// Log message of a reload.
const RELOADED: &str = "settings reloaded";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn reloads_fail_no_request_and_answer_none_wrongly() {
    let certificates: Vec<_> = (0..6).map(|_| made(&["*.site.test"])).collect();
    let trusted = Arc::new(certificates);
    let mut upstreams = Vec::new();
    for name in ["api", "api2", "web", "web2"] {
        upstreams.push(upstream(name).await);
    }
    let settings = |generation: usize| {
        let (api, web) = (&upstreams[generation % 2], &upstreams[2 + generation % 2]);
        // Hosts move, too, except the one under load.
        format!(
            "API_URL={api}\nWEB_URL={web}\nWEB_HOST=web{generation}\nHSTS=max-age={generation}\n"
        )
    };
    let site = SiteProcess::start(&trusted[0], &settings(0)).await;
    let is_right = |status, body: &str| {
        status == 200 && (body.contains("\"api\"") || body.contains("\"api2\""))
    };
    let (load, clients) = ClientLoad::start(site.https, &trusted, "/x", is_right);
    load.more(200).await;
    let mut kept = KeepAlive::connect(site.https, &trusted, "api.site.test")
        .await
        .unwrap();
    for generation in 1..=5 {
        fs::write(
            site.path(&format!("site{generation}.pem")),
            &trusted[generation].bundle,
        )
        .unwrap();
        let list = site.path(&format!("list{generation}"));
        fs::write(&list, format!("site{generation}.pem\n")).unwrap();
        let list = format!("CERTIFICATE_LIST={}\n", list.display());
        site.set(&(settings(generation) + &list));
        // The file alone is enough; the signal is faster.
        if generation != 3 {
            site.process.hang_up();
        }
        site.process.log.until(RELOADED, generation).await;
        let names = [
            ["api", "api2"][generation % 2],
            ["web", "web2"][generation % 2],
        ];
        let mut fresh = KeepAlive::connect(site.https, &trusted, "api.site.test")
            .await
            .unwrap();
        assert_eq!(fresh.certificate(), trusted[generation].der);
        for client in [&mut kept, &mut fresh] {
            let hosts = [
                "api.site.test".to_owned(),
                format!("web{generation}.site.test"),
            ];
            for (host, name) in hosts.iter().zip(names) {
                let (status, body) = client.get(host, "/x").await.unwrap();
                assert!(
                    status == 200 && body.contains(&format!("\"{name}\"")),
                    "{host}: {body}"
                );
            }
            let before = format!("web{}.site.test", generation - 1);
            let (status, body) = client.get(&before, "/x").await.unwrap();
            assert_eq!(status, 404, "{body}");
        }
        load.more(200).await;
    }
    let answers = load.end(clients).await;
    assert!(answers >= 6 * 200);
    assert!(site.process.log.with("need a restart").is_empty());
}

#[tokio::test]
async fn settings_that_cannot_be_used_leave_the_old_ones_in_force() {
    let trusted = [made(&["*.site.test"])];
    let api = upstream("api").await;
    let other = upstream("other").await;
    let site = SiteProcess::start(&trusted[0], &format!("API_URL={api}\n")).await;
    let mut client = KeepAlive::connect(site.https, &trusted, "api.site.test")
        .await
        .unwrap();
    fs::write(site.path("empty"), "# nothing\n").unwrap();
    fs::write(site.path("broken.pem"), "broken").unwrap();
    fs::write(site.path("broken"), "broken.pem\n").unwrap();
    let list = |name: &str| format!("CERTIFICATE_LIST={}", site.path(name).display());
    for (count, (line, variable, reason)) in (1..).zip([
        ("API_URL=https://x".to_owned(), "API_URL", "without TLS"),
        ("no line".to_owned(), "--config", "expected NAME=value"),
        ("WEB_HOST=api".to_owned(), "WEB_HOST", "another service"),
        (
            "PROXY_HTTP_PORT=x".to_owned(),
            "PROXY_HTTP_PORT",
            "expected",
        ),
        ("HSTS=a\u{1}b".to_owned(), "HSTS", "no header may have"),
        (list("missing"), "CERTIFICATE_LIST", "there is no file"),
        (list("empty"), "CERTIFICATE_LIST", "names no certificate"),
        (list("broken"), "CERTIFICATE_LIST", "broken.pem"),
    ]) {
        site.set(&format!("API_URL={other}\n{line}\n"));
        site.process.hang_up();
        let lines = site.process.log.until("settings not reloaded", count).await;
        let last = lines.last().unwrap();
        assert!(
            last.contains(variable) && last.contains(reason),
            "{line}: {last}"
        );
        let (status, body) = client.get("api.site.test", "/").await.unwrap();
        assert!(status == 200 && body.contains("\"api\""), "{line}: {body}");
        assert!(
            KeepAlive::connect(site.https, &trusted, "api.site.test")
                .await
                .is_ok()
        );
    }
    assert!(site.process.log.with(RELOADED).is_empty());
    site.set(&format!("API_URL={other}\n"));
    site.process.hang_up();
    site.process.log.until(RELOADED, 1).await;
    let (_, body) = client.get("api.site.test", "/").await.unwrap();
    assert!(body.contains("\"other\""), "{body}");
}

#[tokio::test]
async fn settings_that_need_a_restart_are_named_and_the_others_taken() {
    let trusted = [made(&["*.site.test"])];
    let (api, other) = (upstream("api").await, upstream("other").await);
    let site = SiteProcess::start(&trusted[0], &format!("API_URL={api}\n")).await;
    site.set(&format!(
        "API_URL={other}\nPROXY_HTTPS_PORT=1\nLISTEN_ADDRESS=192.0.2.1\nLOG_LEVEL=debug\nMAX_CONNECTIONS=7\n\
         FORWARDS=8080=http://a\nFILES_PORT=2\nIDLE_TIMEOUT=5m\n"
    ));
    site.process.hang_up();
    let lines = site.process.log.until("need a restart", 1).await;
    for name in [
        "PROXY_HTTPS_PORT",
        "LISTEN_ADDRESS",
        "LOG_LEVEL",
        "MAX_CONNECTIONS",
        "FORWARDS",
        "FILES_PORT",
    ] {
        assert!(lines[0].contains(name), "{name}: {}", lines[0]);
    }
    assert!(
        !lines[0].contains("API_URL") && !lines[0].contains("IDLE_TIMEOUT"),
        "{}",
        lines[0]
    );
    let mut client = KeepAlive::connect(site.https, &trusted, "api.site.test")
        .await
        .unwrap();
    let (_, body) = client.get("api.site.test", "/").await.unwrap();
    assert!(body.contains("\"other\""), "{body}");
    // A domain is the one of the ports that are open.
    site.set("API_URL=http://127.0.0.1:1\nNETWORK_DOMAIN=\n");
    site.process.hang_up();
    let lines = site.process.log.until("need a restart", 2).await;
    assert!(lines[1].contains("API_URL, NETWORK_DOMAIN"), "{}", lines[1]);
    let (status, _) = client.get("api.site.test", "/").await.unwrap();
    assert_eq!(status, 200);
}

/// An upstream with a response that ends at `finish`, and tunnels that send every byte back.
async fn slow_upstream(finish: &Arc<Notify>) -> Upstream {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let origin = format!("http://{}", listener.local_addr().unwrap());
    let finish = finish.clone();
    let slow = get(async move || {
        let parts = futures_util::stream::unfold(0, move |part| {
            let finish = finish.clone();
            async move {
                if part == 1 {
                    finish.notified().await;
                }
                let texts = ["begin", "end"];
                Some((Ok::<_, std::io::Error>(*texts.get(part)?), part + 1))
            }
        });
        Body::from_stream(parts)
    });
    let router = Router::new()
        .route("/slow", slow)
        .route("/echo", get(crate::wire::echo));
    tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
    Upstream::parse(&origin).unwrap()
}

#[tokio::test]
async fn responses_tunnels_and_passed_connections_outlive_a_reload() {
    let trusted = made(&["*.site.test"]);
    let of_registry = made(&["registry.site.test", "registry.new.test"]);
    let address = registry(&of_registry).await;
    let finish = Arc::new(Notify::new());
    let old = slow_upstream(&finish).await;
    let new = upstream("new").await;
    let settings = format!(
        "API_URL={old}\nREGISTRY_ADDRESS=127.0.0.1:{}\n",
        address.port
    );
    let site = SiteProcess::start(&trusted, &settings).await;
    let open = async |sni: &str| {
        connect(site.https, &trusted, sni, rustls::ALL_VERSIONS)
            .await
            .unwrap()
    };
    let mut slow = open("api.site.test").await;
    let request = b"GET /slow HTTP/1.1\r\nHost: api.site.test\r\nConnection: close\r\n\r\n";
    slow.write_all(request).await.unwrap();
    let mut answer = raw::read_until(&mut slow, "begin").await;
    let mut tunnel = open("api.site.test").await;
    let request =
        b"GET /echo HTTP/1.1\r\nHost: api.site.test\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n";
    tunnel.write_all(request).await.unwrap();
    raw::read_until(&mut tunnel, "\r\n\r\n").await;
    let connector = TlsConnector::from(client_config(&of_registry, rustls::ALL_VERSIONS));
    let pass = async |sni: &'static str| {
        let stream = TcpStream::connect(site.https).await.unwrap();
        let name = ServerName::try_from(sni).unwrap();
        soon(connector.connect(name, stream)).await
    };
    let mut passed = pass("registry.site.test").await.unwrap();

    site.set(&format!(
        "API_URL={new}\nREGISTRY_ADDRESS=127.0.0.1:1\nNETWORK_DOMAIN=new.test\nREDIRECT_HTTPS_PORT=444\nHSTS=off\n"
    ));
    site.process.hang_up();
    site.process.log.until(RELOADED, 1).await;
    for text in ["ping", "pong"] {
        tunnel.write_all(text.as_bytes()).await.unwrap();
        raw::read_until(&mut tunnel, text).await;
        passed.write_all(text.as_bytes()).await.unwrap();
        raw::read_until(&mut passed, text).await;
    }
    finish.notify_one();
    soon(slow.read_to_string(&mut answer)).await.unwrap();
    let (_, headers, body) = parsed(&answer);
    assert!(
        body.contains("begin") && body.contains("end") && body.ends_with("0\r\n\r\n"),
        "{body}"
    );
    assert_eq!(headers["strict-transport-security"], HSTS);
    // New requests and connections follow the new settings.
    assert!(
        pass("registry.new.test").await.is_err(),
        "the new address is closed"
    );
    let answer = raw::ask(
        site.http,
        "GET /a HTTP/1.1\r\nHost: x.d\r\nConnection: close\r\n\r\n",
    )
    .await;
    assert_eq!(parsed(&answer).1["location"], "https://x.d:444/a");
    site.set(&format!(
        "API_URL={new}\nREGISTRY_ADDRESS=127.0.0.1:{}\nNETWORK_DOMAIN=new.test\n",
        address.port
    ));
    site.process.hang_up();
    eventually(async || pass("registry.new.test").await.is_ok()).await;
    // Readiness is that of the new upstreams: the default of WEB_URL has no address here.
    let ready = "GET /ready HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
    eventually(async || {
        let answer = raw::ask(site.status, ready).await;
        answer.contains("webui:8989") && !answer.contains("127.0.0.1")
    })
    .await;
}
