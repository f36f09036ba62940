//! The reverse proxy in front of an installation, with the names of a site.

use std::fs::{self, File};
use std::net::Ipv4Addr;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use testkit::certificates;

use crate::process::program;
use crate::{client, free_ports, until};

/// Ports of the proxy: three forwarded ones, its status, files, HTTP and HTTPS.
const PORTS: u16 = 7;
const START_LIMIT: Duration = Duration::from_mins(1);

/// A running proxy. Killed on drop, and with the test program.
#[derive(Debug)]
pub struct SiteProxy {
    child: Child,
    first_port: u16,
}

impl SiteProxy {
    /// Domain of the site's names.
    pub const DOMAIN: &str = "site.example";

    /// Starts it in front of `services`, with its certificate and its files in `folder`.
    ///
    /// Errors: it does not become ready, with its log.
    pub async fn start(services: &testkit::demo::AtollState, folder: &Path) -> Result<Self> {
        let first_port = free_ports(PORTS)?;
        let page = services.ui_url.as_deref().context("there is no page")?;
        let (api, images) = (&services.api_url, &services.image_service_url);
        let [to_page, to_api, to_images, status, files, http, https] =
            std::array::from_fn(|index| (first_port..).nth(index).unwrap_or_default().to_string());
        let domain = Self::DOMAIN;
        let pem = certificates::self_signed(&format!("*.{domain}"))?;
        fs::write(folder.join("site.pem"), pem.cert + &pem.key)?;
        fs::write(folder.join("crt-list.txt"), "site.pem\n")?;
        fs::create_dir_all(folder.join("files"))?;
        let log = folder.join("log");
        let mut child = Command::new("setpriv");
        child
            .args(["--pdeathsig", "KILL", "--"])
            .arg(program("proxy")?)
            .env("LISTEN_ADDRESS", Ipv4Addr::LOCALHOST.to_string())
            .env(
                "FORWARDS",
                format!("{to_page}={page},{to_api}={api},{to_images}={images}"),
            )
            .env("PROXY_STATUS_PORT", status)
            .env("FILES_ROOT", folder.join("files"))
            .env("FILES_PORT", files)
            .env("NETWORK_DOMAIN", domain)
            .env("PROXY_HTTP_PORT", http)
            .env("PROXY_HTTPS_PORT", https)
            .env("CERTIFICATE_LIST", folder.join("crt-list.txt"))
            .env("API_URL", api)
            .env("WEB_URL", page)
            .env("REGISTRY_ADDRESS", &services.registry)
            .stdin(Stdio::null())
            .stdout(File::create(&log)?)
            .stderr(File::options().append(true).open(&log)?);
        let child = child
            .spawn()
            .context("running setpriv, which is of util-linux")?;
        let mut proxy = Self { child, first_port };
        let (client, url) = (client(None)?, format!("{}/ready", proxy.status()));
        until("the proxy is ready", START_LIMIT, async || {
            if proxy.child.try_wait()?.is_some() {
                bail!("it has ended: {}", fs::read_to_string(&log)?);
            }
            let response = client.get(&url).send().await;
            Ok(response.ok().filter(|it| it.status().is_success()))
        })
        .await?;
        Ok(proxy)
    }

    /// Base address of the web UI behind it.
    pub fn page(&self) -> String {
        self.plain(0)
    }

    /// Base address of the API behind it.
    pub fn api(&self) -> String {
        self.plain(1)
    }

    /// Base address of the image service behind it.
    pub fn images(&self) -> String {
        self.plain(2)
    }

    /// Base address of its own status.
    pub fn status(&self) -> String {
        self.plain(3)
    }

    /// Base address of its files.
    pub fn files(&self) -> String {
        self.plain(4)
    }

    /// Base address of HTTPS for the name with `label` below the domain.
    pub fn named(&self, label: &str) -> String {
        let port = self.first_port + 6;
        format!("https://{label}.{}:{port}", Self::DOMAIN)
    }

    fn plain(&self, index: u16) -> String {
        format!("http://{}:{}", Ipv4Addr::LOCALHOST, self.first_port + index)
    }
}

impl Drop for SiteProxy {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}
