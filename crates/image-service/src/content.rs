//! Content of images: pieces of base images and of memory, with the alignment of their archives.

pub use service::content::{CHUNK, ContentPieces, Overlap, Overlay, Piece};

/// Pads with zeros to a multiple of four, the alignment of cpio archives.
pub(crate) fn align(content: &mut ContentPieces) {
    let padding = ignition::cpio::padding(content.length());
    content.push(Piece::Zeros(padding as u64));
}

/// All bytes.
#[cfg(test)]
pub(crate) fn collect(content: &ContentPieces) -> Vec<u8> {
    let mut bytes = Vec::new();
    content
        .for_each_chunk(|chunk| {
            bytes.extend_from_slice(chunk);
            Ok(())
        })
        .unwrap();
    bytes
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;

    #[test]
    fn archives_begin_at_multiples_of_four() {
        for length in 0..9 {
            let mut content = ContentPieces::new();
            content.push(Piece::Memory(Bytes::from(vec![1; length])));
            align(&mut content);
            let bytes = collect(&content);
            assert_eq!(bytes.len(), length.next_multiple_of(4));
            assert!(bytes[length..].iter().all(|byte| *byte == 0));
        }
    }
}
