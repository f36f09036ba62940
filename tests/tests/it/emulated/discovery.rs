//! Machines boot a discovery image with the agent inside: they are discovered and installed without container images.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use axum::Router;
use axum::routing::get;
use reqwest::Method;
use serde_json::{Value, json};
use system_tests::machine::live_image::{self, BootParts, OS_VERSION};
use system_tests::machine::{BootMedium, BootedMachine, Firmware, HOST_ADDRESS};
use system_tests::process::program;
use system_tests::{ApiClient, Installation, until};

/// Folder of an unpacked Debian package with a kernel: `cargo xtask test` sets it, and the next.
const KERNEL: &str = "BOOT_KERNEL";
/// The real coreos-installer.
const COREOS_INSTALLER: &str = "COREOS_INSTALLER";
const PLATFORM: &str = "4.18";
/// Programs of this system that the agent runs on a live one.
const LIVE_PROGRAMS: [&str; 4] = [
    "/usr/bin/install",
    "/usr/bin/lsblk",
    "/sbin/blkid",
    "/sbin/wipefs",
];
/// A host boots, registers and sends its inventory; more than that is a hang, also on busy processors.
const DISCOVERY_LIMIT: Duration = Duration::from_mins(20);

/// Services with a live image whose live system runs the agent.
struct Site {
    installation: Installation,
    api: ApiClient,
}

