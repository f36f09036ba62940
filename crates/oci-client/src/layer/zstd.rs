//! Decompression of layers by zstd. Source: RFC 8878.

use std::io::{self, BufRead, Read};

use ruzstd::decoding::errors::{FrameDecoderError, ReadFrameHeaderError};
use ruzstd::decoding::{BlockDecodingStrategy, FrameDecoder};

/// Start of a frame.
pub(super) const MAGIC: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];

/// The content of all frames of a source. Layers that are pulled in parts have many, and skippable ones with their index.
pub(super) struct ZstdReader<R> {
    decoder: FrameDecoder,
    source: R,
}

impl<R: BufRead> ZstdReader<R> {
    pub(super) fn new(source: R) -> Self {
        Self {
            decoder: FrameDecoder::new(),
            source,
        }
    }

    /// Starts the next frame; false at the end of the source.
    fn start_frame(&mut self) -> io::Result<bool> {
        while !self.source.fill_buf()?.is_empty() {
            let length = match self.decoder.init(&mut self.source) {
                Ok(()) => return Ok(true),
                Err(FrameDecoderError::ReadFrameHeaderError(ReadFrameHeaderError::SkipFrame {
                    length,
                    ..
                })) => u64::from(length),
                Err(error) => return Err(io::Error::other(error)),
            };
            io::copy(&mut self.source.by_ref().take(length), &mut io::sink())?;
        }
        Ok(false)
    }
}

impl<R: BufRead> Read for ZstdReader<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while self.decoder.can_collect() == 0 {
            if !self.decoder.is_finished() {
                let step = BlockDecodingStrategy::UptoBlocks(1);
                let decoded = self.decoder.decode_blocks(&mut self.source, step);
                decoded.map_err(io::Error::other)?;
            } else if !self.start_frame()? {
                return Ok(0);
            }
        }
        self.decoder.read(buffer)
    }
}

#[cfg(test)]
mod tests {
    use ruzstd::encoding::{CompressionLevel, compress_to_vec};

    use super::*;

    #[test]
    fn frames_are_joined_and_skippable_ones_passed_over() {
        let (first, second) = (vec![7; 400_000], b"second".to_vec());
        let mut bytes = compress_to_vec(&first[..], CompressionLevel::Fastest);
        bytes.extend(b"\x50\x2a\x4d\x18\x05\0\0\0index");
        bytes.extend(compress_to_vec(&second[..], CompressionLevel::Fastest));
        let mut content = Vec::new();
        ZstdReader::new(&bytes[..])
            .read_to_end(&mut content)
            .unwrap();
        assert!(content == [first, second].concat());
        for end in [2, 20, bytes.len() - 1] {
            let read = ZstdReader::new(&bytes[..end]).read_to_end(&mut Vec::new());
            assert!(read.is_err(), "{end}");
        }
    }
}
