//! Lookups: order of the servers, retries, caching.

use std::net::IpAddr;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use hickory_resolver::proto::op::ResponseCode;
use hickory_resolver::proto::rr::RecordType;
use net::resolve::{Error, Resolver, ResolverOptions};
use tempfile::TempDir;
use testkit::wire;
use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpListener;

use crate::dns::{NameServer, Over, Question, Reaction, addresses};

const UNKNOWN: Reaction = Reaction::Code(ResponseCode::NXDomain);
const BROKEN: Reaction = Reaction::Code(ResponseCode::ServFail);
/// Longer than any test.
const FOREVER: Duration = Duration::from_hours(1);

/// Configuration files of a resolver.
struct Files(TempDir);

impl Files {
    fn new(conf: &str) -> Self {
        let files = Self(tempfile::tempdir().unwrap());
        files.write("resolv.conf", conf);
        files.write("hosts", "");
        files
    }

    /// With name servers in this order.
    fn of(servers: &[&NameServer]) -> Self {
        let lines: Vec<_> = servers.iter().map(|server| server.line()).collect();
        Self::new(&lines.concat())
    }

    fn write(&self, name: &str, text: &str) {
        std::fs::write(self.path().join(name), text).unwrap();
    }

    fn path(&self) -> &Path {
        self.0.path()
    }

    /// Without caching, and with long timeouts.
    fn options(&self) -> ResolverOptions {
        ResolverOptions {
            resolv_conf: self.path().join("resolv.conf"),
            hosts: self.path().join("hosts"),
            max_age: Duration::ZERO,
            absent_age: Duration::ZERO,
            pause: Duration::from_millis(10),
            ..ResolverOptions::default()
        }
    }

    fn resolver(&self) -> Resolver {
        Resolver::new(self.options())
    }
}

async fn look_up(resolver: &Resolver, host: &str) -> Vec<String> {
    let found = resolver.lookup(host).await.unwrap();
    found.iter().map(IpAddr::to_string).collect()
}

async fn always(ips: &'static [&'static str]) -> NameServer {
    NameServer::start(|question| addresses(question, ips)).await
}

async fn scripted(reaction: Reaction) -> NameServer {
    NameServer::start(move |_| reaction.clone()).await
}

/// A closed port, as a line of a resolv.conf.
async fn closed_port() -> String {
    let gone = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = gone.local_addr().unwrap();
    format!("nameserver [{}]:{}\n", address.ip(), address.port())
}

#[tokio::test]
async fn a_faster_second_server_is_not_queried() {
    let copies = AtomicUsize::new(0);
    // The first queries of both types get no reply; their retransmissions do.
    let slow = NameServer::start(move |question| {
        if copies.fetch_add(1, Ordering::Relaxed) < 2 {
            Reaction::Silence
        } else {
            addresses(question, &["10.0.0.1"])
        }
    })
    .await;
    let wrong = scripted(UNKNOWN).await;
    let files = Files::of(&[&slow, &wrong]);
    assert_eq!(look_up(&files.resolver(), "db").await, ["10.0.0.1"]);
    assert_eq!(wrong.asked(RecordType::A), [""; 0]);
}

#[tokio::test]
async fn nxdomain_of_the_first_server_is_final() {
    let owner = scripted(UNKNOWN).await;
    let liar = always(&["10.9.9.9"]).await;
    let error = Files::of(&[&owner, &liar])
        .resolver()
        .lookup("db")
        .await
        .unwrap_err();
    assert!(error.is_unknown(), "{error}");
    assert_eq!(
        error.to_string(),
        format!(
            "the host db is not known: {} has no such name (db.)",
            owner.address
        )
    );
    assert_eq!(error.brief(), "the name db is not known");
    assert_eq!(owner.asked(RecordType::A).len(), 1, "once is enough");
    assert_eq!(liar.asked(RecordType::A), [""; 0]);
}

#[tokio::test]
async fn the_next_server_is_queried_after_a_dead_one() {
    let live = always(&["10.0.0.1"]).await;
    let closed = Files::new(&format!("{}{}", closed_port().await, live.line()));
    assert_eq!(look_up(&closed.resolver(), "db").await, ["10.0.0.1"]);
    let silent = scripted(Reaction::Silence).await;
    let files = Files::of(&[&silent, &live]);
    let resolver = Resolver::new(ResolverOptions {
        timeout: Duration::from_millis(50),
        ..files.options()
    });
    for _ in 0..3 {
        assert_eq!(look_up(&resolver, "db").await, ["10.0.0.1"]);
    }
}

