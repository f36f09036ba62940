//! A line for each request on standard output, in the combined format.
//!
//! Requests only leave their line in memory; a thread writes them. A slow reader of the log
//! loses lines, which are counted and reported; requests never wait for it.

use std::fmt::Write as _;
use std::io::{self, Write};
use std::net::IpAddr;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use axum::http::uri::PathAndQuery;
use axum::http::{Method, Uri, Version};
use metrics::counter;

/// Units: bytes. Lines that wait: some ten thousand.
const WAITING_LIMIT_BYTES: usize = 2 << 20;
/// Units: bytes. Bound of each field that a client sends.
const TEXT_LIMIT_BYTES: usize = 1024;
/// Lines of this time are written together: waking a thread for each would cost more than the lines.
const GATHER: Duration = Duration::from_millis(50);
const DROPPED: &str = "registry_access_log_dropped_total";

/// The lines on their way. The last one that lets go of it waits until they are written.
#[derive(Debug)]
pub(super) struct AccessLog {
    waiting: Arc<Waiting>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Debug, Default)]
struct Waiting {
    state: Mutex<State>,
    has_more: Condvar,
}

#[derive(Debug, Default)]
struct State {
    lines: String,
    /// Lines that had no room.
    dropped: u64,
    /// Units: seconds since 1970. The time of the text `time`.
    second: i64,
    time: String,
    has_ended: bool,
}

/// Fields of a line.
pub(super) struct Line<'a> {
    pub(super) address: Option<IpAddr>,
    pub(super) user: Option<&'a str>,
    pub(super) method: &'a Method,
    pub(super) uri: &'a Uri,
    pub(super) version: Version,
    pub(super) status: u16,
    /// Units: bytes.
    pub(super) bytes: u64,
    pub(super) referer: Option<&'a [u8]>,
    pub(super) agent: Option<&'a [u8]>,
}

impl AccessLog {
    /// Errors: no thread.
    pub(super) fn open() -> io::Result<Self> {
        Self::to(io::stdout())
    }

    fn to(out: impl Write + Send + 'static) -> io::Result<Self> {
        let waiting = Arc::new(Waiting::default());
        let writing = Arc::clone(&waiting);
        let thread = std::thread::Builder::new()
            .name("access-log".to_owned())
            .spawn(move || writing.write_to(out))?;
        Ok(Self {
            waiting,
            thread: Some(thread),
        })
    }

    pub(super) fn write(&self, line: &Line<'_>) {
        let mut state = self.waiting.state();
        if state.lines.len() >= WAITING_LIMIT_BYTES {
            state.dropped += 1;
            return;
        }
        let now = service::clock::now();
        if state.second != now.timestamp() || state.time.is_empty() {
            state.second = now.timestamp();
            state.time = now.format("%d/%b/%Y:%H:%M:%S +0000").to_string();
        }
        let State { lines, time, .. } = &mut *state;
        let was_empty = lines.is_empty();
        line.add_to(lines, time);
        drop(state);
        if was_empty {
            self.waiting.has_more.notify_one();
        }
    }
}

impl Drop for AccessLog {
    fn drop(&mut self) {
        self.waiting.state().has_ended = true;
        self.waiting.has_more.notify_one();
        // Its panic has been printed.
        self.thread.take().map(JoinHandle::join);
    }
}

impl Waiting {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn write_to(&self, mut out: impl Write) {
        let mut lines = String::new();
        loop {
            let is_waiting = |state: &mut State| state.lines.is_empty() && !state.has_ended;
            let state = self.has_more.wait_while(self.state(), is_waiting);
            let state = state.unwrap_or_else(PoisonError::into_inner);
            // Until the time is over, or the end has come.
            let gathered = self
                .has_more
                .wait_timeout_while(state, GATHER, |state| !state.has_ended);
            let (mut state, _) = gathered.unwrap_or_else(PoisonError::into_inner);
            std::mem::swap(&mut lines, &mut state.lines);
            let dropped = std::mem::take(&mut state.dropped);
            let has_ended = state.has_ended;
            drop(state);
            let written = out.write_all(lines.as_bytes()).and_then(|()| out.flush());
            lines.clear();
            if dropped > 0 {
                counter!(DROPPED).increment(dropped);
                tracing::warn!(dropped, "lines of the access log had no room");
            }
            if let Err(error) = written {
                tracing::error!(%error, "the access log cannot be written and ends");
                // Full, and never emptied again: further lines are only counted.
                return;
            }
            if has_ended {
                return;
            }
        }
    }
}

