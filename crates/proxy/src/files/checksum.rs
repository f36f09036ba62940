//! SHA-256 of files, computed once per version of a file and shared by all clients that ask for it.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt as _;
use std::sync::Arc;

use concurrency::{BoundedCache, KeyedMutex, SingleFlight};
use futures_util::FutureExt as _;
use ring::digest::{Context, SHA256, SHA256_OUTPUT_LEN};
use rustix::fs::{Stat, fstat};
use service::server::{ClientAddress, ClientKey, ClientQuota};
use tokio::sync::Semaphore;
use tokio::task::spawn_blocking;

use super::error::FileError;
use super::root::OpenedFile;

/// Files that are hashed at once: more would take the processors from other requests.
pub(super) const HASHING: usize = 2;
/// Files that are hashed, or wait for that.
pub(super) const WAITING: usize = 64;
/// The same of the requests of one client.
pub(super) const WAITING_OF_CLIENT: usize = 16;
/// Bound of remembered sums. Units: bytes; some ten thousand sums.
pub(super) const REMEMBERED: usize = 2 << 20;
/// One remembered sum with its key and its place in the map. Units: bytes.
const SUM_SIZE: usize = 192;
/// Bytes that are read at once.
const BUFFER: usize = 256 * 1024;

/// A SHA-256.
pub(super) type Sha256Sum = [u8; SHA256_OUTPUT_LEN];

/// Version of a file: other bytes have another one. The change time counts, too: programs can set the modification time
/// back.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct FileVersion {
    device: u64,
    inode: u64,
    size: i64,
    modified: (i64, u64),
    changed: (i64, u64),
}

/// Sums of files.
#[derive(Debug)]
pub(super) struct Checksums {
    known: Arc<BoundedCache<FileVersion, Sha256Sum>>,
    flights: SingleFlight<FileVersion, Result<Sha256Sum, SumError>>,
    hashing: Arc<Semaphore>,
    /// One file at a time for each client: the files of one do not hold up those of another.
    clients: Arc<KeyedMutex<ClientKey>>,
    waiting: ClientQuota,
}

/// A failure that all clients of one computation see.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum SumError {
    Busy,
    Changed,
    Unreadable(io::ErrorKind),
}

impl Checksums {
    pub(super) fn new() -> Self {
        Self {
            known: Arc::new(BoundedCache::new(REMEMBERED)),
            flights: SingleFlight::default(),
            hashing: Arc::new(Semaphore::new(HASHING)),
            clients: Arc::default(),
            waiting: ClientQuota::new(WAITING, WAITING_OF_CLIENT),
        }
    }

    /// The sum, if it is known.
    pub(super) fn known(&self, file: &OpenedFile) -> Option<Sha256Sum> {
        self.known.get(FileVersion::of(&file.stat))
    }

    /// The sum. The computation continues when its clients leave, so that their next attempt finds it done.
    pub(super) async fn of(
        &self,
        file: OpenedFile,
        client: ClientAddress,
    ) -> Result<Sha256Sum, FileError> {
        let version = FileVersion::of(&file.stat);
        if let Some(sum) = self.known.get(version) {
            return Ok(sum);
        }
        let work = || {
            let Ok(place) = self.waiting.acquire_for(client) else {
                return async { Err(SumError::Busy) }.boxed();
            };
            let (known, hashing) = (Arc::clone(&self.known), Arc::clone(&self.hashing));
            let clients = Arc::clone(&self.clients);
            async move {
                let _place = place;
                let _first = clients.lock(&client.into()).await;
                let _permit = hashing.acquire().await.map_err(|_| SumError::Busy)?;
                let hashed = spawn_blocking(move || hash(&file.file, version));
                let sum = hashed.await.map_err(|_| SumError::Busy)??;
                known.put(version, sum, SUM_SIZE);
                Ok(sum)
            }
            .boxed()
        };
        match self.flights.run(version, work).await {
            Some(Ok(sum)) => Ok(sum),
            Some(Err(SumError::Changed)) => Err(FileError::Changing),
            Some(Err(SumError::Unreadable(kind))) => Err(FileError::Failed(kind.into())),
            Some(Err(SumError::Busy)) | None => Err(FileError::Busy("other checksums")),
        }
    }
}

impl FileVersion {
    fn of(stat: &Stat) -> Self {
        Self {
            device: stat.st_dev,
            inode: stat.st_ino,
            size: stat.st_size,
            modified: (stat.st_mtime, stat.st_mtime_nsec),
            changed: (stat.st_ctime, stat.st_ctime_nsec),
        }
    }
}