#[tokio::test]
async fn failed_queries_are_retried() {
    for trouble in [
        BROKEN,
        Reaction::Code(ResponseCode::Refused),
        Reaction::Silence,
    ] {
        let asked = Mutex::new(0);
        let case = format!("{trouble:?}");
        let moody = NameServer::start(move |question| {
            let mut asked = asked.lock().unwrap();
            if question.kind == RecordType::A {
                *asked += 1;
            }
            if *asked < 3 {
                return trouble.clone();
            }
            addresses(question, &["10.0.0.1"])
        })
        .await;
        let files = Files::of(&[&moody]);
        let resolver = Resolver::new(ResolverOptions {
            timeout: Duration::from_millis(300),
            ..files.options()
        });
        assert_eq!(look_up(&resolver, "db").await, ["10.0.0.1"], "{case}");
    }
}

/// The first server fails once, and the second one does not know the neighbours.
#[tokio::test]
async fn a_transient_failure_does_not_make_a_neighbour_unknown() {
    let asked = AtomicUsize::new(0);
    let owner = NameServer::start(move |question| {
        if question.kind == RecordType::A && asked.fetch_add(1, Ordering::Relaxed) > 0 {
            addresses(question, &["10.0.0.1"])
        } else {
            BROKEN
        }
    })
    .await;
    let stranger = scripted(UNKNOWN).await;
    let files = Files::of(&[&owner, &stranger]);
    assert_eq!(look_up(&files.resolver(), "db").await, ["10.0.0.1"]);
    assert_eq!(stranger.asked(RecordType::A).len(), 1);
}

#[tokio::test]
async fn a_transient_failure_does_not_lead_to_the_next_search_domain() {
    let asked = AtomicUsize::new(0);
    let server = NameServer::start(move |question| match question.name.as_str() {
        "db.network." if question.kind != RecordType::A => BROKEN,
        "db.network." if asked.fetch_add(1, Ordering::Relaxed) > 0 => {
            addresses(question, &["10.0.0.1"])
        }
        "db.network." => BROKEN,
        _ => addresses(question, &["10.9.9.9"]),
    })
    .await;
    let files = Files::new(&format!("search network site\n{}", server.line()));
    assert_eq!(look_up(&files.resolver(), "db").await, ["10.0.0.1"]);
    // A search domain that always fails does not hide the others.
    let server = NameServer::start(|question| match question.name.as_str() {
        "db.broken." => BROKEN,
        _ => addresses(question, &["10.0.0.1"]),
    })
    .await;
    let files = Files::new(&format!("search broken site\n{}", server.line()));
    assert_eq!(look_up(&files.resolver(), "db").await, ["10.0.0.1"]);
}

#[tokio::test]
async fn a_third_server_is_queried_after_a_failure_of_the_first() {
    let (broken, stranger) = (scripted(BROKEN).await, scripted(UNKNOWN).await);
    let live = always(&["10.0.0.1"]).await;
    let files = Files::of(&[&broken, &stranger, &live]);
    assert_eq!(look_up(&files.resolver(), "db").await, ["10.0.0.1"]);
}

#[tokio::test]
async fn an_error_has_the_reply_of_each_server() {
    let (broken, stranger) = (scripted(BROKEN).await, scripted(UNKNOWN).await);
    let closed_port = closed_port().await;
    let files = Files::new(&format!(
        "{closed_port}{}{}",
        broken.line(),
        stranger.line()
    ));
    let error = files.resolver().lookup("DB.example").await.unwrap_err();
    assert!(!error.is_unknown());
    let text = error.to_string();
    let closed_port = closed_port.trim_start_matches("nameserver ").trim();
    let closed_port = closed_port.replace(['[', ']'], "");
    for part in [
        "the host db.example cannot be looked up now: ".to_owned(),
        format!("{closed_port} cannot be reached (db.example.); "),
        format!(
            "; {} answered Server Failure (db.example.); ",
            broken.address
        ),
        format!("{} has no such name (db.example.)", stranger.address),
    ] {
        assert!(text.contains(&part), "{part:?} is not in {text:?}");
    }
    assert_eq!(
        error.brief(),
        "the name db.example cannot be looked up: no name server answers usably"
    );
    assert_eq!(broken.asked(RecordType::A).len(), 3, "it was tried again");
}

