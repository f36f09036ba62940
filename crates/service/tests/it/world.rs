//! A server, and clients with addresses of their own.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::time::Duration;

use axum::Router;
use service::CancellationToken;
use service::server::{self, HttpSettings, Listen, Running};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpSocket, TcpStream};

/// Long enough for a busy machine; a test that reaches it has failed.
pub(crate) const DEADLINE: Duration = Duration::from_mins(1);

/// A running server; ends with the test.
pub(crate) struct Server {
    pub(crate) address: SocketAddr,
    pub(crate) running: Running,
    shutdown: CancellationToken,
}

impl Drop for Server {
    fn drop(&mut self) {
        self.shutdown.cancel();
    }
}

/// `router` on a loopback address, within the bounds of `http`.
pub(crate) async fn server(router: Router, http: HttpSettings) -> Server {
    let shutdown = CancellationToken::new();
    let listen = Listen::new("127.0.0.1:0".parse().unwrap(), None).with(&http);
    let running = server::start(vec![listen], router, shutdown.clone()).await;
    let running = running.unwrap();
    Server {
        address: running.address(),
        running,
        shutdown,
    }
}

/// The address of a client.
pub(crate) fn client(last: u8) -> IpAddr {
    Ipv4Addr::new(127, 0, 1, last).into()
}

impl Server {
    /// A connection from `client`.
    pub(crate) async fn connect(&self, client: IpAddr) -> TcpStream {
        let socket = TcpSocket::new_v4().unwrap();
        socket.bind(SocketAddr::new(client, 0)).unwrap();
        socket.connect(self.address).await.unwrap()
    }

    /// Sends `request` from `client` and reads until the server closes; empty when it closes without a word.
    pub(crate) async fn ask(&self, client: IpAddr, request: &str) -> String {
        let mut stream = self.connect(client).await;
        // The server may close while this is on its way.
        stream.write_all(request.as_bytes()).await.ok();
        let mut answer = Vec::new();
        soon(stream.read_to_end(&mut answer)).await.ok();
        String::from_utf8(answer).unwrap()
    }

    /// The status of a GET of `path` with more lines of the head.
    pub(crate) async fn get(&self, client: IpAddr, path: &str, lines: &str) -> String {
        let request =
            format!("GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n{lines}\r\n");
        status(&self.ask(client, &request).await).to_owned()
    }
}

/// The status of an answer.
pub(crate) fn status(answer: &str) -> &str {
    answer.split(' ').nth(1).unwrap_or_default()
}

/// Waits until `condition` holds.
pub(crate) async fn eventually(mut condition: impl AsyncFnMut() -> bool) {
    soon(async {
        while !condition().await {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    })
    .await;
}

/// The output of `future`, before the deadline of a test.
pub(crate) async fn soon<T>(future: impl Future<Output = T>) -> T {
    tokio::time::timeout(DEADLINE, future).await.unwrap()
}
