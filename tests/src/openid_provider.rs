//! The OpenID provider `oidc-provider` of npm, which is certified, over TLS by an authority of its own.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use serde_json::json;
use testkit::certificates::Authority;

use crate::{client, free_ports, until};

/// Folder with its node_modules.
const VARIABLE: &str = "OPENID_PROVIDER";
const SCRIPT: &str = include_str!("../fixtures/openid-provider/provider.mjs");
const START_LIMIT: Duration = Duration::from_mins(1);

/// A running provider. Killed on drop; it ends with the test program.
#[derive(Debug)]
pub struct OpenIdProvider {
    child: Child,
    issuer: String,
    folder: PathBuf,
}

impl OpenIdProvider {
    /// Id of the client whose access tokens are JWTs.
    pub const CLIENT: &str = "atoll";
    /// Id of a client whose access tokens are opaque.
    pub const OPAQUE_CLIENT: &str = "opaque";
    /// Secret of both. Its characters need an encoding for HTTP's basic authentication.
    pub const SECRET: &str = "a secret: %&+";
    /// Audience of the JWTs.
    pub const AUDIENCE: &str = "urn:atoll:api";

    /// The folder of its modules; `None`, and a skipped test, where they are not installed.
    pub fn modules() -> Option<PathBuf> {
        let modules = std::env::var_os(VARIABLE).map(PathBuf::from);
        if modules.is_none() {
            testkit::skipped("OPENID_PROVIDER names no folder with oidc-provider of npm");
        }
        modules
    }

    /// Starts it for the web UI at `webui`, with its files in `folder`. Access tokens are valid for `lifetime`.
    ///
    /// Errors: it does not begin to answer, with its log.
    pub async fn start(
        modules: &Path,
        folder: PathBuf,
        webui: &str,
        lifetime: Duration,
    ) -> Result<Self> {
        let issuer = format!("https://localhost:{}", free_ports(1)?);
        let authority = Authority::new("Authority of a test")?;
        let (certificate, key) = authority.sign(&["localhost"])?;
        let options = json!({
            "modules": modules,
            "issuer": issuer,
            "certificate": folder.join("certificate.pem"),
            "key": folder.join("key.pem"),
            "secret": Self::SECRET,
            "redirect_uri": format!("{webui}/login/callback"),
            "log_out_uri": format!("{webui}/logout"),
            "audience": Self::AUDIENCE,
            "lifetime_s": lifetime.as_secs(),
        });
        for (name, text) in [
            ("authority.pem", &authority.certificate),
            ("certificate.pem", &certificate),
            ("key.pem", &key),
            ("options.json", &options.to_string()),
            ("provider.mjs", &SCRIPT.to_owned()),
        ] {
            let path = folder.join(name);
            fs::write(&path, text).with_context(|| format!("writing {}", path.display()))?;
        }
        let mut provider = Self {
            child: Self::run(&folder)?,
            issuer,
            folder,
        };
        provider.answers().await?;
        Ok(provider)
    }

    fn run(folder: &Path) -> Result<Child> {
        let log = File::create(folder.join("log"))?;
        Command::new("node")
            .args(["provider.mjs", "options.json"])
            .current_dir(folder)
            .stdin(Stdio::piped())
            .stdout(log.try_clone()?)
            .stderr(log)
            .spawn()
            .context("running node")
    }

    async fn answers(&mut self) -> Result<()> {
        let client = client(Some(&self.authority()))?;
        let url = format!("{}/.well-known/openid-configuration", self.issuer);
        until("the OpenID provider answers", START_LIMIT, async || {
            if self.child.try_wait()?.is_some() {
                bail!("it ended: {}", fs::read_to_string(self.folder.join("log"))?);
            }
            let answer = client.get(&url).send().await;
            Ok(answer.ok().filter(|it| it.status().is_success()).map(drop))
        })
        .await
    }

    /// Its URL.
    pub fn issuer(&self) -> &str {
        &self.issuer
    }

    /// The certificate of its authority.
    pub fn authority(&self) -> PathBuf {
        self.folder.join("authority.pem")
    }

    /// Ends it.
    ///
    /// Errors: it cannot be killed.
    pub fn stop(&mut self) -> Result<()> {
        self.child.kill().context("killing the OpenID provider")?;
        self.child.wait().map(drop).context("awaiting its end")
    }
}

impl Drop for OpenIdProvider {
    fn drop(&mut self) {
        self.stop().ok();
    }
}
