//! Hosts that boot together over a slow network: the real program, its memory seen from outside.

use std::fs;
use std::net::{IpAddr, Ipv4Addr};
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use futures_util::future::join_all;
use reqwest::{Client, ClientBuilder, Response, Version};
use testkit::iso::LiveImageOptions;
use uuid::Uuid;

use crate::program::Program;
use crate::world::{Api, ID, World, own_file};

/// As many as `MAX_CONCURRENT_REQUESTS` admits.
const READERS: usize = 400;
/// Addresses of the readers, each of which has its whole share of streams.
const ADDRESSES: [IpAddr; 2] = [
    IpAddr::V4(Ipv4Addr::LOCALHOST),
    IpAddr::V4(Ipv4Addr::new(127, 0, 0, 2)),
];
/// Pieces that each reads while all others wait.
const ROUNDS: usize = 4;
/// Memory of all readers over plain connections. Units: KiB.
const PLAIN_KIB: u64 = 64 * 1024;
/// Ignition of an infra-env with many manifests, which is compressed to half.
const IGNITION_BYTES: usize = 200_000;
/// Memory of all readers over TLS, or of different images. Units: KiB. Below the container's 256 MiB, minus those of the program and the kernel.
const ENCRYPTED_KIB: u64 = 128 * 1024;
/// Enough for a slow machine.
const DEADLINE: Duration = Duration::from_mins(2);

impl Program {
    async fn start(data: &Path, client: &Client, tls: Option<(&Path, &Path)>) -> Self {
        let ignition = br#"{"ignition":{"version":"3.1.0"}}"#;
        Self::start_with(data, client, tls, ignition.to_vec()).await
    }

    async fn start_with(
        data: &Path,
        client: &Client,
        tls: Option<(&Path, &Path)>,
        ignition: Vec<u8>,
    ) -> Self {
        let api = Api::default();
        api.set(|answers| answers.ignition = ignition);
        let set = |command: &mut Command| {
            command.env("LIVE_ISO", data.join("livecd.iso"));
            if let Some((cert, key)) = tls {
                command.env("HTTPS_CERT_FILE", cert);
                command.env("HTTPS_KEY_FILE", key);
            }
        };
        let mut program = Self::spawn(data, &api, "", set).await;
        if tls.is_some() {
            program.url = program.url.replacen("http", "https", 1);
        }
        let (health, deadline) = (format!("{}/health", program.url), Instant::now() + DEADLINE);
        while !client
            .get(&health)
            .send()
            .await
            .is_ok_and(|it| it.status() == 200)
        {
            assert!(Instant::now() < deadline, "the program is not ready");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        program
    }

    /// Units: KiB.
    fn memory(&self, name: &str) -> u64 {
        let status = fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix(name));
        let number = line.unwrap().split_whitespace().next().unwrap();
        number.parse().unwrap()
    }
}

/// How much the program's memory grew while `READERS` clients read an image piece by piece, none of them to its end.
async fn growth(program: &Program, clients: &[Client]) -> u64 {
    let url = format!("{}{}", program.url, World::full_iso());
    growth_of(program, clients, &vec![url; READERS]).await
}

