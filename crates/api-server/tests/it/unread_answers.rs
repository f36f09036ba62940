//! Clients that ask for long answers and read none of them: the memory of the server process, seen from outside.

use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use reqwest::Client;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use serde_json::{Value, json};
use tokio::io::AsyncWriteExt as _;
use tokio::net::{TcpSocket, TcpStream};

use crate::harness::{BASE, Server};
use crate::process::Process;

/// Clusters, each with a text of that length: their listing is as long as that of a thousand clusters.
const CLUSTERS: usize = 40;
/// Units: bytes.
const TEXT_BYTES: usize = 200_000;
/// Connections of a client that does not read.
const UNREAD: usize = 300;
/// Its address: not that of the client that reads.
const GREEDY: Ipv4Addr = Ipv4Addr::new(127, 0, 0, 2);
/// Memory of the server with it, over that of the idle one. Units: KiB.
const GROWTH_KIB: u64 = 64 * 1024;
/// Header line of a client that takes compressed answers.
const GZIP: &str = "Accept-Encoding: gzip\r\n";
/// Enough for a slow machine.
const DEADLINE: Duration = Duration::from_mins(2);

/// A server process with long listings of clusters and infra-envs.
struct LongListing {
    process: Process,
    client: Client,
    clusters: Vec<String>,
}

impl LongListing {
    async fn start(server: &mut Server) -> Self {
        let mut clusters = Vec::new();
        for _ in 0..CLUSTERS {
            clusters.push(server.cluster(json!({})).await);
            long_infra_env(server).await;
        }
        server.stop().await;
        let client = service::http_client(None, false).unwrap();
        let process = Process::start(&server.database, server.work_dir(), &[]);
        let ready = format!("{}/ready", process.url);
        let is_ready = async || match client.get(&ready).send().await {
            Ok(answer) if answer.status() == 200 => Ok(()),
            Ok(answer) => Err(answer.status().to_string()),
            Err(error) => Err(error.to_string()),
        };
        server.until("the process is ready", is_ready).await;
        let listing = Self {
            process,
            client,
            clusters,
        };
        for number in 0..CLUSTERS {
            listing.change(number, "first").await;
        }
        listing
    }

    fn url(&self, path: &str) -> String {
        format!("{}{BASE}{path}", self.process.url)
    }

    /// Gives a cluster another long text.
    async fn change(&self, number: usize, text: &str) {
        let key = format!("{number}{text}").repeat(TEXT_BYTES / text.len());
        let overrides = json!({ "sshKey": key }).to_string();
        let path = format!("/v2/clusters/{}/install-config", self.clusters[number]);
        let request = self.client.patch(self.url(&path)).json(&overrides);
        let answer = request.send().await.unwrap();
        assert_eq!(answer.status(), 201, "{:?}", answer.text().await);
    }

    /// Reads the listings; the server's memory before. Units: KiB.
    async fn read(&self) -> u64 {
        let before = self.process.memory_kib();
        self.read_list("/v2/infra-envs").await;
        let length = self.read_list("/v2/clusters").await;
        assert!(length.is_some(), "it is one for all");
        before
    }

    /// Reads a listing; the length that its head had.
    async fn read_list(&self, path: &str) -> Option<u64> {
        let request = self.client.get(self.url(path));
        let answer = request.send().await.unwrap();
        assert_eq!(answer.status(), 200);
        let length = answer.content_length();
        let body = answer.bytes().await.unwrap();
        assert!(length.is_none_or(|length| length == body.len() as u64));
        let listed: Vec<Value> = serde_json::from_slice(&body).unwrap();
        assert_eq!(listed.len(), CLUSTERS);
        assert!(body.len() > CLUSTERS * TEXT_BYTES);
        length
    }

    /// A connection whose client reads nothing of a listing, once that has begun.
    async fn unread(&self, path: &str, lines: &str) -> TcpStream {
        let address = self.process.url.strip_prefix("http://").unwrap();
        let socket = TcpSocket::new_v4().unwrap();
        socket.bind(SocketAddr::from((GREEDY, 0))).unwrap();
        // The window of a distant client: the rest of the answer waits in the server.
        socket.set_recv_buffer_size(4096).unwrap();
        let mut stream = socket.connect(address.parse().unwrap()).await.unwrap();
        let head = format!("GET {BASE}{path} HTTP/1.1\r\nHost: localhost\r\n{lines}\r\n");
        stream.write_all(head.as_bytes()).await.unwrap();
        let begun = tokio::time::timeout(DEADLINE, stream.readable()).await;
        begun.unwrap().unwrap();
        stream
    }

    /// Asserts that another client is served, and that the memory grew by no more than the bound.
    #[expect(
        clippy::print_stdout,
        reason = "the figures of a run, shown with --nocapture"
    )]
    async fn assert_small(&self, answers: &str, idle: u64) {
        let now = self.read().await;
        println!("{answers}: {idle} KiB idle, {now} KiB now");
        assert!(
            now <= idle + GROWTH_KIB,
            "{answers}: {idle} KiB idle, {now} KiB now"
        );
    }
}

/// An infra-env with a long text.
async fn long_infra_env(server: &Server) {
    let id = server.infra_env(None).await;
    let source = format!("data:,{}", "a".repeat(TEXT_BYTES));
    let file = json!({ "path": "/etc/long", "contents": { "source": source } });
    let config = json!({ "ignition": { "version": "3.1.0" }, "storage": { "files": [file] } });
    let change = json!({ "ignition_config_override": config.to_string() });
    let answer = server.patch(&format!("/v2/infra-envs/{id}"), &change).await;
    assert_eq!(answer.status, 201, "{answer:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn clients_that_read_nothing_cost_little_memory() {
    // Both ends have a socket for each client, and many machines begin with a limit of 1024.
    let maximum = getrlimit(Resource::Nofile).maximum;
    let current = maximum;
    setrlimit(Resource::Nofile, Rlimit { current, maximum }).unwrap();
    let mut server = Server::start().await;
    let listing = LongListing::start(&mut server).await;
    listing.read().await;
    let idle = listing.process.memory_kib();
    for (answers, path, lines) in [
        ("equal", "/v2/clusters", ""),
        ("compressed", "/v2/clusters", GZIP),
        ("paged", "/v2/infra-envs", ""),
    ] {
        let mut unread = Vec::new();
        for _ in 0..UNREAD {
            unread.push(listing.unread(path, lines).await);
        }
        listing.assert_small(answers, idle).await;
    }
    let mut unread = Vec::new();
    for number in 0..CLUSTERS {
        listing.change(number, "second").await;
        unread.push(listing.unread("/v2/clusters", "").await);
    }
    listing.assert_small("different", idle).await;
}
