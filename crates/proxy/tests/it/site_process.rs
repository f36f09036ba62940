//! The proxy as a process of its own, for signals, files of settings, and kills.

use std::fs;
use std::io::{BufRead as _, BufReader, Read};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, Mutex};

use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;
use tokio::net::TcpStream;

use crate::site_world::Made;
use crate::world::eventually;

/// A loopback address that no other test uses, in this process or in another one.
pub(crate) fn own_address() -> IpAddr {
    static LAST: AtomicU8 = AtomicU8::new(1);
    let [_, _, high, low] = std::process::id().to_be_bytes();
    let last = LAST.fetch_add(1, Ordering::Relaxed);
    Ipv4Addr::new(127, 64 + high % 128, low, last).into()
}

/// A port that is free on `ip`, of which only this test knows.
pub(crate) fn free_port(ip: IpAddr) -> u16 {
    let [address] = free_addresses(ip);
    address.port()
}

/// Addresses with different free ports: they are taken together.
fn free_addresses<const N: usize>(ip: IpAddr) -> [SocketAddr; N] {
    let taken = [(); N].map(|()| TcpListener::bind(SocketAddr::new(ip, 0)).unwrap());
    taken.map(|listener| listener.local_addr().unwrap())
}

/// Lines of a stream of a process.
#[derive(Clone, Default)]
pub(crate) struct Lines(Arc<Mutex<Vec<String>>>);

impl Lines {
    fn of(stream: impl Read + Send + 'static) -> Self {
        let lines = Self::default();
        let seen = lines.clone();
        std::thread::spawn(move || {
            for line in BufReader::new(stream).lines() {
                let Ok(line) = line else { return };
                seen.0.lock().unwrap().push(line);
            }
        });
        lines
    }

    /// Those with `text`.
    pub(crate) fn with(&self, text: &str) -> Vec<String> {
        let lines = self.0.lock().unwrap();
        let found = lines.iter().filter(|line| line.contains(text));
        found.cloned().collect()
    }

    /// Waits for `count` lines with `text`.
    pub(crate) async fn until(&self, text: &str, count: usize) -> Vec<String> {
        eventually(async || self.with(text).len() >= count).await;
        self.with(text)
    }
}

/// A running process; killed when dropped.
pub(crate) struct ProxyProcess {
    child: Child,
    pub(crate) log: Lines,
    pub(crate) output: Lines,
}

impl Drop for ProxyProcess {
    fn drop(&mut self) {
        self.kill();
    }
}

impl ProxyProcess {
    /// Runs the proxy with the settings of the file `config`.
    pub(crate) fn run(config: &Path) -> Self {
        Self::run_limited(config, None)
    }

    /// [`Self::run`], with at most `files` open files.
    pub(crate) fn run_limited(config: &Path, files: Option<u32>) -> Self {
        let limit = files.map_or_else(String::new, |files| format!("ulimit -n {files} && "));
        let program = env!("CARGO_BIN_EXE_proxy");
        let mut child = Command::new("sh")
            .arg("-c")
            .arg(format!("{limit}exec \"$0\" --config \"$1\""))
            .arg(program)
            .arg(config)
            .env_clear()
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        Self {
            log: Lines::of(child.stderr.take().unwrap()),
            output: Lines::of(child.stdout.take().unwrap()),
            child,
        }
    }

    /// Sends SIGKILL, and waits for the end.
    pub(crate) fn kill(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }

    /// Sends SIGHUP.
    pub(crate) fn hang_up(&self) {
        let pid = Pid::from_raw(i32::try_from(self.child.id()).unwrap()).unwrap();
        kill_process(pid, Signal::HUP).unwrap();
    }

    pub(crate) fn has_ended(&mut self) -> bool {
        self.child.try_wait().unwrap().is_some()
    }
}

/// A replica that serves one file: a process that can be killed.
pub(crate) struct FileReplica {
    pub(crate) process: ProxyProcess,
    pub(crate) address: SocketAddr,
    _folder: TempDir,
}

