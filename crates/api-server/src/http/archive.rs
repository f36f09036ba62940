//! Tar archives, streamed: nothing is written to disk, and only events and record of the cluster are in memory.

use std::io;
use std::sync::Arc;

use axum::body::Body;
use bytes::Bytes;
use futures_util::{Stream, StreamExt as _, TryStreamExt as _, stream};
use model::Error;
use tokio::io::AsyncReadExt as _;
use tokio_util::io::ReaderStream;

use crate::app::logs::{LogArchive, LogArchiveMember, Logs, MemberContent};

/// Block size of tar. Units: bytes.
const BLOCK: u64 = 512;
/// Zeros at the end of an archive. Units: bytes.
const END: u64 = 2 * BLOCK;

/// The archive of `collected`, and its length.
pub(crate) fn archive(logs: Arc<Logs>, collected: LogArchive) -> Result<(u64, Body), Error> {
    let mut length = END;
    let mut members = Vec::with_capacity(collected.members.len());
    for member in collected.members {
        let head = member_head(&member, collected.made_at_s)
            .map_err(|error| Error::internal("writing an archive's header", error))?;
        length += head.len() as u64 + member.length.next_multiple_of(BLOCK) + end(&member);
        members.push((head, member));
    }
    let cluster = collected.cluster;
    let members = stream::iter(members).then(move |(head, member)| {
        let logs = Arc::clone(&logs);
        async move {
            let gap = member.length.next_multiple_of(BLOCK) - member.length + end(&member);
            let content = match member.content {
                MemberContent::Bytes(bytes) => once(bytes.into()).left_stream(),
                MemberContent::Stored(object) | MemberContent::Wrapped { object, .. } => {
                    let stored = logs.content(cluster, &object).await;
                    let stored = stored.map_err(io::Error::other)?;
                    if stored.length != member.length {
                        // Content-Length has been sent.
                        return Err(io::Error::other("a log was replaced during its download"));
                    }
                    ReaderStream::new(stored.content.take(member.length)).right_stream()
                }
            };
            Ok(once(head.into()).chain(content).chain(zeros(gap)))
        }
    });
    let whole = members.try_flatten().chain(zeros(END));
    Ok((length, Body::from_stream(whole)))
}

fn once(bytes: Bytes) -> impl Stream<Item = io::Result<Bytes>> {
    stream::once(async { Ok(bytes) })
}

fn zeros(count: u64) -> impl Stream<Item = io::Result<Bytes>> {
    // Longest: the end of an inner archive after a member that is not whole blocks.
    static ZEROS: [u8; 1536] = [0; 1536];
    let count = usize::try_from(count).unwrap_or(ZEROS.len());
    once(Bytes::from_static(&ZEROS[..count.min(ZEROS.len())]))
}

/// Zeros at the end of a member's inner archive. Units: bytes.
fn end(member: &LogArchiveMember) -> u64 {
    match member.content {
        MemberContent::Wrapped { .. } => END,
        MemberContent::Bytes(_) | MemberContent::Stored(_) => 0,
    }
}

/// Headers before the bytes of a member: its own, and those of its inner archive.
fn member_head(member: &LogArchiveMember, made_at_s: u64) -> io::Result<Vec<u8>> {
    let MemberContent::Wrapped { name, .. } = &member.content else {
        return head(&member.name, member.length, made_at_s);
    };
    let inner = head(name, member.length, made_at_s)?;
    let length = inner.len() as u64 + member.length.next_multiple_of(BLOCK) + END;
    let outer = head(&member.name, length, made_at_s)?;
    Ok([outer, inner].concat())
}

/// Headers of a member: one, or more for a long name.
fn head(name: &str, length: u64, made_at_s: u64) -> io::Result<Vec<u8>> {
    let mut header = tar::Header::new_gnu();
    header.set_size(length);
    header.set_mode(0o644);
    header.set_mtime(made_at_s);
    let mut builder = tar::Builder::new(Vec::new());
    builder.append_data(&mut header, name, io::empty())?;
    Ok(builder.get_ref().clone())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_are_whole_blocks_and_keep_long_names() {
        for name in ["a.json".to_owned(), "x".repeat(200)] {
            let mut archive = head(&name, 3, 0).unwrap();
            assert_eq!(archive.len() as u64 % BLOCK, 0);
            archive.extend_from_slice(b"abc");
            archive.resize(archive.len().next_multiple_of(512) + 1024, 0);
            let mut archive = tar::Archive::new(archive.as_slice());
            let entry = archive.entries().unwrap().next().unwrap().unwrap();
            assert_eq!(entry.path().unwrap().to_string_lossy(), name);
            assert_eq!(entry.size(), 3);
        }
    }
}
