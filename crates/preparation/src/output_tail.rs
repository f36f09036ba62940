//! The last lines of a program's output.

use std::collections::VecDeque;

use tokio::io::{AsyncBufReadExt, AsyncRead, BufReader};

/// Last lines of output kept for errors and the log.
pub(crate) const TAIL_LINES: usize = 200;
/// Lines are truncated to this length. Units: bytes.
const LINE_BYTES: usize = 4096;

/// The last `limit` lines of `output`.
pub(crate) async fn tail(output: Option<impl AsyncRead + Unpin>, limit: usize) -> Vec<String> {
    let Some(output) = output else {
        return Vec::new();
    };
    let mut reader = BufReader::new(output);
    let mut lines = VecDeque::new();
    let mut line = Vec::new();
    while let Ok(chunk) = reader.fill_buf().await {
        if chunk.is_empty() {
            break;
        }
        let end = chunk.iter().position(|byte| *byte == b'\n');
        let part = &chunk[..end.unwrap_or(chunk.len())];
        let remaining = LINE_BYTES - line.len();
        line.extend_from_slice(&part[..part.len().min(remaining)]);
        let used = part.len() + usize::from(end.is_some());
        reader.consume(used);
        if end.is_some() {
            push_line(&mut lines, &mut line, limit);
        }
    }
    push_line(&mut lines, &mut line, limit);
    lines.into()
}

/// Moves `line` into the ring buffer `lines`.
fn push_line(lines: &mut VecDeque<String>, line: &mut Vec<u8>, limit: usize) {
    if lines.len() == limit {
        lines.pop_front();
    }
    lines.push_back(String::from_utf8_lossy(line).trim_end().to_owned());
    line.clear();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn output_is_bounded() {
        let numbers: Vec<String> = (1..=5000).map(|number| format!("{number}\n")).collect();
        let text = format!("{}\n{}", "x".repeat(1_000_000), numbers.concat());
        let lines = tail(Some(text.as_bytes()), TAIL_LINES).await;
        assert_eq!(lines.len(), TAIL_LINES);
        assert!(lines.iter().any(|line| line == "5000"));
        let lines = tail(Some(text.as_bytes()), usize::MAX).await;
        assert_eq!(lines[0].len(), LINE_BYTES);
    }
}
