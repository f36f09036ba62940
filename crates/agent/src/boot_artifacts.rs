//! Kernel and initial ramdisk of the discovery image in the boot folder of an installed host, which leaves its cluster:
//! with a boot loader entry for them, the next start discovers the host again.
//!
//! The root file system stays at the service: the ramdisk downloads it. The entry is written last, so that it never names
//! files that are missing or belong to another image.
//!
//! Source: assisted-installer-agent, src/commands/actions/download_boot_artifacts_cmd.go; Boot Loader Specification.

use std::error::Error as _;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::time::Duration;

use net::redirect;
use reqwest::Client;
use rustix::fs::StatVfsMountFlags;
use serde::Deserialize;
use tokio::fs::{self, File};
use tokio::io::AsyncWriteExt as _;
use url::Url;

use crate::Error;
use crate::command::succeed;

/// Below the boot folder; on the host, `/boot` is a link to itself there, so both ways to read the paths hold.
const FOLDER: &str = "discovery";
const KERNEL: &str = "vmlinuz";
const INITRD: &str = "initrd";
const ENTRIES: &str = "loader/entries";
const ENTRY: &str = "00-assisted-discovery.conf";
/// Longest files. Units: bytes.
const MAX_KERNEL: u64 = 256 << 20;
const MAX_INITRD: u64 = 2 << 30;
const ATTEMPTS: u32 = 5;
/// For one file, of one attempt.
const DOWNLOAD_TIMEOUT: Duration = Duration::from_mins(30);
const COMMAND_TIMEOUT: Duration = Duration::from_mins(10);

/// URLs of the discovery image's parts.
#[derive(Debug, Deserialize)]
pub(crate) struct ArtifactUrls {
    #[serde(rename = "kernel_url")]
    kernel: Url,
    #[serde(rename = "initrd_url")]
    initrd: Url,
    #[serde(rename = "rootfs_url")]
    rootfs: Url,
}

/// The boot folder of a host.
#[derive(Debug)]
pub(crate) struct BootFolder {
    /// The host's root file system.
    root: PathBuf,
    /// Between two attempts of a download.
    pause: Duration,
}

impl BootFolder {
    pub(crate) fn below(root: PathBuf) -> Self {
        Self {
            root,
            pause: Duration::from_mins(1),
        }
    }

    /// Downloads the parts, unless they are there. After a failure none is left.
    ///
    /// Errors: a download fails, or the folder has no space for it even without the previous system.
    pub(crate) async fn store(&self, client: &Client, urls: &ArtifactUrls) -> Result<(), Error> {
        let entry = entry_text(&urls.rootfs);
        if self.is_complete(&entry).await {
            return Ok(());
        }
        self.make_writable().await?;
        let mut stored = self.replace(client, urls, &entry).await;
        if let Err(error) = &stored
            && is_disk_full(error)
        {
            tracing::warn!("the boot folder is full, removing the previous system's files");
            self.run("rpm-ostree", &["cleanup", "--os=rhcos", "--rollback"])
                .await
                .map_err(|error| Error::new("freeing space in the boot folder", error))?;
            stored = self.replace(client, urls, &entry).await;
        }
        stored
    }

    /// Whether the next start of the host discovers it.
    pub(crate) fn has_entry(&self) -> bool {
        self.entry().exists()
    }

    /// Runs a program of the host, also from inside a container that has the host's root somewhere else.
    pub(crate) async fn run(&self, program: &str, arguments: &[&str]) -> Result<(), Error> {
        let root = self.root.to_string_lossy();
        let done = if self.is_own_root() {
            succeed(program, arguments, COMMAND_TIMEOUT).await
        } else {
            let arguments = [&[&root, program], arguments].concat();
            succeed("chroot", &arguments, COMMAND_TIMEOUT).await
        };
        done.map(drop)
    }

    pub(crate) fn is_own_root(&self) -> bool {
        self.root == Path::new("/")
    }

    fn file(&self, name: &str) -> PathBuf {
        self.root.join("boot").join(FOLDER).join(name)
    }

    fn entry(&self) -> PathBuf {
        self.root.join("boot").join(ENTRIES).join(ENTRY)
    }

    async fn is_complete(&self, entry: &str) -> bool {
        let found = fs::read(self.entry()).await;
        found.is_ok_and(|found| found == entry.as_bytes())
            && self.file(KERNEL).exists()
            && self.file(INITRD).exists()
    }

