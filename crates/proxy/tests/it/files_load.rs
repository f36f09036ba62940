//! The static files under load: huge folders, slow clients, files that shrink.

use std::fs::{self, File};

use http::{Method, StatusCode};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpSocket, TcpStream};

use crate::files::FilesWorld;
use crate::world::{eventually, soon};

/// Entries that are sorted.
const SORTED: usize = 50_000;
/// Clients that read nothing.
const SLOW_CLIENTS: usize = 200;

fn fill(world: &FilesWorld, folder: &str, names: std::ops::Range<usize>) {
    fs::create_dir_all(world.path(folder)).unwrap();
    for number in names {
        File::create(world.path(&format!("{folder}/{number:06}"))).unwrap();
    }
}

fn rows(page: &str) -> Vec<&str> {
    let rows = page
        .lines()
        .filter_map(|line| line.strip_prefix("<tr><td><a href=\""));
    rows.map(|row| row.split('"').next().unwrap())
        .skip(1)
        .collect()
}

// limit: sorted listing
#[tokio::test]
async fn a_huge_folder_is_streamed_whole() {
    let world = FilesWorld::start().await;
    fill(&world, "huge", 0..SORTED);
    let page = world.get("/huge/").await.text().await.unwrap();
    let sorted = rows(&page);
    assert_eq!(sorted.len(), SORTED);
    assert!(sorted.is_sorted());
    assert!(!page.contains("Too many entries"));
    assert!(page.contains("0 folders, 50000 files."));
    fill(&world, "huge", SORTED..SORTED + 1);
    let page = world.get("/huge/").await.text().await.unwrap();
    let mut unsorted = rows(&page);
    assert!(page.contains("Too many entries to sort"));
    assert_eq!(unsorted.len(), SORTED + 1);
    unsorted.sort_unstable();
    unsorted.dedup();
    assert_eq!(unsorted.len(), SORTED + 1);
    assert!(page.ends_with("</html>\n"));
}

// limit: large listings
// share: large listings
#[tokio::test]
async fn listings_beyond_the_bound_are_streamed() {
    let world = FilesWorld::start().await;
    fill(&world, "large", 0..20_000);
    fill(&world, "small", 0..900);
    let mut slow = Vec::new();
    let ask = async |client: u8| {
        let socket = TcpSocket::new_v4().unwrap();
        socket.bind(([127, 0, 1, client], 0).into()).unwrap();
        let mut stream = socket.connect(world.address).await.unwrap();
        let request = b"GET /large/ HTTP/1.1\r\nHost: localhost\r\n\r\n";
        stream.write_all(request).await.unwrap();
        let mut first = vec![0; 4096];
        soon(stream.read_exact(&mut first)).await.unwrap();
        let is_sorted = !String::from_utf8_lossy(&first).contains("Too many entries");
        (stream, is_sorted)
    };
    for number in 0..8 {
        let (stream, is_sorted) = ask(number / 2).await;
        assert!(is_sorted);
        slow.push(stream);
        if number == 1 {
            assert!(!ask(0).await.1, "one more of a client");
        }
    }
    assert!(!ask(4).await.1, "one more");
    let small = world.get("/small/").await.text().await.unwrap();
    assert!(
        !small.contains("Too many entries"),
        "small ones are sorted at any time"
    );
    slow.clear();
    eventually(async || ask(0).await.1).await;
}

#[tokio::test]
async fn slow_clients_do_not_delay_others() {
    let world = FilesWorld::start().await;
    world.write("long.img", vec![7; 8 << 20]);
    world.write("short.txt", "short");
    fill(&world, "large", 0..20_000);
    let mut slow = Vec::new();
    for number in 0..SLOW_CLIENTS {
        let mut stream = TcpStream::connect(world.address).await.unwrap();
        let path = if number % 2 == 0 {
            "/long.img"
        } else {
            "/large/"
        };
        let request = format!("GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n");
        stream.write_all(request.as_bytes()).await.unwrap();
        slow.push(stream);
    }
    for _ in 0..20 {
        let short = world.get("/short.txt").await;
        assert_eq!(soon(short.text()).await.unwrap(), "short");
        let sum = world.get("/long.img.sha256").await;
        assert_eq!(sum.status(), StatusCode::OK);
    }
}

#[tokio::test]
async fn a_file_that_shrinks_ends_its_response_and_nothing_else() {
    let world = FilesWorld::start().await;
    let length = 64 << 20;
    world.write("disk.img", "");
    let file = File::options()
        .write(true)
        .open(world.path("disk.img"))
        .unwrap();
    file.set_len(length).unwrap();
    let mut stream = TcpStream::connect(world.address).await.unwrap();
    let request = b"GET /disk.img HTTP/1.1\r\nHost: localhost\r\n\r\n";
    stream.write_all(request).await.unwrap();
    let mut first = vec![0; 1 << 16];
    soon(stream.read_exact(&mut first)).await.unwrap();
    file.set_len(1 << 10).unwrap();
    let mut rest = Vec::new();
    // Closed, by a reset or not, before all bytes came.
    soon(stream.read_to_end(&mut rest)).await.ok();
    assert!((rest.len() as u64) < length - first.len() as u64);
    let after = world.ask(Method::GET, "/disk.img", &[]).await;
    assert_eq!(after.bytes().await.unwrap().len(), 1 << 10);
}
