//! A name server in the network of a pod, as sites have one, and clients that know no other: dnsmasq and curl of this
//! machine in containers without an image.

use std::fs;
use std::net::Ipv4Addr;
use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use anyhow::{Context as _, Result};
use system_tests::{Scratch, until};

use crate::podman_compose::podman;
use crate::say;

/// Its start.
const READY_LIMIT: Duration = Duration::from_mins(1);
/// Folders of this machine that its programs need, with their places. Relative links as of `/lib` do not lead there.
const MOUNTS: [&str; 5] = [
    "/usr:/usr:ro",
    "/usr/lib:/lib:ro",
    "/usr/lib64:/lib64:ro",
    "/etc/passwd:/etc/passwd:ro",
    "/etc/group:/etc/group:ro",
];

/// A running name server, removed on drop.
pub(crate) struct NameServer {
    name: String,
    network: String,
    address: Ipv4Addr,
    /// The root folder of its container and of the clients'.
    root: Scratch,
}

/// A response that a client printed.
pub(crate) struct PrintedResponse {
    pub(crate) status: u16,
    /// Lower case.
    pub(crate) headers: String,
    pub(crate) body: String,
}

impl NameServer {
    /// Starts it in a network of podman, at `address` if there is one. `domain` and every name below it resolve to the
    /// network's gateway, at which the pod publishes its ports; other names as the network's own server resolves them.
    pub(crate) async fn start(
        network: &str,
        address: Option<Ipv4Addr>,
        domain: &str,
    ) -> Result<Self> {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let format = "{{(index .Subnets 0).Gateway}}";
        let gateway = podman(&["network", "inspect", "--format", format, network])?;
        let gateway = gateway.trim();
        let mut server = Self {
            name: format!("atoll-test-names-{}-{number}", std::process::id()),
            network: network.to_owned(),
            address: Ipv4Addr::UNSPECIFIED,
            root: Scratch::new()?,
        };
        let mut run = vec!["run", "--detach", "--name", &server.name];
        let address = address.map(|address| address.to_string());
        if let Some(address) = &address {
            run.extend(["--ip", address]);
        }
        let names = format!("--address=/{domain}/{gateway}");
        let others = format!("--server={gateway}");
        let program = [
            "/usr/sbin/dnsmasq",
            "--keep-in-foreground",
            "--user=root",
            "--no-resolv",
            "--no-hosts",
            "--log-facility=-",
            "--pid-file=",
            "--conf-file=/dev/null",
            &names,
            &others,
        ];
        server.run(&run, &program).with_context(|| {
            format!(
                "starting dnsmasq of the package dnsmasq-base in {}",
                server.network
            )
        })?;
        let format = "{{range .NetworkSettings.Networks}}{{.IPAddress}}{{end}}";
        let found = podman(&["inspect", "--format", format, &server.name])?;
        let log = || podman(&["logs", &server.name]).unwrap_or_default();
        server.address = found.trim().parse().with_context(log)?;
        until("the name server answers", READY_LIMIT, async || {
            let resolved = server.resolves(domain).ok();
            Ok(resolved.filter(|address| address == gateway).map(drop))
        })
        .await?;
        Ok(server)
    }

    /// Runs a program of this machine in a container of the network.
    fn run(&self, arguments: &[&str], program: &[&str]) -> Result<String> {
        let root = self.root.path().join("root");
        // The runtime makes the places of mounts.
        fs::create_dir_all(root.join("tmp"))?;
        let root = root.to_string_lossy();
        let mut all = arguments.to_vec();
        for mount in MOUNTS {
            all.extend(["--volume", mount]);
        }
        all.extend(["--network", &self.network, "--rootfs", &root]);
        all.extend(program);
        podman(&all)
    }

    /// Runs a client, which resolves names at this server alone.
    fn client(&self, arguments: &[&str], program: &[&str]) -> Result<String> {
        let server = self.address.to_string();
        let own = ["run", "--rm", "--dns", &server];
        self.run(&[&own, arguments].concat(), program)
    }

    /// The address of a name, as the C library of a client resolves it.
    pub(crate) fn resolves(&self, name: &str) -> Result<String> {
        let found = self.client(&[], &["/usr/bin/getent", "ahostsv4", name])?;
        let address = found.split_whitespace().next();
        Ok(address.context("no address")?.to_owned())
    }

    /// The response that curl gets from a URL, with the certificate in `authority` trusted alone.
    pub(crate) fn get(&self, url: &str, authority: &Path) -> Result<PrintedResponse> {
        let mount = format!("{}:/ca.crt:ro", authority.display());
        let printed = self.client(
            &["--volume", &mount],
            &[
                "/usr/bin/curl",
                "--silent",
                "--show-error",
                "--include",
                "--cacert",
                "/ca.crt",
                url,
            ],
        )?;
        let (head, body) = printed.split_once("\r\n\r\n").context("no head")?;
        let status = head.split(' ').nth(1).context("no status")?;
        Ok(PrintedResponse {
            status: status.trim().parse()?,
            headers: head.to_lowercase(),
            body: body.to_owned(),
        })
    }
}

impl Drop for NameServer {
    fn drop(&mut self) {
        if let Err(error) = podman(&["rm", "--force", "--time", "0", &self.name]) {
            say(&format!("{} stays: {error:#}", self.name));
        }
    }
}