    /// An installed system mounts its boot folder for reading only.
    async fn make_writable(&self) -> Result<(), Error> {
        let boot = self.root.join("boot");
        let failed = |error: io::Error| Error::io(format!("looking at {}", boot.display()), error);
        let status = rustix::fs::statvfs(&boot).map_err(|error| failed(error.into()))?;
        if !status.f_flag.contains(StatVfsMountFlags::RDONLY) {
            return Ok(());
        }
        let boot = boot.to_string_lossy();
        succeed("mount", &["-o", "remount,rw", &boot], COMMAND_TIMEOUT)
            .await
            .map(drop)
    }

    async fn replace(
        &self,
        client: &Client,
        urls: &ArtifactUrls,
        entry: &str,
    ) -> Result<(), Error> {
        self.clear().await?;
        let stored = self.write_all(client, urls, entry).await;
        if stored.is_err()
            && let Err(error) = self.clear().await
        {
            tracing::warn!(error = error.chain(), "boot artifacts not removed");
        }
        stored
    }

    async fn write_all(
        &self,
        client: &Client,
        urls: &ArtifactUrls,
        entry: &str,
    ) -> Result<(), Error> {
        let (kernel, initrd) = (self.file(KERNEL), self.file(INITRD));
        let path = self.entry();
        let failed = |error: io::Error| Error::io(format!("writing {}", path.display()), error);
        durable::create_parent(&kernel).map_err(failed)?;
        durable::create_parent(&path).map_err(failed)?;
        self.download(client, &urls.kernel, &kernel, MAX_KERNEL)
            .await?;
        self.download(client, &urls.initrd, &initrd, MAX_INITRD)
            .await?;
        let partial = partial(&path);
        let mut file = File::create(&partial).await.map_err(failed)?;
        file.write_all(entry.as_bytes()).await.map_err(failed)?;
        publish(file, &path).await.map_err(failed)
    }

    /// Removes the entry first: the others are no use without it, but it is harmful without them.
    async fn clear(&self) -> Result<(), Error> {
        for path in [self.entry(), self.file(KERNEL), self.file(INITRD)] {
            for path in [partial(&path), path] {
                let removed = match fs::remove_file(&path).await {
                    Err(error) if error.kind() == ErrorKind::NotFound => Ok(false),
                    Err(error) => Err(error),
                    Ok(()) => durable::sync_parent(&path).map(|()| true),
                };
                removed
                    .map_err(|error| Error::io(format!("removing {}", path.display()), error))?;
            }
        }
        // The folder of others is not empty.
        let _ = fs::remove_dir(self.root.join("boot").join(FOLDER)).await;
        Ok(())
    }

    async fn download(
        &self,
        client: &Client,
        url: &Url,
        path: &Path,
        limit: u64,
    ) -> Result<(), Error> {
        let mut attempt = 1;
        loop {
            let once = tokio::time::timeout(DOWNLOAD_TIMEOUT, download(client, url, path, limit));
            let error = match once.await {
                Ok(Ok(())) => return Ok(()),
                Ok(Err(error)) => error,
                Err(_) => Error::message(format!(
                    "downloading {} took more than {DOWNLOAD_TIMEOUT:?}",
                    path.display()
                )),
            };
            if attempt == ATTEMPTS || is_disk_full(&error) {
                return Err(error);
            }
            tracing::warn!(attempt, error = error.chain(), "download failed, retrying");
            tokio::time::sleep(self.pause).await;
            attempt += 1;
        }
    }
}

/// The text of the boot loader entry. The newest version is the default of the menu.
fn entry_text(rootfs_url: &Url) -> String {
    // The boot loader reads the quoted text as it is up to the next quote.
    let rootfs_url = rootfs_url.as_str().replace('\'', "%27");
    format!(
        "title Assisted Installer Discovery\n\
         version 999\n\
         options random.trust_cpu=on ignition.firstboot ignition.platform.id=metal \
         'coreos.live.rootfs_url={rootfs_url}'\n\
         linux /boot/{FOLDER}/{KERNEL}\n\
         initrd /boot/{FOLDER}/{INITRD}\n"
    )
}