/// [`growth`] with an image for each reader.
async fn growth_of(program: &Program, clients: &[Client], urls: &[String]) -> u64 {
    let before = program.memory("VmRSS:");
    let ask = async |(client, url): (&Client, &String)| loop {
        let response = client.get(url).send().await.unwrap();
        // Of many images that are composed at once, some have to be asked for again.
        if response.status() != 503 {
            return response;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    };
    let mut readers: Vec<Response> = join_all(clients.iter().zip(urls).map(ask)).await;
    for _ in 0..ROUNDS {
        let read = async |reader: &mut Response| {
            let piece = reader.chunk().await.unwrap();
            assert!(piece.is_some_and(|piece| !piece.is_empty()));
        };
        join_all(readers.iter_mut().map(read)).await;
    }
    // Streams hold their permit until the last byte: it is in the kernel, or in the program.
    let one_more = clients[0].get(&urls[0]).send().await.unwrap();
    assert_eq!(one_more.status(), 503, "an address has its share");
    assert!(readers.iter().all(|reader| reader.status() == 200));
    program.memory("VmHWM:").saturating_sub(before)
}

fn image(data: &Path) {
    testkit::iso::write(&own_file(data), &LiveImageOptions::default()).unwrap();
}

/// A client that needs no certificates.
fn plain() -> ClientBuilder {
    service::tls::install_provider();
    Client::builder().tls_certs_only([])
}

/// A client of each address, by turns.
fn of_each_address(builder: impl Fn() -> ClientBuilder) -> Vec<Client> {
    let clients = ADDRESSES.map(|it| builder().local_address(it).build().unwrap());
    clients.into_iter().cycle().take(READERS).collect()
}

/// [`of_each_address`] with a client for each reader.
fn each_its_own(builder: impl Fn() -> ClientBuilder) -> Vec<Client> {
    let addresses = ADDRESSES.into_iter().cycle().take(READERS);
    addresses
        .map(|it| builder().local_address(it).build().unwrap())
        .collect()
}

/// Both ends have a socket for each reader, and many machines begin with a limit of 1024.
fn raise_open_files() {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let maximum = getrlimit(Resource::Nofile).maximum;
    let current = maximum;
    setrlimit(Resource::Nofile, Rlimit { current, maximum }).unwrap();
}

// limit: unsent bytes
#[tokio::test(flavor = "multi_thread")]
async fn readers_of_plain_connections_cost_little_memory() {
    raise_open_files();
    let data = tempfile::tempdir().unwrap();
    image(data.path());
    let clients = of_each_address(plain);
    let program = Program::start(data.path(), &clients[0], None).await;
    let grown = growth(&program, &clients).await;
    assert!(grown <= PLAIN_KIB, "{grown} KiB for {READERS} readers");
}

#[tokio::test(flavor = "multi_thread")]
async fn readers_of_different_images_fit_into_the_container() {
    raise_open_files();
    let data = tempfile::tempdir().unwrap();
    image(data.path());
    let clients = of_each_address(plain);
    let text: String = (0..IGNITION_BYTES / 32)
        .map(|_| Uuid::new_v4().simple().to_string())
        .collect();
    let ignition =
        serde_json::json!({ "ignition": { "version": "3.1.0" }, "id": ID, "text": text });
    let ignition = ignition.to_string().into_bytes();
    let program = Program::start_with(data.path(), &clients[0], None, ignition).await;
    let urls: Vec<_> = (0..READERS)
        .map(|number| {
            let id = Uuid::from_u128(number as u128);
            let path = World::full_iso().replace(ID, &id.to_string());
            format!("{}{path}", program.url)
        })
        .collect();
    let grown = growth_of(&program, &clients, &urls).await;
    assert!(grown <= ENCRYPTED_KIB, "{grown} KiB for {READERS} images");
}

#[tokio::test(flavor = "multi_thread")]
async fn readers_of_encrypted_connections_fit_into_the_container() {
    raise_open_files();
    service::tls::install_provider();
    let data = tempfile::tempdir().unwrap();
    image(data.path());
    let made = rcgen::generate_simple_self_signed(vec!["127.0.0.1".to_owned()]).unwrap();
    let [cert, key] = ["cert.pem", "key.pem"].map(|name| data.path().join(name));
    fs::write(&cert, made.cert.pem()).unwrap();
    fs::write(&key, made.signing_key.serialize_pem()).unwrap();
    let trusted = reqwest::Certificate::from_pem(made.cert.pem().as_bytes()).unwrap();
    let builder = || Client::builder().tls_certs_only([trusted.clone()]);
    let client = builder().build().unwrap();
    let program = Program::start(data.path(), &client, Some((&cert, &key))).await;
    // With HTTP/1.1 first: a connection for each reader.
    let clients = each_its_own(|| builder().http1_only());
    let grown = growth(&program, &clients).await;
    assert!(grown <= ENCRYPTED_KIB, "{grown} KiB for {READERS} readers");
    drop(clients);

    // The same bytes whichever way they take.
    let old = builder().http1_only().build().unwrap();
    let (one, other) = (bytes(&program, &old).await, bytes(&program, &client).await);
    assert_ne!(one.0, other.0, "both versions of HTTP are spoken");
    assert!(
        one.1 == other.1,
        "{} and {} bytes",
        one.1.len(),
        other.1.len()
    );
}

/// A whole file and parts of an image.
async fn bytes(program: &Program, client: &Client) -> (Version, Vec<u8>) {
    let kernel = format!("{}/boot-artifacts/kernel?version=4.18", program.url);
    let kernel = client.get(&kernel).send().await.unwrap();
    let version = kernel.version();
    let mut bytes = kernel.bytes().await.unwrap().to_vec();
    let image = format!("{}{}", program.url, World::full_iso());
    let parts = client
        .get(&image)
        .header("range", "bytes=30000-3000000,5000000-9000000");
    let parts = parts.send().await.unwrap();
    assert_eq!(parts.status(), 206);
    bytes.extend(parts.bytes().await.unwrap());
    (version, bytes)
}