impl Line<'_> {
    /// Source: the combined format of Apache's httpd.
    fn add_to(&self, lines: &mut String, time: &str) {
        match self.address {
            // Of a socket for both families.
            Some(address) => write!(lines, "{}", address.to_canonical()),
            None => write!(lines, "-"),
        }
        .ok();
        *lines += " - ";
        escape(lines, self.user.map(str::as_bytes), true);
        write!(lines, " [{time}] \"{} ", self.method).ok();
        let target = self.uri.path_and_query().map(PathAndQuery::as_str);
        escape(lines, target.map(str::as_bytes), false);
        let (version, status, bytes) = (self.version, self.status, self.bytes);
        write!(lines, " {version:?}\" {status} {bytes} \"").ok();
        escape(lines, self.referer, false);
        *lines += "\" \"";
        escape(lines, self.agent, false);
        *lines += "\"\n";
    }
}

/// Adds a client's text so that it can end neither a field nor a line; a hyphen for nothing.
fn escape(lines: &mut String, text: Option<&[u8]>, is_word: bool) {
    let text = text.unwrap_or_default();
    if text.is_empty() {
        *lines += "-";
    }
    for &byte in text.iter().take(TEXT_LIMIT_BYTES) {
        let is_plain = match byte {
            b'"' | b'\\' => false,
            b' ' => !is_word,
            _ => byte.is_ascii_graphic(),
        };
        if is_plain {
            lines.push(char::from(byte));
        } else {
            write!(lines, "\\x{byte:02x}").ok();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::{Receiver, Sender, channel};

    use super::*;

    /// Holds every write until it may go on.
    struct Slow {
        reported: Sender<Vec<u8>>,
        may_go: Receiver<()>,
    }

    impl Write for Slow {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.reported
                .send(bytes.to_vec())
                .map_err(io::Error::other)?;
            self.may_go.recv().map_err(io::Error::other)?;
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    fn line<'a>(uri: &'a Uri, user: &'a str, agent: &'a [u8]) -> Line<'a> {
        Line {
            address: Some("::ffff:10.0.0.1".parse().unwrap()),
            user: Some(user).filter(|user| !user.is_empty()),
            method: &Method::GET,
            uri,
            version: Version::HTTP_11,
            status: 200,
            bytes: 7,
            referer: None,
            agent: Some(agent),
        }
    }

    #[test]
    fn lines_are_combined_and_cannot_be_broken() {
        let uri: Uri = "http://host/v2/a/tags/list?n=1".parse().unwrap();
        let mut lines = String::new();
        line(&uri, "", b"podman/5").add_to(&mut lines, "TIME");
        line(&uri, "a b", b"x\" 1\n\xff\\").add_to(&mut lines, "TIME");
        let expected = "10.0.0.1 - - [TIME] \"GET /v2/a/tags/list?n=1 HTTP/1.1\" 200 7 \"-\" \"podman/5\"\n\
            10.0.0.1 - a\\x20b [TIME] \"GET /v2/a/tags/list?n=1 HTTP/1.1\" 200 7 \"-\" \"x\\x22 1\\x0a\\xff\\x5c\"\n";
        assert_eq!(lines, expected);
    }

    #[test]
    fn nobody_waits_for_a_slow_reader_and_what_waits_is_bounded() {
        let (reported, written) = channel();
        let (go, may_go) = channel();
        let log = AccessLog::to(Slow { reported, may_go }).unwrap();
        let uri: Uri = "/v2/".parse().unwrap();
        let long = vec![b'x'; TEXT_LIMIT_BYTES + 1];
        log.write(&line(&uri, "", &long));
        let first = written.recv().unwrap();
        assert!(first.len() < TEXT_LIMIT_BYTES + 200);
        // The reader holds: all of this only waits, or is dropped.
        for _ in 0..2 * WAITING_LIMIT_BYTES / TEXT_LIMIT_BYTES {
            log.write(&line(&uri, "", &long));
        }
        let (waiting, dropped) = {
            let state = log.waiting.state();
            (state.lines.len(), state.dropped)
        };
        assert!(
            waiting < WAITING_LIMIT_BYTES + 2 * TEXT_LIMIT_BYTES,
            "{waiting}"
        );
        assert!(dropped > 0);
        drop(go);
        drop(log);
    }

    #[test]
    fn whoever_lets_go_waits_for_the_last_line() {
        let (reported, written) = channel();
        let (go, may_go) = channel();
        let log = AccessLog::to(Slow { reported, may_go }).unwrap();
        go.send(()).unwrap();
        log.write(&line(&"/v2/".parse().unwrap(), "u", b"x"));
        drop(log);
        let text = String::from_utf8(written.recv().unwrap()).unwrap();
        assert!(text.contains(" - u [") && text.ends_with('\n'), "{text}");
    }
}