fn hash(file: &File, version: FileVersion) -> Result<Sha256Sum, SumError> {
    let unreadable = |error: io::Error| SumError::Unreadable(error.kind());
    let mut context = Context::new(&SHA256);
    let mut buffer = vec![0; BUFFER];
    let mut offset = 0;
    loop {
        match file.read_at(&mut buffer, offset) {
            Ok(0) => break,
            Ok(read) => {
                context.update(&buffer[..read]);
                offset += read as u64;
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(unreadable(error)),
        }
    }
    let stat = fstat(file).map_err(|errno| unreadable(errno.into()))?;
    if FileVersion::of(&stat) != version {
        return Err(SumError::Changed);
    }
    context
        .finish()
        .as_ref()
        .try_into()
        .map_err(|_| SumError::Busy)
}

/// A line of `sha256sum --check`, whose escapes are those of GNU coreutils.
pub(super) fn line(sum: &Sha256Sum, name: &[u8]) -> Vec<u8> {
    let mut line = data_encoding::HEXLOWER.encode(sum).into_bytes();
    line.extend_from_slice(b"  ");
    let mut is_escaped = false;
    for byte in name {
        let escape: &[u8] = match byte {
            b'\\' => b"\\\\",
            b'\n' => b"\\n",
            b'\r' => b"\\r",
            byte => {
                line.push(*byte);
                continue;
            }
        };
        is_escaped = true;
        line.extend_from_slice(escape);
    }
    if is_escaped {
        line.insert(0, b'\\');
    }
    line.push(b'\n');
    line
}

#[cfg(test)]
mod tests {
    use std::io::{Seek as _, Write as _};

    use super::*;

    fn client(last: usize) -> ClientAddress {
        let last = u8::try_from(last).unwrap();
        ClientAddress {
            ip: [192, 0, 2, last].into(),
            is_forwarded: false,
        }
    }

    fn opened(bytes: &[u8]) -> OpenedFile {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(bytes).unwrap();
        reopened(&file)
    }

    fn reopened(file: &File) -> OpenedFile {
        let file = file.try_clone().unwrap();
        let stat = fstat(&file).unwrap();
        OpenedFile { file, stat }
    }

    fn hex(sum: &Sha256Sum) -> String {
        data_encoding::HEXLOWER.encode(sum)
    }

    #[tokio::test]
    async fn a_sum_is_remembered_until_the_file_changes() {
        let sums = Checksums::new();
        let mut file = opened(b"abc");
        let same = reopened(&file.file);
        let sum = sums.of(reopened(&file.file), client(1)).await.unwrap();
        assert!(hex(&sum).starts_with("ba7816bf8f01cfea"), "{}", hex(&sum));
        assert_eq!(sums.known(&same), Some(sum));
        file.file.rewind().unwrap();
        file.file.write_all(b"abcd").unwrap();
        let changed = reopened(&file.file);
        assert_eq!(sums.known(&changed), None);
        assert_ne!(sums.of(changed, client(1)).await.unwrap(), sum);
        // The first version is not there any more.
        sums.known.remove(FileVersion::of(&same.stat));
        assert!(matches!(
            sums.of(same, client(1)).await,
            Err(FileError::Changing)
        ));
    }

    // limit: checksums waiting
    // limit: checksums computed
    #[tokio::test]
    async fn computations_are_bounded_and_outlive_their_clients() {
        let sums = Arc::new(Checksums::new());
        let all = u32::try_from(HASHING).unwrap();
        let stopped = sums.hashing.acquire_many(all).await.unwrap();
        let files: Vec<_> = (0..WAITING).map(|n| opened(&n.to_le_bytes())).collect();
        let clients: Vec<_> = files
            .iter()
            .enumerate()
            .map(|(number, file)| {
                let (sums, file) = (Arc::clone(&sums), reopened(&file.file));
                tokio::spawn(async move { sums.of(file, client(number / WAITING_OF_CLIENT)).await })
            })
            .collect();
        while sums.waiting.held() < WAITING {
            tokio::task::yield_now().await;
        }
        let refused = sums.of(opened(b"one more"), client(99)).await;
        assert!(matches!(refused, Err(FileError::Busy(_))));
        // Another client of the same file costs nothing.
        let mut joined = Box::pin(sums.of(reopened(&files[0].file), client(99)));
        assert!(futures_util::poll!(&mut joined).is_pending());
        clients.iter().for_each(tokio::task::JoinHandle::abort);
        drop(stopped);
        joined.await.unwrap();
        while sums.waiting.held() > 0 {
            tokio::task::yield_now().await;
        }
        assert!(files.iter().all(|file| sums.known(file).is_some()));
    }

    // share: checksums waiting
    // share: checksums computed
    #[tokio::test]
    async fn the_files_of_a_client_do_not_hold_up_those_of_another() {
        let sums = Arc::new(Checksums::new());
        // As if the client computed another file.
        let computing = sums.clients.lock(&client(1).into()).await;
        let files: Vec<_> = (0..WAITING_OF_CLIENT)
            .map(|n| opened(&n.to_le_bytes()))
            .collect();
        let own: Vec<_> = files
            .iter()
            .map(|file| {
                let (sums, file) = (Arc::clone(&sums), reopened(&file.file));
                tokio::spawn(async move { sums.of(file, client(1)).await })
            })
            .collect();
        while sums.waiting.held() < WAITING_OF_CLIENT {
            tokio::task::yield_now().await;
        }
        let refused = sums.of(opened(b"one more"), client(1)).await;
        assert!(matches!(refused, Err(FileError::Busy(_))));
        sums.of(opened(b"of another"), client(2)).await.unwrap();
        assert!(own.iter().all(|one| !one.is_finished()));
        drop(computing);
        for one in own {
            one.await.unwrap().unwrap();
        }
    }

    // limit: remembered checksums
    #[test]
    fn remembered_sums_are_bounded() {
        let sums = Checksums::new();
        let stat = opened(b"").stat;
        for inode in 0..=(REMEMBERED / SUM_SIZE) as u64 {
            let version = FileVersion {
                inode,
                ..FileVersion::of(&stat)
            };
            sums.known.put(version, [0; 32], SUM_SIZE);
        }
        assert!(sums.known.size() <= REMEMBERED);
    }

    #[test]
    fn lines_are_those_of_sha256sum() {
        let zeros = "0".repeat(64);
        let text = |name: &str| String::from_utf8(line(&[0; 32], name.as_bytes())).unwrap();
        assert_eq!(text("a b"), format!("{zeros}  a b\n"));
        assert_eq!(text("a\\b\nc"), format!("\\{zeros}  a\\\\b\\nc\n"));
    }
}