#[tokio::test]
async fn the_ttl_of_a_day_is_ignored() {
    let current = Arc::new(Mutex::new("10.0.0.1"));
    let served = Arc::clone(&current);
    let server =
        NameServer::start(move |question| addresses(question, &[*served.lock().unwrap()])).await;
    let files = Files::of(&[&server]);
    let fresh = files.resolver();
    let keeping = Resolver::new(ResolverOptions {
        max_age: FOREVER,
        ..files.options()
    });
    for resolver in [&fresh, &keeping] {
        assert_eq!(look_up(resolver, "api").await, ["10.0.0.1"]);
    }
    *current.lock().unwrap() = "10.0.0.2";
    assert_eq!(look_up(&fresh, "api").await, ["10.0.0.2"]);
    assert_eq!(
        look_up(&keeping, "API").await,
        ["10.0.0.1"],
        "cached for max_age"
    );
    assert!(ResolverOptions::default().max_age <= Duration::from_secs(5));
    assert!(ResolverOptions::default().absent_age <= Duration::from_secs(1));
}

#[tokio::test]
async fn an_unknown_name_has_its_own_cache_time() {
    let born = Arc::new(Mutex::new(false));
    let exists = Arc::clone(&born);
    let server = NameServer::start(move |question| {
        if *exists.lock().unwrap() {
            addresses(question, &["10.0.0.1"])
        } else {
            UNKNOWN
        }
    })
    .await;
    let files = Files::of(&[&server]);
    let forgetful = Resolver::new(ResolverOptions {
        max_age: FOREVER,
        ..files.options()
    });
    let keeping = Resolver::new(ResolverOptions {
        absent_age: FOREVER,
        ..files.options()
    });
    for resolver in [&forgetful, &keeping] {
        assert!(resolver.lookup("api").await.unwrap_err().is_unknown());
    }
    *born.lock().unwrap() = true;
    assert_eq!(look_up(&forgetful, "api").await, ["10.0.0.1"]);
    assert!(keeping.lookup("api").await.unwrap_err().is_unknown());
}

#[tokio::test]
async fn ipv6_is_not_needed() {
    for without in [
        Reaction::Addresses(Vec::new()),
        UNKNOWN,
        BROKEN,
        Reaction::Silence,
    ] {
        let case = format!("{without:?}");
        let server = NameServer::start(move |question| match question.kind {
            RecordType::A => addresses(question, &["10.0.0.1"]),
            _ => without.clone(),
        })
        .await;
        let files = Files::of(&[&server]);
        // Waiting for the AAAA reply would take too long.
        let resolver = Resolver::new(ResolverOptions {
            timeout: FOREVER,
            ..files.options()
        });
        assert_eq!(look_up(&resolver, "db").await, ["10.0.0.1"], "{case}");
        assert_eq!(server.asked(RecordType::A).len(), 1, "{case}: at once");
    }
}

#[tokio::test]
async fn addresses_come_sorted_and_ipv4_first() {
    let server = always(&["fd00::2", "10.0.0.2", "fd00::1", "10.0.0.1", "10.0.0.2"]).await;
    let files = Files::of(&[&server]);
    assert_eq!(
        look_up(&files.resolver(), "api").await,
        ["10.0.0.1", "10.0.0.2", "fd00::1", "fd00::2"]
    );
    let only_v6 = always(&["fd00::1"]).await;
    let files = Files::of(&[&only_v6]);
    assert_eq!(look_up(&files.resolver(), "api").await, ["fd00::1"]);
}

#[tokio::test]
async fn a_name_without_an_address_is_unknown() {
    let server = scripted(Reaction::Addresses(Vec::new())).await;
    let error = Files::of(&[&server]).resolver().lookup("db").await;
    let text = error.unwrap_err().to_string();
    assert!(text.contains("has no address of it"), "{text}");
}

