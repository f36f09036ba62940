//! The program itself, to be killed.

use std::path::Path;
use std::process::{Child, Command, Stdio};
use testkit::ports::free_port;

use crate::server::eventually;

pub(crate) struct Process {
    child: Child,
    pub(crate) base: String,
}

impl Process {
    /// Starts the registry over the content in `root`; it answers.
    pub(crate) async fn start(root: &Path, settings: &[(&str, &str)]) -> Self {
        Self::start_at(root, free_port().unwrap(), settings).await
    }

    /// The same at a port that is known.
    pub(crate) async fn start_at(root: &Path, port: u16, settings: &[(&str, &str)]) -> Self {
        let process = Self::spawn(root, port, settings);
        let (http, url) = (http(), format!("{}/health", process.base));
        eventually(async || http.get(&url).send().await.is_ok()).await;
        process
    }

    /// Starts it without waiting for anything.
    pub(crate) fn spawn(root: &Path, port: u16, settings: &[(&str, &str)]) -> Self {
        let child = Command::new(env!("CARGO_BIN_EXE_registry"))
            .env("REGISTRY_HTTP_ADDR", format!("127.0.0.1:{port}"))
            .env("REGISTRY_STORAGE_FILESYSTEM_ROOTDIRECTORY", root)
            .envs(settings.iter().copied())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let base = format!("http://127.0.0.1:{port}");
        Self { child, base }
    }

    pub(crate) fn port(&self) -> u16 {
        self.base.rsplit(':').next().unwrap().parse().unwrap()
    }
}

pub(crate) fn http() -> reqwest::Client {
    service::http_client(None, false).unwrap()
}

/// As `kill -9` does.
impl Drop for Process {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}
