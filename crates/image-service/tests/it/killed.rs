//! The real program, killed again and again while it fetches the live image of a release.

use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use oci::media_type;
use reqwest::Client;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

use crate::machine_os::{IMAGE, Registry, live_image, partial, tar};
use crate::program::Program;
use crate::world::{Api, World, own_file};

/// Parts of the image after which the program is killed.
const POINTS: usize = 20;
/// Bytes of one write of the program: a killed one loses no more.
const PIECE: u64 = 1 << 20;
/// Bytes that the relay passes on at a time, and its pause after them: less than 128 MiB a second.
const RELAYED: usize = 256 << 10;
const PAUSE: Duration = Duration::from_millis(2);
const POLL: Duration = Duration::from_millis(2);
/// Enough for a slow machine.
const DEADLINE: Duration = Duration::from_mins(2);

impl Program {
    /// Bytes that it has caused to be written to disks.
    fn written(&self) -> u64 {
        let io = fs::read_to_string(format!("/proc/{}/io", self.child.id())).unwrap();
        let line = io
            .lines()
            .find_map(|line| line.strip_prefix("write_bytes: "));
        line.unwrap().parse().unwrap()
    }

    async fn image(&self, client: &Client) -> Option<Vec<u8>> {
        let url = format!("{}{}", self.url, World::full_iso());
        let response = client.get(url).send().await.ok()?;
        let is_served = response.status() == 200;
        let body = response.bytes().await.ok()?;
        is_served.then(|| body.to_vec())
    }
}

/// The program with the image of a registry without TLS.
async fn started(data: &Path, url: &str) -> Program {
    let set = |command: &mut Command| {
        command.env("INSECURE_SKIP_VERIFY", "true");
    };
    Program::spawn(data, &Api::default(), url, set).await
}

/// A slow relay to a registry: its image of a release.
async fn slow(registry: &Registry) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let image = registry.image.to_string();
    let (server, path) = image.split_once('/').unwrap();
    let (server, url) = (server.to_owned(), format!("oci://{address}/{path}"));
    tokio::spawn(async move {
        while let Ok((client, _)) = listener.accept().await {
            let server = TcpStream::connect(&server).await.unwrap();
            let (mut from_client, mut to_client) = client.into_split();
            let (mut from_server, mut to_server) = server.into_split();
            tokio::spawn(async move { tokio::io::copy(&mut from_client, &mut to_server).await });
            tokio::spawn(async move {
                let mut chunk = vec![0; RELAYED];
                while let Ok(length @ 1..) = from_server.read(&mut chunk).await {
                    if to_client.write_all(&chunk[..length]).await.is_err() {
                        break;
                    }
                    tokio::time::sleep(PAUSE).await;
                }
            });
        }
    });
    url
}

#[tokio::test(flavor = "multi_thread")]
async fn a_killed_program_continues_and_serves_nothing_wrong() {
    let registry = Registry::start().await;
    let (image, _) = live_image();
    let layer = tar(&[(IMAGE, &image)]);
    registry.push(&[(media_type::OCI_LAYER, layer)]).await;
    let url = slow(&registry).await;
    let data = tempfile::tempdir().unwrap();
    let client = service::http_client(None, false).unwrap();
    let (partial, own) = (partial(data.path()), own_file(data.path()));
    let (mut written, mut inode, mut killed) = (0, None, 0);
    for point in 1..=POINTS {
        // The last one is far from the end.
        let least = (image.len() * point / (POINTS + 4)) as u64;
        let program = started(data.path(), &url).await;
        let deadline = Instant::now() + DEADLINE;
        while fs::metadata(&partial).map_or(0, |it| it.len()) < least && !own.exists() {
            assert!(Instant::now() < deadline, "nothing is written at {point}");
            tokio::time::sleep(POLL).await;
        }
        assert_eq!(program.image(&client).await, None, "{point}");
        written += program.written();
        drop(program);
        assert!(!own.exists(), "{point}");
        let found = fs::metadata(&partial).unwrap().ino();
        assert_eq!(*inode.get_or_insert(found), found, "{point}");
        killed += 1;
    }
    assert_eq!(killed, POINTS);
    let program = started(data.path(), &url).await;
    let deadline = Instant::now() + DEADLINE;
    let served = loop {
        if let Some(served) = program.image(&client).await {
            break served;
        }
        assert!(Instant::now() < deadline, "the image is not served");
        tokio::time::sleep(POLL).await;
    };
    assert_eq!(served.len(), image.len());
    assert!(fs::read(&own).unwrap() == image);
    assert_eq!(fs::metadata(&own).unwrap().ino(), inode.unwrap());
    written += program.written();
    let lost = POINTS as u64 * PIECE;
    assert!(
        written < image.len() as u64 + lost,
        "{written} bytes written"
    );
}