#[tokio::test]
async fn search_domains_are_tried_in_order() {
    let server = NameServer::start(|question| match question.name.as_str() {
        "db.second.example." => addresses(question, &["10.0.0.1"]),
        _ => UNKNOWN,
    })
    .await;
    let files = Files::new(&format!(
        "search first.example second.example\n{}",
        server.line()
    ));
    let resolver = files.resolver();
    assert_eq!(look_up(&resolver, "db").await, ["10.0.0.1"]);
    let mut asked = server.asked(RecordType::A);
    asked.sort();
    assert_eq!(asked, ["db.first.example.", "db.second.example."]);
    let error = resolver.lookup("web").await.unwrap_err().to_string();
    for name in ["(web.first.example.)", "(web.second.example.)", "(web.)"] {
        assert!(error.contains(name), "{error}");
    }
    assert!(resolver.lookup("db.").await.unwrap_err().is_unknown());
}

#[tokio::test]
async fn the_hosts_file_is_reloaded() {
    let server = always(&["10.0.0.1"]).await;
    let files = Files::of(&[&server]);
    let resolver = Resolver::new(ResolverOptions {
        max_age: FOREVER,
        ..files.options()
    });
    assert_eq!(look_up(&resolver, "db").await, ["10.0.0.1"]);
    for address in ["10.0.0.2", "10.0.0.3"] {
        files.write("hosts", &format!("{address} db"));
        assert_eq!(look_up(&resolver, "DB.").await, [address]);
    }
    files.write("hosts", "");
    assert_eq!(look_up(&resolver, "db").await, ["10.0.0.1"]);
    assert_eq!(server.asked(RecordType::A).len(), 1);
}

#[tokio::test]
async fn every_name_of_a_line_has_its_address() {
    let files = Files::new("");
    files.write(
        "hosts",
        "127.0.0.1\tlocalhost\n::1 localhost # both\n\n# 10.0.0.9 db\n10.0.0.2 db DB.example. my_db\n10.0.0.1 db\n\
         10.0.0.2 db\nnot-an-address db\nfe80::1%eth0 db\n10.0.0.3\n",
    );
    let resolver = files.resolver();
    for (host, found) in [
        ("localhost", &["127.0.0.1", "::1"][..]),
        ("db", &["10.0.0.1", "10.0.0.2"]),
        ("db.example", &["10.0.0.2"]),
        ("my_db", &["10.0.0.2"]),
    ] {
        assert_eq!(look_up(&resolver, host).await, found);
    }
    resolver.lookup("other").await.unwrap_err();
}

#[tokio::test]
async fn resolv_conf_is_reloaded() {
    let (old, new) = (always(&["10.0.0.1"]).await, always(&["10.0.0.2"]).await);
    let files = Files::of(&[&old]);
    let resolver = files.resolver();
    assert_eq!(look_up(&resolver, "db").await, ["10.0.0.1"]);
    files.write("resolv.conf", &new.line());
    assert_eq!(look_up(&resolver, "db").await, ["10.0.0.2"]);
}

#[tokio::test]
async fn without_servers_addresses_and_listed_hosts_are_found() {
    for conf in [None, Some(""), Some("# nothing\n")] {
        let files = Files::new(conf.unwrap_or_default());
        files.write("hosts", "10.0.0.1 db\n");
        if conf.is_none() {
            std::fs::remove_file(files.path().join("resolv.conf")).unwrap();
        }
        let resolver = files.resolver();
        for (host, found) in [
            ("db", "10.0.0.1"),
            ("192.0.2.7", "192.0.2.7"),
            ("[fd00::1]", "fd00::1"),
        ] {
            assert_eq!(look_up(&resolver, host).await, [found]);
        }
        let error = resolver.lookup("api").await.unwrap_err();
        assert!(matches!(error, Error::NoServers { .. }));
        let text = error.to_string();
        assert!(
            text.contains("resolv.conf") && text.contains("hosts does not list it"),
            "{text}"
        );
    }
    let nothing = Resolver::new(ResolverOptions {
        resolv_conf: "/nowhere/resolv.conf".into(),
        hosts: "/nowhere/hosts".into(),
        ..ResolverOptions::default()
    });
    assert_eq!(look_up(&nothing, "localhost").await, ["127.0.0.1", "::1"]);
    assert_eq!(look_up(&nothing, "10.0.0.1").await, ["10.0.0.1"]);
    nothing.lookup("api").await.unwrap_err();
    assert!(matches!(
        nothing.lookup("a b").await,
        Err(Error::Invalid { .. })
    ));
}