impl FileReplica {
    /// Runs it on `address`.
    pub(crate) async fn start(address: SocketAddr, content: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().join("files");
        fs::create_dir(&root).unwrap();
        fs::write(root.join("ready"), "").unwrap();
        fs::write(root.join("who"), content).unwrap();
        let config = folder.path().join("env");
        let (ip, port) = (address.ip(), address.port());
        let root = root.display();
        let status = free_port(ip);
        let text = format!(
            "FORWARDS=none\nLISTEN_ADDRESS={ip}\nFILES_PORT={port}\nFILES_ROOT={root}\nALLOWED_HOSTS=*\n\
             PROXY_STATUS_ADDRESS={ip}\nPROXY_STATUS_PORT={status}\n"
        );
        fs::write(&config, text).unwrap();
        let process = ProxyProcess::run(&config);
        eventually(async || TcpStream::connect(address).await.is_ok()).await;
        Self {
            process,
            address,
            _folder: folder,
        }
    }
}

/// A site of which the proxy is a process.
pub(crate) struct SiteProcess {
    pub(crate) process: ProxyProcess,
    pub(crate) http: SocketAddr,
    pub(crate) https: SocketAddr,
    pub(crate) status: SocketAddr,
    folder: TempDir,
    fixed: String,
}

impl SiteProcess {
    /// Runs it with `settings` (lines), and waits until it listens.
    pub(crate) async fn start(certificate: &Made, settings: &str) -> Self {
        Self::start_limited(certificate, settings, None).await
    }

    /// [`Self::start`], with at most `files` open files.
    pub(crate) async fn start_limited(
        certificate: &Made,
        settings: &str,
        files: Option<u32>,
    ) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let ip = own_address();
        let [http, https, status] = free_addresses(ip);
        fs::create_dir(folder.path().join("files")).unwrap();
        fs::write(folder.path().join("crt-list.txt"), "site.pem\n").unwrap();
        let fixed = format!(
            "FORWARDS=none\nLISTEN_ADDRESS={ip}\nPROXY_STATUS_ADDRESS={ip}\nPROXY_STATUS_PORT={}\n\
             PROXY_HTTP_PORT={}\nPROXY_HTTPS_PORT={}\nFILES_ROOT={}\n",
            status.port(),
            http.port(),
            https.port(),
            folder.path().join("files").display(),
        );
        let mut site = Self {
            process: {
                let config = folder.path().join("env");
                let list = folder.path().join("crt-list.txt");
                replace(&folder.path().join("site.pem"), &certificate.bundle);
                replace(&config, &text(&fixed, &list, settings));
                ProxyProcess::run_limited(&config, files)
            },
            http,
            https,
            status,
            folder,
            fixed,
        };
        let (process, https) = (&mut site.process, site.https);
        eventually(async || {
            assert!(!process.has_ended(), "{:?}", process.log.with(""));
            TcpStream::connect(https).await.is_ok()
        })
        .await;
        site
    }

    /// Serves another certificate from its next reload on.
    pub(crate) fn set_certificate(&self, certificate: &Made) {
        replace(&self.path("site.pem"), &certificate.bundle);
    }

    /// Writes the file of the settings again.
    pub(crate) fn set(&self, settings: &str) {
        let list = self.path("crt-list.txt");
        replace(&self.path("env"), &text(&self.fixed, &list, settings));
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }
}

/// A later line of a name replaces the earlier one.
fn text(fixed: &str, list: &Path, settings: &str) -> String {
    let list = list.display();
    format!("{fixed}NETWORK_DOMAIN=site.test\nCERTIFICATE_LIST={list}\n{settings}")
}

/// Readers see the old text or the new one.
fn replace(path: &Path, text: &str) {
    let part = path.with_extension("part");
    fs::write(&part, text).unwrap();
    fs::rename(part, path).unwrap();
}