/// Errors have no URL: it can have a token.
async fn download(client: &Client, url: &Url, path: &Path, limit: u64) -> Result<(), Error> {
    let doing = || format!("downloading {}", path.display());
    let broken = |error: reqwest::Error| Error::new(doing(), error.without_url());
    let failed = |error: io::Error| Error::io(doing(), error);
    let request = client.get(url.clone()).build().map_err(broken)?;
    let response = redirect::send(client, request).await.map_err(broken)?;
    let mut response = response.response;
    let status = response.status();
    if !status.is_success() {
        return Err(Error::message(format!(
            "{}: the server answered {status}",
            doing()
        )));
    }
    let mut file = File::create(partial(path)).await.map_err(failed)?;
    let mut length = 0;
    while let Some(chunk) = response.chunk().await.map_err(broken)? {
        length += chunk.len() as u64;
        if length > limit {
            return Err(Error::message(format!(
                "{}: it has more than {limit} bytes",
                doing()
            )));
        }
        file.write_all(&chunk).await.map_err(failed)?;
    }
    if length == 0 {
        return Err(Error::message(format!("{}: it is empty", doing())));
    }
    publish(file, path).await.map_err(failed)
}

/// Gives a partial file its name, when its content is durable.
async fn publish(mut file: File, path: &Path) -> io::Result<()> {
    file.flush().await?;
    file.sync_all().await?;
    fs::rename(partial(path), path).await?;
    durable::sync_parent(path)
}

fn partial(path: &Path) -> PathBuf {
    path.with_added_extension("partial")
}

fn is_disk_full(error: &Error) -> bool {
    let mut cause = error.source();
    while let Some(error) = cause {
        let kind = error.downcast_ref::<io::Error>().map(io::Error::kind);
        if matches!(
            kind,
            Some(ErrorKind::StorageFull | ErrorKind::QuotaExceeded)
        ) {
            return true;
        }
        cause = error.source();
    }
    false
}

#[cfg(test)]
mod tests {
    use std::process::Command;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use axum::Router;
    use axum::http::StatusCode;
    use axum::routing::get;

    use super::*;
    use crate::fetch;

    /// A server whose ramdisk has as many bytes. The first requests for it fail.
    async fn server(length: usize, failures: usize) -> (ArtifactUrls, Arc<AtomicUsize>) {
        let count = Arc::new(AtomicUsize::new(0));
        let counter = Arc::clone(&count);
        let initrd = move || {
            let number = counter.fetch_add(1, Ordering::Relaxed);
            async move {
                if number < failures {
                    Err(StatusCode::SERVICE_UNAVAILABLE)
                } else {
                    Ok(vec![b'i'; length])
                }
            }
        };
        let app = Router::new()
            .route("/kernel", get(|| async { "kernel" }))
            .route("/initrd", get(initrd));
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let base: Url = format!("http://{}/", listener.local_addr().unwrap())
            .parse()
            .unwrap();
        tokio::spawn(async move { axum::serve(listener, app).await });
        let urls = ArtifactUrls {
            kernel: base.join("kernel").unwrap(),
            initrd: base.join("initrd?token=secret").unwrap(),
            rootfs: base.join("it's?a=1&b=2").unwrap(),
        };
        (urls, count)
    }

    fn folder(root: &Path) -> BootFolder {
        BootFolder {
            pause: Duration::ZERO,
            ..BootFolder::below(root.to_owned())
        }
    }

    fn client() -> Client {
        fetch::download_client(None, false).unwrap()
    }

