//! Output of children: all lines go to their log, warnings and errors to the observer as well.

use std::sync::{Arc, Mutex, PoisonError};

use serde_json::Value;
use tokio::io::{AsyncBufReadExt as _, AsyncRead, AsyncReadExt as _, BufReader};
use tokio::sync::watch;

use crate::event::{SupervisorEvent, SupervisorObserver};
use crate::log_file::LogFile;

/// Units: bytes. Longer lines are split.
const MAX_LINE: u64 = 64 << 10;
/// Log line of Postgres when it accepts connections.
const POSTGRES_READY: &str = "database system is ready to accept connections";
/// FATAL messages of Postgres that are expected at startup and shutdown.
const POSTGRES_EXPECTED: [&str; 4] = [
    "the database system is starting up",
    "the database system is shutting down",
    "terminating connection due to administrator command",
    "the database system is not yet accepting connections",
];
/// Fields of a log line that the terminal does not show.
const QUIET_FIELDS: [&str; 6] = ["timestamp", "level", "message", "target", "span", "spans"];

/// Format of a child's output.
#[derive(Debug, Clone)]
pub(crate) enum OutputKind {
    /// A service: JSON objects, and plain text when it cannot start.
    Service,
    /// Postgres; the sender is set when it accepts connections.
    Postgres(watch::Sender<bool>),
}

/// Sink of a child's output.
#[derive(Clone)]
pub(crate) struct OutputSink {
    name: &'static str,
    kind: OutputKind,
    log: Arc<Mutex<LogFile>>,
    observer: SupervisorObserver,
}

impl OutputSink {
    /// Sink for the output of `name`.
    pub(crate) fn new(
        name: &'static str,
        kind: OutputKind,
        log: LogFile,
        observer: SupervisorObserver,
    ) -> Self {
        Self {
            name,
            kind,
            log: Arc::new(Mutex::new(log)),
            observer,
        }
    }

    /// Path of the log.
    pub(crate) fn path(&self) -> String {
        self.lock().path().display().to_string()
    }

    /// Copies standard output to the log until its end: services write their access logs there, each in its own format.
    pub(crate) async fn record(self, from: impl AsyncRead + Unpin) {
        self.copy(from, |_| {}).await;
    }

    /// Copies standard error to the log until its end, and notices to the observer.
    pub(crate) async fn show(self, from: impl AsyncRead + Unpin) {
        self.copy(from, |line| self.notice(line)).await;
    }

    async fn copy(&self, from: impl AsyncRead + Unpin, notice: impl Fn(&str)) {
        let mut reader = BufReader::new(from);
        let mut line = Vec::new();
        loop {
            line.clear();
            let read = (&mut reader)
                .take(MAX_LINE)
                .read_until(b'\n', &mut line)
                .await;
            if !matches!(read, Ok(count) if count > 0) {
                return;
            }
            let line = line.strip_suffix(b"\n").unwrap_or(&line);
            self.lock().line(line);
            notice(&String::from_utf8_lossy(line));
        }
    }

    fn notice(&self, line: &str) {
        let shown = match &self.kind {
            OutputKind::Service => from_service(line),
            OutputKind::Postgres(ready) => {
                if line.contains(POSTGRES_READY) {
                    ready.send_replace(true);
                }
                from_postgres(line)
            }
        };
        if let Some(text) = shown {
            let name = self.name;
            (self.observer)(SupervisorEvent::Reported { name, text: &text });
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, LogFile> {
        self.log.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Text of warnings, errors and plain-text lines.
fn from_service(line: &str) -> Option<String> {
    let Ok(Value::Object(fields)) = serde_json::from_str(line) else {
        return (!line.trim().is_empty()).then(|| line.to_owned());
    };
    let level = fields.get("level")?.as_str()?;
    if !matches!(level, "WARN" | "ERROR") {
        return None;
    }
    let mut text = format!(
        "{level} {}",
        fields.get("message").and_then(Value::as_str).unwrap_or("")
    );
    for (name, value) in &fields {
        if QUIET_FIELDS.contains(&name.as_str()) {
            continue;
        }
        let value = value
            .as_str()
            .map_or_else(|| value.to_string(), str::to_owned);
        text.extend([" ", name, "=", &value]);
    }
    Some(text)
}

fn from_postgres(line: &str) -> Option<String> {
    let is_fatal = ["FATAL:", "PANIC:"]
        .iter()
        .any(|level| line.contains(level));
    let is_expected = POSTGRES_EXPECTED.iter().any(|text| line.contains(text));
    (is_fatal && !is_expected).then(|| line.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn warnings_and_plain_text_are_shown() {
        let warning =
            r#"{"timestamp":"t","level":"WARN","message":"slow","target":"x","ms":7,"a":"b c"}"#;
        let text = from_service(warning).unwrap();
        assert!(text.starts_with("WARN slow"), "{text}");
        assert!(text.contains(" ms=7") && text.contains(" a=b c"), "{text}");
        assert_eq!(from_service(r#"{"level":"INFO","message":"x"}"#), None);
        assert_eq!(
            from_service("2 settings cannot be used").unwrap(),
            "2 settings cannot be used"
        );
    }

    #[test]
    fn expected_fatal_messages_are_hidden() {
        assert_eq!(
            from_postgres("FATAL:  the database system is starting up"),
            None
        );
        assert!(from_postgres("FATAL:  could not write lock file").is_some());
        assert_eq!(from_postgres("ERROR:  duplicate key"), None);
    }

    #[tokio::test]
    async fn long_lines_are_split() {
        let dir = tempfile::tempdir().unwrap();
        let log = LogFile::open(dir.path().join("log")).unwrap();
        let sink = OutputSink::new(
            "test",
            OutputKind::Postgres(watch::channel(false).0),
            log,
            Arc::new(|_| {}),
        );
        let endless = vec![b'x'; usize::try_from(MAX_LINE).unwrap() + 10];
        sink.record(endless.as_slice()).await;
        let text = std::fs::read_to_string(dir.path().join("log")).unwrap();
        assert_eq!(text.lines().count(), 2);
    }
}
