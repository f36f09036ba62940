//! Messages between the processes: one line of JSON per message.

use std::io::{self, Read, Write};

use serde::Serialize;
use serde::de::DeserializeOwned;

/// Units: bytes. Larger than any spec; longer messages would block on the socket buffer, which is not read yet.
const LIMIT_BYTES: usize = 64 << 10;

/// Sends one message.
///
/// Errors: InvalidInput – too long; those of the socket.
pub(crate) fn send(mut to: impl Write, message: &impl Serialize) -> io::Result<()> {
    let mut line = serde_json::to_vec(message)?;
    line.push(b'\n');
    if line.len() > LIMIT_BYTES {
        let text = format!(
            "message of {} bytes exceeds the limit of {LIMIT_BYTES}",
            line.len()
        );
        return Err(io::Error::new(io::ErrorKind::InvalidInput, text));
    }
    to.write_all(&line)
}

/// Receives one message.
///
/// Errors: UnexpectedEof – the peer closed the socket; InvalidData – malformed message.
pub(crate) fn receive<T: DeserializeOwned>(mut from: impl Read) -> io::Result<T> {
    let mut line = Vec::new();
    let mut byte = [0];
    loop {
        if from.read(&mut byte)? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        if byte[0] == b'\n' {
            return Ok(serde_json::from_slice(&line)?);
        }
        if line.len() == LIMIT_BYTES {
            return Err(io::ErrorKind::InvalidData.into());
        }
        line.push(byte[0]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn message_length_is_bounded() {
        let mut buffer = Vec::new();
        // Two quotes and the end of the line.
        send(&mut buffer, &"x".repeat(LIMIT_BYTES - 3)).unwrap();
        let text: String = receive(buffer.as_slice()).unwrap();
        assert_eq!(text.len(), LIMIT_BYTES - 3);
        assert!(send(io::sink(), &"x".repeat(LIMIT_BYTES - 2)).is_err());
        assert!(receive::<String>(vec![b'x'; LIMIT_BYTES + 1].as_slice()).is_err());
        assert!(receive::<String>(b"".as_slice()).is_err());
    }
}
