//! Slow clients: they send the start of a request's body, and then nothing.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpSocket, TcpStream};

/// As many connections as an upstream has permits. Units: connections.
const WANTED: usize = 4000;
/// Units: connections of one client address, below its bound.
const PER_CLIENT: usize = 500;
/// Units: file descriptors of everything else in a test. A half-sent body has up to four.
const OTHER_FILES: usize = 1000;

/// As many clients as files can be open, 4000 at most: three in four have announced a short body, the others a long
/// one.
pub(crate) async fn half_sent(address: SocketAddr, path: &str) -> Vec<TcpStream> {
    let count = WANTED.min((raised_file_limit() - OTHER_FILES) / 4);
    let mut streams = Vec::with_capacity(count);
    for number in 0..count {
        let last = u8::try_from(number / PER_CLIENT).unwrap();
        let mut stream = connect(Ipv4Addr::new(127, 0, 2, last).into(), address).await;
        let length = if number % 4 == 0 { 1_000_000 } else { 100 };
        let request = format!(
            "POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Length: {length}\r\n\r\nhalf"
        );
        stream.write_all(request.as_bytes()).await.unwrap();
        streams.push(stream);
    }
    streams
}

/// The answer to a request of `client` with a short body.
pub(crate) async fn post(client: IpAddr, address: SocketAddr, path: &str) -> String {
    let mut stream = connect(client, address).await;
    let request = format!(
        "POST {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Length: 5\r\n\r\nwhole"
    );
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    answer
}

async fn connect(client: IpAddr, address: SocketAddr) -> TcpStream {
    let socket = TcpSocket::new_v4().unwrap();
    socket.bind(SocketAddr::new(client, 0)).unwrap();
    socket.connect(address).await.unwrap()
}

/// Both ends are here, and many machines begin with a limit of 1024.
fn raised_file_limit() -> usize {
    let maximum = getrlimit(Resource::Nofile).maximum;
    let limit = Rlimit {
        current: maximum,
        maximum,
    };
    setrlimit(Resource::Nofile, limit).unwrap();
    usize::try_from(maximum.unwrap_or(u64::MAX)).unwrap()
}
