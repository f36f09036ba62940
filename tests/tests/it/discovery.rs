//! Machines boot a discovery image with the agent inside: they are discovered and installed without container images.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, ensure};
use reqwest::Method;
use serde_json::{Value, json};
use system_tests::machine::live_image::{self, BootParts, OS_VERSION};
use system_tests::machine::{BootMedium, BootedMachine, Firmware, HOST_ADDRESS};
use system_tests::process::program;
use system_tests::{ApiClient, Installation, until};

const KERNEL: &str = "BOOT_KERNEL";
const PLATFORM: &str = "4.18";
/// Programs of this system that the agent runs on a live one.
const LIVE_PROGRAMS: [&str; 4] = [
    "/usr/bin/install",
    "/usr/bin/lsblk",
    "/sbin/blkid",
    "/sbin/wipefs",
];
/// A host boots, registers and sends its inventory on busy processors.
const DISCOVERY_LIMIT: std::time::Duration = std::time::Duration::from_mins(4);

/// Services with a live image whose live system runs the agent.
struct Site {
    installation: Installation,
    api: ApiClient,
}

impl Site {
    /// None without a kernel.
    async fn new(settings: &str) -> Result<Option<Self>> {
        let Some(kernel) = std::env::var_os(KERNEL) else {
            testkit::skipped("no kernel: BOOT_KERNEL is not set");
            return Ok(None);
        };
        let mut parts = BootParts::x86(Path::new(&kernel));
        let agent = program("atoll-agent")?;
        parts.live_programs = LIVE_PROGRAMS.map(PathBuf::from).into();
        // For its libraries: that of the tests is not static.
        parts.live_programs.push(agent.clone());
        let installation = Installation::start().await?;
        let agents = installation.folder("agents")?;
        strip(&agent, &agents.join("atoll-agent-x86_64"))?;
        parts.live_programs.pop();
        parts.live_programs.push(agents.join("atoll-agent-x86_64"));
        let live = live_image::build(&installation.folder("live")?, &parts)?;
        let name = format!("rhcos-full-iso-{OS_VERSION}-x86_64.iso");
        fs::copy(&live, installation.data().join("image-service").join(name))?;
        let services = installation.state()?.services;
        let seen = |url: &str| url.replace("127.0.0.1", HOST_ADDRESS);
        let os_images = json!([{
            "openshift_version": PLATFORM, "cpu_architecture": "x86_64", "version": OS_VERSION,
            "url": format!("file://{}", live.display()),
        }]);
        let settings = format!(
            "OS_IMAGES={os_images}\nSERVICE_BASE_URL={}\nIMAGE_SERVICE_BASE_URL={}\nALLOWED_HOSTS={HOST_ADDRESS}\nAGENT_DIR={}\n{settings}",
            seen(&services.api_url),
            seen(&services.image_service_url),
            agents.display(),
        );
        installation.change_settings(&settings).await?;
        let api = installation.api()?;
        Ok(Some(Self { installation, api }))
    }

    async fn call(&self, method: Method, path: &str, body: Option<&Value>) -> Result<Value> {
        let response = self.api.ask(method, path, body).await?;
        ensure!(
            response.status.is_success(),
            "{path}: {} {}",
            response.status,
            response.text()
        );
        response.json()
    }

    /// An infra-env whose images have the agent, with or without a cluster.
    async fn infra_env(&self, cluster_id: Option<&str>) -> Result<String> {
        let mut body = json!({
            "name": "embedded", "openshift_version": PLATFORM, "cpu_architecture": "x86_64",
            "pull_secret": r#"{"auths":{"quay.io":{"auth":"dTpw"}}}"#, "embedded_agent": true,
        });
        if let Some(id) = cluster_id {
            body["cluster_id"] = id.into();
        }
        let made = self
            .call(Method::POST, "/v2/infra-envs", Some(&body))
            .await?;
        assert_eq!(made["embedded_agent"], true);
        Ok(made["id"].as_str().context("no id")?.to_owned())
    }

    async fn image(&self, infra_env: &str, kind: &str) -> Result<PathBuf> {
        let origin = self.installation.state()?.services.image_service_url;
        let url = format!("{origin}/byid/{infra_env}/{PLATFORM}/x86_64/{kind}.iso");
        let response = reqwest::get(url).await?.error_for_status()?;
        let path = self
            .installation
            .folder("images")?
            .join(format!("{kind}.iso"));
        fs::write(&path, response.bytes().await?)?;
        Ok(path)
    }

    /// The only host, once `is_ready` says so.
    async fn host(
        &self,
        infra_env: &str,
        machine: &BootedMachine,
        is_ready: impl Fn(&Value) -> bool,
    ) -> Result<Value> {
        let path = format!("/v2/infra-envs/{infra_env}/hosts");
        let found = until("the host", DISCOVERY_LIMIT, async || {
            let hosts = self.call(Method::GET, &path, None).await?;
            let host = hosts.as_array().and_then(|hosts| hosts.first()).cloned();
            Ok(host.filter(&is_ready))
        });
        match found.await {
            Ok(host) => Ok(host),
            Err(error) => {
                let hosts = self.call(Method::GET, &path, None).await?;
                Err(error.context(format!("{hosts}\n{}", machine.console())))
            }
        }
    }
}

/// A copy of a program without debug information.
fn strip(program: &Path, copy: &Path) -> Result<()> {
    let stripped = Command::new("strip")
        .arg("-o")
        .arg(copy)
        .arg(program)
        .status();
    ensure!(stripped.context("running strip")?.success(), "strip fails");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_machine_is_discovered_without_a_container_image() -> Result<()> {
    let Some(site) = Site::new("").await? else {
        return Ok(());
    };
    let infra_env = site.infra_env(None).await?;
    let medium = BootMedium::Cd(site.image(&infra_env, "full").await?);
    let machine = BootedMachine::start(Firmware::Uefi, &medium, None)?;
    let has_inventory = |host: &Value| {
        host["inventory"]
            .as_str()
            .is_some_and(|text| !text.is_empty())
    };
    let host = site.host(&infra_env, &machine, has_inventory).await?;
    let inventory: Value = serde_json::from_str(host["inventory"].as_str().context("no text")?)?;
    assert_eq!(inventory["hostname"], "52-54-00-12-34-56", "{inventory}");
    assert_eq!(inventory["boot"]["current_boot_mode"], "uefi");
    assert_eq!(inventory["system_vendor"]["manufacturer"], "QEMU");
    let nic = &inventory["interfaces"][1];
    assert_eq!(nic["ipv4_addresses"], json!(["10.0.2.15/24"]), "{nic}");
    assert_eq!(nic["mac_address"], "52:54:00:12:34:56");
    assert!(
        host["discovery_agent_version"]
            .as_str()
            .is_some_and(|version| version.starts_with("atoll-agent/"))
    );
    drop(machine);
    site.installation.stop().await
}