impl Site {
    /// None without a kernel. `programs` are those of the live system besides the usual ones.
    async fn new(settings: &str, programs: &[PathBuf]) -> Result<Option<Self>> {
        let Some(kernel) = std::env::var_os(KERNEL) else {
            testkit::skipped("no kernel: BOOT_KERNEL is not set");
            return Ok(None);
        };
        let mut parts = BootParts::x86(Path::new(&kernel));
        let agent = program("atoll-agent")?;
        parts.live_programs = LIVE_PROGRAMS.map(PathBuf::from).into();
        let installation = Installation::start().await?;
        let agents = installation.folder("agents")?;
        strip(&agent, &agents.join("atoll-agent-x86_64"))?;
        // For its libraries: that of the tests is not static.
        parts.live_programs.push(agents.join("atoll-agent-x86_64"));
        parts.live_programs.extend_from_slice(programs);
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

    /// An infra-env whose images have the agent, with `more` members.
    async fn infra_env(&self, more: Value) -> Result<String> {
        let mut body = json!({
            "name": "embedded", "openshift_version": PLATFORM, "cpu_architecture": "x86_64",
            "pull_secret": r#"{"auths":{"quay.io":{"auth":"dTpw"}}}"#, "embedded_agent": true,
        });
        for (name, value) in more.as_object().into_iter().flatten() {
            body[name] = value.clone();
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
                Err(error.context(format!("{hosts}\n{}", machine.agent_log())))
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
    let Some(site) = Site::new("", &[]).await? else {
        return Ok(());
    };
    let infra_env = site.infra_env(json!({})).await?;
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

/// Waits for a text on the console.
async fn shows(machine: &BootedMachine, text: &str) -> Result<()> {
    let shown = until(text, DISCOVERY_LIMIT, async || {
        Ok(machine.console().contains(text).then_some(()))
    });
    shown.await.with_context(|| machine.console())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_wrong_network_is_mended_at_the_console() -> Result<()> {
    let Some(site) = Site::new("", &[]).await? else {
        return Ok(());
    };
    let wrong = json!({ "operation": "append", "value": "live.address=192.0.2.99" });
    let infra_env = site
        .infra_env(json!({ "kernel_arguments": [wrong] }))
        .await?;
    let medium = BootMedium::Cd(site.image(&infra_env, "full").await?);
    let mut machine = BootedMachine::start(Firmware::Bios, &medium, None)?;
    shows(&machine, "eth0         52:54:00:12:34:56 192.0.2.99/24").await?;
    for (question, answer) in [
        ("Type a letter", "n\n"),
        ("Interface (eth0)", "eth0\n"),
        ("Address with prefix", "10.0.2.15\n"),
        ("is no address with a prefix", "10.0.2.15/24\n"),
        ("Default gateway", "10.0.2.2\n"),
        ("DNS servers", "10.0.2.3\n"),
    ] {
        shows(&machine, question).await?;
        machine.type_text(answer).await?;
    }
    let is_there = |host: &Value| host["id"].is_string();
    site.host(&infra_env, &machine, is_there).await?;
    shows(&machine, "this host is registered").await?;
    drop(machine);
    site.installation.stop().await
}

/// Requirements that a small virtual machine meets, and validations that need servers which are not here.
const LENIENT: &str = r#"HW_VALIDATOR_REQUIREMENTS=[{"version":"default","worker":{"cpu_cores":1,"ram_mib":512,"disk_size_gb":1}}]
DISABLED_HOST_VALIDATIONS=ntp-synced
"#;
/// Start and length of the only partition of the written image. Units: MiB.
const PARTITION: (u64, u64) = (1, 40);

#[tokio::test(flavor = "multi_thread")]
#[ignore = "emulates a machine for minutes"]
async fn a_machine_is_installed_without_a_container_image() -> Result<()> {
    let Some(installer) = std::env::var_os(COREOS_INSTALLER) else {
        testkit::skipped("no coreos-installer: COREOS_INSTALLER is not set");
        return Ok(());
    };
    let Some(site) = Site::new(LENIENT, &[installer.into()]).await? else {
        return Ok(());
    };
    let folder = site.installation.folder("disks")?;
    let image = os_image(&folder)?;
    let origin = serve(image).await?;
    let imported = json!({
        "name": "installed", "api_vip_dnsname": HOST_ADDRESS, "openshift_cluster_id": "6b1f3a52-6f5a-4c5e-9c0e-3f4d5a6b7c8d",
    });
    let cluster = site
        .call(Method::POST, "/v2/clusters/import", Some(&imported))
        .await?;
    let cluster = cluster["id"].as_str().context("no id")?;
    let endpoint = json!({ "ignition_endpoint": { "url": format!("{origin}/config") } });
    site.call(
        Method::PATCH,
        &format!("/v2/clusters/{cluster}"),
        Some(&endpoint),
    )
    .await?;
    let infra_env = site.infra_env(json!({ "cluster_id": cluster })).await?;
    let medium = BootMedium::Usb(site.image(&infra_env, "minimal").await?);
    let disk = folder.join("disk.img");
    fs::File::create(&disk)?.set_len(8 << 30)?;
    let mut machine = BootedMachine::start(Firmware::Bios, &medium, Some(&disk))?;
    let host = site
        .host(&infra_env, &machine, |host| host["status"] == "known")
        .await?;
    let host = format!(
        "/v2/infra-envs/{infra_env}/hosts/{}",
        host["id"].as_str().context("no id")?
    );
    let arguments = json!({ "args": ["--image-url", format!("{origin}/image.raw")] });
    site.call(
        Method::PATCH,
        &format!("{host}/installer-args"),
        Some(&arguments),
    )
    .await?;
    let install = format!("{host}/actions/install");
    site.call(Method::POST, &install, Some(&json!({}))).await?;
    // It restarts at the end, which switches this machine off.
    machine.wait().await?;
    let record = site.call(Method::GET, &host, None).await?;
    assert_eq!(
        record["status"],
        "added-to-existing-cluster",
        "{record}\n{}",
        machine.agent_log()
    );
    let logs = site.call(Method::GET, &host, None).await?["logs_info"].clone();
    assert_eq!(logs, "completed");
    let written = ignition_on(&disk, &folder)?;
    let expected = site
        .call(Method::GET, &format!("{host}/ignition"), None)
        .await?;
    let expected: Value = serde_json::from_str(expected["config"].as_str().context("no text")?)?;
    assert_eq!(serde_json::from_str::<Value>(&written)?, expected);
    site.installation.stop().await
}

/// An image of an operating system: as much of it as coreos-installer needs, a partition `boot`.
fn os_image(folder: &Path) -> Result<Vec<u8>> {
    let (start, length) = PARTITION;
    let partition = folder.join("boot.ext4");
    fs::File::create(&partition)?.set_len(length << 20)?;
    run(Command::new("/sbin/mke2fs")
        .args(["-q", "-t", "ext4", "-L", "boot"])
        .arg(&partition))?;
    let image = folder.join("image.raw");
    fs::File::create(&image)?.set_len((start + length + 1) << 20)?;
    let table = format!("1:{start}M:+{length}M");
    run(Command::new("/sbin/sgdisk")
        .args(["-n", &table, "-c", "1:boot"])
        .arg(&image))?;
    let file = fs::File::options().write(true).open(&image)?;
    std::os::unix::fs::FileExt::write_all_at(&file, &fs::read(&partition)?, start << 20)?;
    Ok(fs::read(&image)?)
}

/// The configuration for the first boot of an installed disk.
fn ignition_on(disk: &Path, folder: &Path) -> Result<String> {
    use std::io::{Read as _, Seek as _, SeekFrom};
    let (start, length) = PARTITION;
    let mut file = fs::File::open(disk)?;
    file.seek(SeekFrom::Start(start << 20))?;
    let mut content = Vec::new();
    file.take(length << 20).read_to_end(&mut content)?;
    let partition = folder.join("installed.ext4");
    fs::write(&partition, content)?;
    let mut cat = Command::new("/sbin/debugfs");
    let output = cat
        .args(["-R", "cat /ignition/config.ign"])
        .arg(&partition)
        .output()?;
    Ok(String::from_utf8(output.stdout)?)
}

fn run(command: &mut Command) -> Result<()> {
    let output = command.output()?;
    ensure!(
        output.status.success(),
        "{command:?}: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    Ok(())
}

/// Serves the image, and the ignition of the cluster that the host joins. The origin, as machines see it.
async fn serve(image: Vec<u8>) -> Result<String> {
    let ignition = json!({
        "ignition": { "version": "3.2.0" },
        // By this file the service knows that the cluster resolves its own names.
        "storage": { "files": [{ "path": "/etc/kubernetes/manifests/coredns.yaml" }] },
    });
    let ignition = ignition.to_string();
    let router = Router::new()
        .route("/config/{pool}", get(move || async move { ignition }))
        .route("/image.raw", get(move || async move { image }));
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
    let port = listener.local_addr()?.port();
    tokio::spawn(async move { axum::serve(listener, router).await });
    Ok(format!("http://{HOST_ADDRESS}:{port}"))
}
