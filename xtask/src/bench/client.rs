//! An HTTP client for loads that no tool makes: one keep-alive connection, minimal work per request.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{Ipv4Addr, TcpStream};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail, ensure};
use serde_json::Value;

/// Bytes of a body that are read at once, and forgotten.
const DRAIN_BUFFER: usize = 256 << 10;
/// A server that takes longer hangs.
const TIMEOUT: Duration = Duration::from_mins(2);

/// A connection to a server on this machine.
#[derive(Debug)]
pub(super) struct LoadClient {
    stream: BufReader<TcpStream>,
}

/// An HTTP response.
#[derive(Debug)]
pub(super) struct HttpResponse {
    pub(super) status: u16,
    headers: Vec<String>,
    pub(super) body: Vec<u8>,
}

impl HttpResponse {
    /// The value of a header, whose name is in lower case.
    pub(super) fn header(&self, expected: &str) -> Option<&str> {
        self.headers.iter().find_map(|line| {
            let (name, value) = line.split_once(':')?;
            name.eq_ignore_ascii_case(expected).then(|| value.trim())
        })
    }

    /// Path and query of the Location header.
    pub(super) fn location(&self) -> Result<String> {
        let location = self.header("location");
        Ok(path_of(location.context("the answer has no Location")?).to_owned())
    }
}

/// Path and query of a URL or a path.
pub(super) fn path_of(url: &str) -> &str {
    let path = url
        .split_once("://")
        .map(|(_, rest)| &rest[rest.find('/').unwrap_or(rest.len())..]);
    path.unwrap_or(url)
}

impl LoadClient {
    pub(super) fn connect(port: u16) -> Result<Self> {
        let stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port))
            .with_context(|| format!("connecting to port {port}"))?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(TIMEOUT))?;
        stream.set_write_timeout(Some(TIMEOUT))?;
        Ok(Self {
            stream: BufReader::new(stream),
        })
    }

    /// Sends a request whose response must have the status `expected`.
    pub(super) fn ask(
        &mut self,
        method: &str,
        path: &str,
        headers: &[&str],
        body: &[u8],
        expected: u16,
    ) -> Result<HttpResponse> {
        let answer = self
            .send(method, path, headers, body)
            .with_context(|| format!("{method} {path}"))?;
        ensure!(
            answer.status == expected,
            "{method} {path} answers {} {}",
            answer.status,
            String::from_utf8_lossy(&answer.body).trim()
        );
        Ok(answer)
    }

    /// Reads the body of a GET without keeping it; returns its length.
    pub(super) fn drain(&mut self, path: &str) -> Result<u64> {
        let request = format!("GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n");
        self.stream.get_mut().write_all(request.as_bytes())?;
        let status = self.line()?;
        ensure!(status.contains(" 200"), "GET {path} answers {status}");
        let mut length = None;
        loop {
            let line = self.line()?;
            if line.is_empty() {
                break;
            }
            if let Some((name, value)) = line.split_once(':')
                && name.eq_ignore_ascii_case("content-length")
            {
                length = Some(value.trim().parse::<u64>()?);
            }
        }
        let length = length.context("the answer has no length")?;
        let mut left = length;
        let buffered = self.stream.buffer().len() as u64;
        let first = buffered.min(left);
        self.stream.consume(usize::try_from(first)?);
        left -= first;
        let mut buffer = vec![0; DRAIN_BUFFER];
        while left > 0 {
            let room = usize::try_from(left)
                .unwrap_or(DRAIN_BUFFER)
                .min(DRAIN_BUFFER);
            let read = self.stream.get_mut().read(&mut buffer[..room])?;
            ensure!(read > 0, "the answer ends early");
            left -= read as u64;
        }
        Ok(length)
    }

    fn send(
        &mut self,
        method: &str,
        path: &str,
        headers: &[&str],
        body: &[u8],
    ) -> Result<HttpResponse> {
        let mut request = format!("{method} {path} HTTP/1.1\r\nHost: 127.0.0.1\r\n");
        for header in headers {
            request.push_str(header);
            request.push_str("\r\n");
        }
        let mut request = request.into_bytes();
        if !matches!(method, "GET" | "HEAD") {
            write!(request, "Content-Length: {}\r\n", body.len())?;
        }
        request.extend_from_slice(b"\r\n");
        request.extend_from_slice(body);
        self.stream.get_mut().write_all(&request)?;
        self.receive(method == "HEAD")
    }

    fn receive(&mut self, is_head: bool) -> Result<HttpResponse> {
        let status = self.line()?;
        let status = status.split(' ').nth(1).and_then(|text| text.parse().ok());
        let mut answer = HttpResponse {
            status: status.context("the answer does not begin with a status")?,
            headers: Vec::new(),
            body: Vec::new(),
        };
        loop {
            let line = self.line()?;
            if line.is_empty() {
                break;
            }
            answer.headers.push(line);
        }
        if is_head || matches!(answer.status, 204 | 304) {
            return Ok(answer);
        }
        if let Some(length) = answer.header("content-length") {
            let length = length.parse()?;
            self.take(length, &mut answer.body)?;
        } else if answer.header("transfer-encoding") == Some("chunked") {
            while let length @ 1.. = u64::from_str_radix(&self.line()?, 16)? {
                self.take(length, &mut answer.body)?;
                self.line()?;
            }
            self.line()?;
        } else {
            bail!("the answer has no length");
        }
        Ok(answer)
    }

    fn take(&mut self, length: u64, body: &mut Vec<u8>) -> Result<()> {
        let read = (&mut self.stream).take(length).read_to_end(body)?;
        ensure!(read as u64 == length, "the answer ends early");
        Ok(())
    }

    fn line(&mut self) -> Result<String> {
        let mut line = String::new();
        self.stream.read_line(&mut line)?;
        let line = line
            .strip_suffix("\r\n")
            .context("the server closed the connection")?;
        Ok(line.to_owned())
    }
}