    /// Files below a folder.
    fn listed(folder: &Path) -> Vec<String> {
        let mut names = Vec::new();
        for entry in std::fs::read_dir(folder).into_iter().flatten() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                names.extend(listed(&path));
            } else {
                names.push(path.file_name().unwrap().display().to_string());
            }
        }
        names.sort();
        names
    }

    #[tokio::test]
    async fn the_next_start_is_of_the_discovery_image() {
        let root = tempfile::tempdir().unwrap();
        std::fs::create_dir(root.path().join("boot")).unwrap();
        let folder = folder(root.path());
        let (urls, count) = server(100_000, 2).await;
        assert!(!folder.has_entry());
        folder.store(&client(), &urls).await.unwrap();
        assert!(folder.has_entry());
        assert_eq!(listed(root.path()), [ENTRY, INITRD, KERNEL]);
        let read = |path: &str| std::fs::read(root.path().join(path)).unwrap();
        assert_eq!(read("boot/discovery/vmlinuz"), b"kernel");
        assert_eq!(read("boot/discovery/initrd"), vec![b'i'; 100_000]);
        let entry = String::from_utf8(read("boot/loader/entries/00-assisted-discovery.conf"));
        let port = urls.rootfs.port().unwrap();
        let expected = format!(
            "options random.trust_cpu=on ignition.firstboot ignition.platform.id=metal \
             'coreos.live.rootfs_url=http://127.0.0.1:{port}/it%27s?a=1&b=2'\n\
             linux /boot/discovery/vmlinuz\ninitrd /boot/discovery/initrd\n"
        );
        let entry = entry.unwrap();
        assert!(entry.ends_with(&expected), "{entry}");

        folder.store(&client(), &urls).await.unwrap();
        assert_eq!(count.load(Ordering::Relaxed), 3, "not downloaded again");
        let (other, count) = server(7, 0).await;
        folder.store(&client(), &other).await.unwrap();
        assert_eq!(count.load(Ordering::Relaxed), 1);
        assert_eq!(read("boot/discovery/initrd"), b"iiiiiii");
    }

    #[tokio::test]
    async fn failures_leave_nothing() {
        let root = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(root.path().join("boot/loader/entries")).unwrap();
        std::fs::write(root.path().join("boot/loader/entries/ostree.conf"), "").unwrap();
        let folder = folder(root.path());
        let (urls, _) = server(9, 0).await;
        folder.store(&client(), &urls).await.unwrap();
        for (length, failures, problem) in [(9, 5, "answered 503"), (0, 0, "empty")] {
            let (urls, count) = server(length, failures).await;
            let error = folder.store(&client(), &urls).await.unwrap_err().chain();
            assert!(
                error.contains(problem) && error.contains("initrd"),
                "{error}"
            );
            assert!(!error.contains("secret"), "{error}");
            assert_eq!(count.load(Ordering::Relaxed), 5);
            assert_eq!(listed(root.path()), ["ostree.conf"]);
        }
        let path = root.path().join("file");
        let error = download(&client(), &urls.initrd, &path, 8).await;
        assert!(error.unwrap_err().chain().contains("more than 8 bytes"));
    }

    /// A small file system, unmounted when dropped.
    struct SmallDisk(tempfile::TempDir);

    impl SmallDisk {
        fn new() -> Option<Self> {
            let folder = tempfile::tempdir().unwrap();
            let mount = Command::new("mount")
                .args(["-t", "tmpfs", "-o", "size=256k", "tmpfs"])
                .arg(folder.path())
                .output();
            let is_mounted = mount.is_ok_and(|output| output.status.success());
            is_mounted.then(|| Self(folder))
        }
    }

    impl Drop for SmallDisk {
        fn drop(&mut self) {
            let _ = Command::new("umount").arg(self.0.path()).output();
        }
    }

    #[tokio::test]
    async fn a_full_disk_keeps_nothing() {
        let Some(disk) = SmallDisk::new() else {
            testkit::skipped("no rights to mount a file system");
            return;
        };
        let root = disk.0.path();
        std::fs::create_dir(root.join("boot")).unwrap();
        let (urls, count) = server(1 << 20, 0).await;
        let folder = folder(root);
        let error = folder.replace(&client(), &urls, "entry").await.unwrap_err();
        assert!(is_disk_full(&error), "{}", error.chain());
        assert_eq!(count.load(Ordering::Relaxed), 1, "not retried");
        assert_eq!(listed(root), [""; 0]);
        // A temporary root has no package system, whose previous version could be removed.
        let error = folder.store(&client(), &urls).await.unwrap_err().chain();
        assert!(error.contains("freeing space"), "{error}");
        assert_eq!(listed(root), [""; 0]);
    }

    #[tokio::test]
    async fn a_mount_for_reading_is_made_writable() {
        let Some(disk) = SmallDisk::new() else {
            testkit::skipped("no rights to mount a file system");
            return;
        };
        let root = disk.0.path();
        let boot = root.join("boot");
        std::fs::create_dir(&boot).unwrap();
        let mount = |arguments: &[&str]| {
            let output = Command::new("mount").args(arguments).arg(&boot).output();
            assert!(output.unwrap().status.success());
        };
        mount(&["-t", "tmpfs", "-o", "ro", "tmpfs"]);
        let (urls, _) = server(9, 0).await;
        let stored = folder(root).store(&client(), &urls).await;
        let files = listed(&boot);
        let _ = Command::new("umount").arg(&boot).output();
        stored.unwrap();
        assert_eq!(files, [ENTRY, INITRD, KERNEL]);
    }
}