#[tokio::test]
async fn localhost_is_never_queried() {
    let server = always(&["10.9.9.9"]).await;
    let files = Files::of(&[&server]);
    let resolver = files.resolver();
    for host in ["localhost", "LOCALHOST.", "api.localhost"] {
        assert_eq!(look_up(&resolver, host).await, ["127.0.0.1", "::1"]);
    }
    files.write("hosts", "127.0.0.1 localhost\n");
    assert_eq!(look_up(&resolver, "localhost").await, ["127.0.0.1"]);
    assert_eq!(server.asked(RecordType::A), [""; 0]);
}

#[tokio::test]
async fn the_next_caller_takes_over_a_cancelled_lookup() {
    let server = always(&["10.0.0.1"]).await;
    let files = Files::of(&[&server]);
    let resolver = files.resolver();
    let mut first = Box::pin(resolver.lookup("api"));
    let mut second = Box::pin(resolver.lookup("api"));
    assert!(futures_util::poll!(first.as_mut()).is_pending());
    assert!(futures_util::poll!(second.as_mut()).is_pending());
    drop(first);
    assert_eq!(second.await.unwrap().len(), 1);
}

#[tokio::test]
async fn a_truncated_reply_falls_back_to_tcp() {
    let ips: Vec<String> = (0..300)
        .map(|n| format!("10.0.{}.{}", n / 200, n % 200))
        .collect();
    let count = ips.len();
    let server = NameServer::start(move |question: &Question| match question.over {
        Over::Udp => Reaction::Truncated,
        Over::Tcp => {
            let ips: Vec<_> = ips.iter().map(String::as_str).collect();
            addresses(question, &ips)
        }
    })
    .await;
    let files = Files::of(&[&server]);
    assert_eq!(look_up(&files.resolver(), "api").await.len(), count);
    assert!(server.was_asked_over(Over::Udp) && server.was_asked_over(Over::Tcp));
}

/// Answers requests with its own address.
async fn replica(ip: &str, port: u16) -> u16 {
    let listener = TcpListener::bind((ip, port)).await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let Some((_, mut stream)) = wire::head(stream).await else {
                continue;
            };
            let ip = address.ip().to_string();
            let length = ip.len();
            let answer = format!(
                "HTTP/1.1 200 OK\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{ip}"
            );
            stream.write_all(answer.as_bytes()).await.ok();
        }
    });
    address.port()
}

/// An HTTP client with this resolver.
fn client(files: &Files) -> reqwest::Client {
    reqwest::Client::builder()
        .no_proxy()
        .dns_resolver(files.resolver())
        .tls_backend_preconfigured(net::trust::client_config(None, false).unwrap())
        .build()
        .unwrap()
}

#[tokio::test]
async fn connections_are_balanced_over_replicas() {
    let port = replica("127.0.0.1", 0).await;
    for ip in ["127.0.0.2", "127.0.0.3"] {
        replica(ip, port).await;
    }
    let server = always(&["127.0.0.1", "127.0.0.2", "127.0.0.3"]).await;
    let files = Files::of(&[&server]);
    let client = client(&files);
    let mut answered = Vec::new();
    for _ in 0..9 {
        let answer = client
            .get(format!("http://api:{port}/"))
            .send()
            .await
            .unwrap();
        answered.push(answer.text().await.unwrap());
    }
    for ip in ["127.0.0.1", "127.0.0.2", "127.0.0.3"] {
        assert_eq!(
            answered.iter().filter(|answer| *answer == ip).count(),
            3,
            "{answered:?}"
        );
    }
}

#[tokio::test]
async fn a_client_reports_the_reason_of_a_failed_lookup() {
    let server = scripted(UNKNOWN).await;
    let files = Files::of(&[&server]);
    let client = client(&files);
    let error = client.get("http://nowhere/").send().await.unwrap_err();
    let chain = model::error::chain(&error);
    let wanted = format!("the host nowhere is not known: {}", server.address);
    assert!(chain.contains(&wanted), "{chain}");
}
