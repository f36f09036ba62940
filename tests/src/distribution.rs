//! Debian's docker-registry: the registry of the distribution project, with which ours has to be compatible.

use std::fs::{self, File};
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use anyhow::{Context as _, Result, bail};

use crate::{client, free_ports, until};

/// Path of the program, if not in PATH.
const VARIABLE: &str = "DOCKER_REGISTRY";
const NAME: &str = "docker-registry";
const START_LIMIT: Duration = Duration::from_mins(1);

/// A running registry without TLS and logins, with deletion enabled. Killed on drop, and with the test program.
#[derive(Debug)]
pub struct Distribution {
    child: Child,
    address: String,
    folder: PathBuf,
}

impl Distribution {
    /// The program; `None` where it is not installed.
    pub fn program() -> Option<PathBuf> {
        let path = std::env::var_os("PATH").unwrap_or_default();
        let in_path = std::env::split_paths(&path).map(|folder| folder.join(NAME));
        let named = std::env::var_os(VARIABLE).map(PathBuf::from);
        named.into_iter().chain(in_path).find(|it| it.is_file())
    }

    /// Starts it with its content and configuration in `folder`, which may hold content of another registry.
    ///
    /// Errors: it does not begin to answer, with its log.
    pub async fn start(program: &Path, folder: &Path) -> Result<Self> {
        fs::create_dir_all(folder).with_context(|| format!("making {}", folder.display()))?;
        let address = format!("{}:{}", Ipv4Addr::LOCALHOST, free_ports(1)?);
        let config = folder.join("config.yml");
        let root = folder.join("content");
        let text = format!(
            "version: 0.1\nlog: {{level: error}}\nhttp: {{addr: '{address}'}}\n\
             storage: {{filesystem: {{rootdirectory: '{}'}}, delete: {{enabled: true}}}}\n",
            root.display()
        );
        fs::write(&config, text)?;
        let log = folder.join("log");
        let child = Command::new("setpriv")
            .args(["--pdeathsig", "KILL", "--"])
            .arg(program)
            .arg("serve")
            .arg(config)
            .stdin(Stdio::null())
            .stdout(File::create(&log)?)
            .stderr(File::options().append(true).open(&log)?)
            .spawn()
            .context("running setpriv, which is of util-linux")?;
        let mut registry = Self {
            child,
            address,
            folder: root,
        };
        let (client, url) = (client(None)?, format!("http://{}/v2/", registry.address));
        until("docker-registry answers", START_LIMIT, async || {
            if registry.child.try_wait()?.is_some() {
                bail!("it has ended: {}", fs::read_to_string(&log)?);
            }
            let answer = client.get(&url).send().await;
            Ok(answer.ok().filter(|it| it.status().is_success()))
        })
        .await?;
        Ok(registry)
    }

    /// Host and port.
    pub fn address(&self) -> &str {
        &self.address
    }

    /// Its content, in distribution's layout.
    pub fn folder(&self) -> &Path {
        &self.folder
    }
}

impl Drop for Distribution {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}
