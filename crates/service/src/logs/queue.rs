//! Lines on their way to standard output.
//!
//! A thread writes them, so that a slow reader of the output delays no request: lines beyond the bound are dropped and
//! counted.

use std::io::{self, Write};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::time::Duration;

use tracing_subscriber::fmt::MakeWriter;

/// Units: lines that wait. One has some hundred bytes, at most a few KiB.
const MAX_LINES: usize = 8192;
/// How long the last lines may take at the end of the process.
const END_TIMEOUT: Duration = Duration::from_secs(1);
/// Dropped lines.
const DROPPED: &str = "atoll_access_log_dropped_lines_total";

/// Lines that were dropped since the last line that was written.
static DROPPED_LINES: AtomicU64 = AtomicU64::new(0);
static QUEUE: OnceLock<Option<SyncSender<Queued>>> = OnceLock::new();

enum Queued {
    Line(Vec<u8>),
    /// Answered when all lines before it are written.
    End(SyncSender<()>),
}

/// Puts each event into the queue.
#[derive(Debug, Clone, Copy)]
pub(super) struct LineQueue;

/// A line that is being put into the queue.
#[derive(Debug, Clone, Copy)]
pub(super) struct QueuedLine;

impl MakeWriter<'_> for LineQueue {
    type Writer = QueuedLine;

    fn make_writer(&self) -> QueuedLine {
        QueuedLine
    }
}

impl Write for QueuedLine {
    /// The subscriber writes an event at once.
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        let queue = QUEUE.get_or_init(|| start(io::stdout()));
        let sent = queue
            .as_ref()
            .map(|queue| queue.try_send(Queued::Line(line.to_vec())));
        if !matches!(sent, Some(Ok(()))) {
            DROPPED_LINES.fetch_add(1, Ordering::Relaxed);
            metrics::counter!(DROPPED).increment(1);
        }
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Waits until the queued lines are written, for a moment.
pub(crate) fn finish() {
    if let Some(Some(queue)) = QUEUE.get() {
        let (sender, receiver) = sync_channel(1);
        if queue.try_send(Queued::End(sender)).is_ok() {
            receiver.recv_timeout(END_TIMEOUT).ok();
        }
    }
}

/// Absent when there is no thread: then all lines are dropped.
fn start(output: impl Write + Send + 'static) -> Option<SyncSender<Queued>> {
    metrics::describe_counter!(DROPPED, "Lines of the access log that were dropped");
    let (sender, receiver) = sync_channel(MAX_LINES);
    let thread = std::thread::Builder::new().name("access-log".to_owned());
    thread.spawn(move || write_lines(&receiver, output)).ok()?;
    Some(sender)
}

fn write_lines(queue: &Receiver<Queued>, output: impl Write) {
    let mut output = io::BufWriter::new(output);
    while let Ok(first) = queue.recv() {
        // Those that wait are written together.
        for queued in std::iter::once(first).chain(queue.try_iter().take(MAX_LINES)) {
            match queued {
                // The reader may be gone: its lines are lost, requests are served.
                Queued::Line(line) => drop(output.write_all(&line)),
                Queued::End(done) => {
                    output.flush().ok();
                    done.send(()).ok();
                }
            }
        }
        output.flush().ok();
        let count = DROPPED_LINES.swap(0, Ordering::Relaxed);
        if count > 0 {
            tracing::warn!(
                count,
                "lines of the access log dropped: standard output is read too slowly"
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Condvar, Mutex};

    use super::*;

    /// Output that takes nothing before it is opened.
    #[derive(Clone, Default)]
    struct Gate(Arc<GateState>);

    #[derive(Default)]
    struct GateState {
        is_open: Mutex<bool>,
        opened: Condvar,
        written: Mutex<Vec<u8>>,
    }

    impl Write for Gate {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            let is_open = self.0.is_open.lock().unwrap();
            let waited = self.0.opened.wait_while(is_open, |is_open| !*is_open);
            drop(waited.unwrap());
            self.0.written.lock().unwrap().extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    // limit: waiting lines of the access log
    #[test]
    fn a_slow_reader_blocks_no_writer() {
        let gate = Gate::default();
        let queue = start(gate.clone()).unwrap();
        let line = |number: usize| Queued::Line(format!("{number}\n").into_bytes());
        let mut accepted = 0;
        // The buffer of the writer takes some of them.
        while queue.try_send(line(accepted)).is_ok() {
            accepted += 1;
            assert!(accepted < 10 * MAX_LINES);
        }
        assert!(accepted >= MAX_LINES);
        *gate.0.is_open.lock().unwrap() = true;
        gate.0.opened.notify_all();
        let (done, ended) = sync_channel(1);
        queue.send(Queued::End(done)).unwrap();
        ended.recv().unwrap();
        let written = String::from_utf8(gate.0.written.lock().unwrap().clone()).unwrap();
        let numbers = written.lines().map(|line| line.parse::<usize>().unwrap());
        assert!(
            numbers.eq(0..accepted),
            "all accepted lines, in their order"
        );
    }
}
