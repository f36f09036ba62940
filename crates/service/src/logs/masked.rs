//! Lines without the secrets of the URLs in them, whichever field or error text has them.

use std::borrow::Cow;
use std::io::{self, Write};

use net::masks::masked;
use tracing_subscriber::fmt::MakeWriter;

/// A writer of lines, or the maker of one.
#[derive(Debug, Clone, Copy)]
pub(super) struct Masked<W>(pub(super) W);

impl<'a, M: MakeWriter<'a>> MakeWriter<'a> for Masked<M> {
    type Writer = Masked<M::Writer>;

    fn make_writer(&'a self) -> Self::Writer {
        Masked(self.0.make_writer())
    }
}

impl<W: Write> Write for Masked<W> {
    /// The subscriber writes an event at once.
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        let text = String::from_utf8_lossy(line);
        let masked = match masked(&text) {
            Cow::Owned(masked) => masked.into_bytes().into(),
            Cow::Borrowed(_) => Cow::Borrowed(line),
        };
        self.0.write_all(&masked)?;
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_have_no_secret_of_a_url() {
        let mut written = Masked(Vec::new());
        let lines = concat!(
            "{\"path\":\"/bytoken/s3cret/4.18/x86_64/full.iso\"}\n",
            "{\"error\":\"GET http://i/byapikey/s3cret?api_key=s3cret: refused\"}\n",
        );
        written.write_all(lines.as_bytes()).unwrap();
        let written = String::from_utf8(written.0).unwrap();
        assert!(!written.contains("s3cret"), "{written}");
        assert_eq!(written.lines().count(), 2);
        assert!(
            written.contains("/bytoken/[hidden]/4.18/x86_64/full.iso\"}"),
            "{written}"
        );
    }
}