/// The data of a stream of server-sent events, parsed.
pub(super) fn events(port: u16, path: &str) -> Result<impl Iterator<Item = Result<Value>> + use<>> {
    let mut client = LoadClient::connect(port)?;
    // HTTP/1.0: events are not chunked.
    let request = format!("GET {path} HTTP/1.0\r\nHost: 127.0.0.1\r\n\r\n");
    client.stream.get_mut().write_all(request.as_bytes())?;
    let status = client.line()?;
    ensure!(status.contains(" 200 "), "{path} answers {status}");
    let lines = client.stream.lines();
    Ok(lines.filter_map(|line| match line {
        Ok(line) => {
            let data = line.strip_prefix("data: ")?;
            Some(serde_json::from_str(data).context("an event is not JSON"))
        }
        Err(error) => Some(Err(error.into())),
    }))
}

/// Repeats `work` on `clients` connections for `duration`; returns the number of repetitions and the seconds.
/// `work` gets the number of its connection and of the repetition.
pub(super) fn load<F>(port: u16, clients: u32, duration: Duration, work: F) -> Result<(u32, f64)>
where
    F: Fn(&mut LoadClient, u32, u32) -> Result<()> + Sync,
{
    let start = Instant::now();
    let one = |number| {
        let mut client = LoadClient::connect(port)?;
        let mut turns = 0;
        while start.elapsed() < duration {
            work(&mut client, number, turns)?;
            turns += 1;
        }
        anyhow::Ok(turns)
    };
    let turns = std::thread::scope(|scope| {
        let one = &one;
        let threads: Vec<_> = (0..clients)
            .map(|number| scope.spawn(move || one(number)))
            .collect();
        threads
            .into_iter()
            .map(|thread| thread.join().unwrap_or_else(|_| bail!("a client panicked")))
            .sum::<Result<u32>>()
    })?;
    Ok((turns, start.elapsed().as_secs_f64()))
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;

    /// A server that sends `answers` on each connection, for any request.
    fn server(answers: &'static str) -> u16 {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let port = listener.local_addr().unwrap().port();
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let mut stream = stream.unwrap();
                stream.write_all(answers.as_bytes()).unwrap();
                // Closing with requests unread would reset the connection before the responses are read.
                stream.shutdown(std::net::Shutdown::Write).unwrap();
                stream.read_to_end(&mut Vec::new()).ok();
            }
        });
        port
    }

    #[test]
    fn responses_of_each_framing_are_read_in_sequence() {
        let port = server(
            "HTTP/1.1 202 Accepted\r\nContent-Length: 2\r\nLocation: http://a:1/v2/x?y=z\r\n\r\nok\
             HTTP/1.1 200 OK\r\nContent-Length: 9000\r\n\r\n\
             HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\nA\r\n0123456789\r\n0\r\n\r\n\
             HTTP/1.1 404 Not Found\r\ncontent-length: 4\r\n\r\ngone",
        );
        let mut client = LoadClient::connect(port).unwrap();
        let answer = client.ask("POST", "/", &[], b"x", 202).unwrap();
        assert_eq!(answer.body, b"ok");
        assert_eq!(answer.location().unwrap(), "/v2/x?y=z");
        assert!(
            client
                .ask("HEAD", "/", &[], b"", 200)
                .unwrap()
                .body
                .is_empty()
        );
        let answer = client.ask("GET", "/", &["A: b"], b"", 200).unwrap();
        assert_eq!(answer.body, b"abc0123456789");
        let error = client.ask("GET", "/", &[], b"", 200).unwrap_err();
        assert_eq!(error.to_string(), "GET / answers 404 gone");
        let error = client.ask("GET", "/", &[], b"", 200).unwrap_err();
        assert!(format!("{error:#}").contains("closed"), "{error:#}");
    }

    #[test]
    fn a_load_counts_and_fails_with_its_work() {
        let port = server("");
        let (turns, _) = load(port, 3, Duration::from_millis(20), |_, _, _| {
            std::thread::sleep(Duration::from_millis(1));
            Ok(())
        })
        .unwrap();
        assert!(turns >= 3, "{turns}");
        let wrong = |client: &mut LoadClient, _, _| client.ask("GET", "/", &[], b"", 200).map(drop);
        assert!(load(port, 2, Duration::from_mins(10), wrong).is_err());
    }
}
