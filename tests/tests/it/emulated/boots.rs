//! Machines with the firmware of real ones boot the images, from CD, USB and the network.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, ensure};
use reqwest::Method;
use serde_json::json;
use sha2::{Digest as _, Sha256};
use system_tests::machine::live_image::{self, BootParts, OS_VERSION};
use system_tests::machine::{BootMedium, BootReport, Firmware, HOST_ADDRESS, boot};
use system_tests::{ApiClient, Installation};

/// Folder of an unpacked Debian package with a kernel: `cargo xtask test` sets it.
const KERNEL: &str = "BOOT_KERNEL";
/// Folder of unpacked Debian packages of arm64, likewise.
const ARM64_PACKAGES: &str = "BOOT_ARM64";
const PPC64LE_PACKAGES: &str = "BOOT_PPC64LE";
/// The last version whose static networks need no program from the root file system.
const PLATFORM: &str = "4.17";
const NETWORK: &str = "interfaces:\n- name: eth0\n  type: ethernet\n  state: up\n  ipv4: {enabled: true, dhcp: true}\n";
const MAC_ADDRESS: &str = "52:54:00:12:34:56";

struct Site {
    installation: Installation,
    api: ApiClient,
    infra_env: String,
    architecture: &'static str,
    /// The live image.
    live: PathBuf,
}

impl Site {
    /// The site of PCs; none without a kernel.
    async fn of_pcs() -> Result<Option<Self>> {
        let Some(kernel) = std::env::var_os(KERNEL) else {
            testkit::skipped("no kernel: BOOT_KERNEL is not set");
            return Ok(None);
        };
        let parts = BootParts::x86(Path::new(&kernel));
        Self::new(&parts).await.map(Some)
    }

    /// Services that machines reach, and an infra-env with a static network and a kernel argument.
    async fn new(parts: &BootParts) -> Result<Self> {
        let installation = Installation::start().await?;
        let architecture = parts.architecture;
        let live = live_image::build(&installation.folder("live")?, parts)?;
        let name = format!("rhcos-full-iso-{OS_VERSION}-{architecture}.iso");
        fs::copy(&live, installation.data().join("image-service").join(name))?;
        let services = installation.state()?.services;
        let seen = |url: &str| url.replace("127.0.0.1", HOST_ADDRESS);
        let os_images = json!([{
            "openshift_version": PLATFORM, "cpu_architecture": architecture, "version": OS_VERSION,
            "url": format!("file://{}", live.display()),
        }]);
        let settings = format!(
            "OS_IMAGES={os_images}\nSERVICE_BASE_URL={}\nIMAGE_SERVICE_BASE_URL={}\nALLOWED_HOSTS={HOST_ADDRESS}\nAGENT_DOCKER_IMAGE=quay.io/lab/agent:1\nINSTALLER_IMAGE=quay.io/lab/installer:1\nCONTROLLER_IMAGE=quay.io/lab/controller:1\n",
            seen(&services.api_url),
            seen(&services.image_service_url),
        );
        installation.change_settings(&settings).await?;
        let api = installation.api()?;
        let infra_env = json!({
            "name": "boots", "openshift_version": PLATFORM, "cpu_architecture": architecture,
            "pull_secret": r#"{"auths":{"quay.io":{"auth":"dTpw"}}}"#,
            "kernel_arguments": [{ "operation": "append", "value": "boots=yes" }],
            "static_network_config": [{
                "network_yaml": NETWORK,
                "mac_interface_map": [{ "mac_address": MAC_ADDRESS, "logical_nic_name": "eth0" }],
            }],
        });
        let made = api
            .ask(Method::POST, "/v2/infra-envs", Some(&infra_env))
            .await?;
        ensure!(made.status == 201, "{}", made.text());
        let infra_env = made.json()?["id"].as_str().context("no id")?.to_owned();
        Ok(Self {
            installation,
            api,
            infra_env,
            architecture,
            live,
        })
    }

    async fn get(&self, path: &str) -> Result<Vec<u8>> {
        let path = format!("/v2/infra-envs/{}{path}", self.infra_env);
        let response = self.api.ask(Method::GET, &path, None).await?;
        ensure!(response.status == 200, "{path}: {}", response.text());
        Ok(response.body)
    }

    /// The URL of an image of a kind, `full` or `minimal`.
    fn url(&self, kind: &str) -> Result<String> {
        let origin = self.installation.state()?.services.image_service_url;
        let (id, architecture) = (&self.infra_env, self.architecture);
        Ok(format!(
            "{origin}/byid/{id}/{PLATFORM}/{architecture}/{kind}.iso"
        ))
    }

    /// Downloads an image of a kind, `full` or `minimal`.
    async fn image(&self, kind: &str) -> Result<PathBuf> {
        let response = reqwest::get(self.url(kind)?).await?.error_for_status()?;
        let path = self
            .installation
            .folder("images")?
            .join(format!("{kind}.iso"));
        fs::write(&path, response.bytes().await?)?;
        Ok(path)
    }

    /// Boots a machine, which reports the parts that it has to have.
    async fn boots(&self, firmware: Firmware, medium: Medium, kind: &str) -> Result<()> {
        let booted = match medium {
            Medium::Cd => BootMedium::Cd(self.image(kind).await?),
            Medium::Usb => BootMedium::Usb(self.image(kind).await?),
            Medium::VirtualCd => BootMedium::VirtualCd(self.url(kind)?),
            Medium::Http => BootMedium::Http(self.url(kind)?.replace("127.0.0.1", HOST_ADDRESS)),
        };
        let report = boot(firmware, &booted).await?;
        let value = |name: &str| report.values.get(name).map_or("", String::as_str);
        let expected = match firmware {
            // The program of the image sees no other firmware of these.
            Firmware::Bios | Firmware::Power => "bios",
            Firmware::Uefi => "uefi",
            Firmware::SecureUefi | Firmware::SecureArm64 => "secureuefi",
        };
        assert_eq!(value("firmware"), expected);
        assert!(value("cmdline").contains(" boots=yes"), "{report:?}");
        let ignition = self.ignition(kind).await?;
        assert_eq!(
            report.files["/config.ign"], ignition,
            "{firmware:?} {medium:?}"
        );
        let is_minimal = kind == "minimal";
        assert_eq!(value("cmdline").contains("coreos.liveiso="), !is_minimal);
        if is_minimal {
            has_all(&report, &self.network().await?)?;
            assert_eq!(value("rootfs"), digest(&live_image::rootfs()), "{report:?}");
        }
        Ok(())
    }

    /// The digest of the ignition for a kind of image.
    async fn ignition(&self, kind: &str) -> Result<String> {
        let path =
            format!("/downloads/files?file_name=discovery.ign&discovery_iso_type={kind}-iso");
        Ok(digest(&self.get(&path).await?))
    }

    /// The digests of the files that static networks need in early boot.
    async fn network(&self) -> Result<Vec<(String, String)>> {
        let files = ignition::archive::read(&self.get("/downloads/minimal-initrd").await?)?;
        let digests = files
            .iter()
            .filter(|file| file.name.starts_with("/etc/assisted/network/") && !file.data.is_empty())
            .map(|file| (file.name.clone(), digest(&file.data)))
            .collect::<Vec<_>>();
        ensure!(!digests.is_empty(), "there is a static network");
        Ok(digests)
    }
}

fn digest(bytes: &[u8]) -> String {
    hex::encode(Sha256::digest(bytes))
}

fn has_all(report: &BootReport, files: &[(String, String)]) -> Result<()> {
    for (path, digest) in files {
        ensure!(
            report.files.get(path) == Some(digest),
            "{path} in {report:?}"
        );
    }
    Ok(())
}

/// The medium of an image.
#[derive(Debug, Clone, Copy)]
enum Medium {
    Cd,
    VirtualCd,
    Usb,
    Http,
}

/// Each way to boot an image, with both kinds of images: `full` and `minimal`.
const WAYS: [(Firmware, Medium); 8] = [
    (Firmware::Bios, Medium::Cd),
    (Firmware::Bios, Medium::VirtualCd),
    (Firmware::Bios, Medium::Usb),
    (Firmware::Uefi, Medium::Cd),
    (Firmware::Uefi, Medium::VirtualCd),
    (Firmware::Uefi, Medium::Usb),
    (Firmware::SecureUefi, Medium::Cd),
    (Firmware::Uefi, Medium::Http),
];

#[tokio::test(flavor = "multi_thread")]
async fn machines_boot_the_images() -> Result<()> {
    let Some(site) = Site::of_pcs().await? else {
        return Ok(());
    };
    for (kind, firmware, medium) in [
        ("full", Firmware::Uefi, Medium::Usb),
        ("full", Firmware::Bios, Medium::VirtualCd),
        ("minimal", Firmware::Bios, Medium::Usb),
        ("minimal", Firmware::SecureUefi, Medium::Cd),
        ("minimal", Firmware::Uefi, Medium::Http),
    ] {
        site.boots(firmware, medium, kind).await?;
    }
    let length = |path: &Path| Ok::<_, anyhow::Error>(fs::metadata(path)?.len());
    let (full, minimal) = (length(&site.live)?, length(&site.image("minimal").await?)?);
    assert!(minimal + live_image::rootfs().len() as u64 <= full + (1 << 20));
    over_the_network(&site).await?;
    site.installation.stop().await
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "emulates many machines: minutes; a sample runs always"]
async fn all_kinds_of_machines_boot_the_images() -> Result<()> {
    let Some(site) = Site::of_pcs().await? else {
        return Ok(());
    };
    for kind in ["full", "minimal"] {
        for (firmware, medium) in WAYS {
            site.boots(firmware, medium, kind).await?;
        }
    }
    site.installation.stop().await
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "emulates another processor: minutes"]
async fn arm64_machines_boot_the_images() -> Result<()> {
    let Some(packages) = std::env::var_os(ARM64_PACKAGES) else {
        testkit::skipped("no packages of arm64: BOOT_ARM64 is not set");
        return Ok(());
    };
    let site = Site::new(&BootParts::arm64(Path::new(&packages))).await?;
    for kind in ["full", "minimal"] {
        for medium in [Medium::Cd, Medium::Http] {
            site.boots(Firmware::SecureArm64, medium, kind).await?;
        }
    }
    site.installation.stop().await
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "emulates another processor; a sample of PCs runs always"]
async fn power_machines_boot_the_images() -> Result<()> {
    let Some(packages) = std::env::var_os(PPC64LE_PACKAGES) else {
        testkit::skipped("no packages of ppc64le: BOOT_PPC64LE is not set");
        return Ok(());
    };
    let site = Site::new(&BootParts::ppc64le(Path::new(&packages))).await?;
    for kind in ["full", "minimal"] {
        for medium in [Medium::Cd, Medium::Usb] {
            site.boots(Firmware::Power, medium, kind).await?;
        }
    }
    site.installation.stop().await
}

/// The network card's own iPXE runs the script of the API, which names kernel, initrd and root file system.
async fn over_the_network(site: &Site) -> Result<()> {
    let api = site.installation.state()?.services.api_url;
    let api = api.replace("127.0.0.1", HOST_ADDRESS);
    let id = &site.infra_env;
    let script = site.installation.folder("tftp")?.join("start");
    // TFTP names are short, and so is the first script.
    let text = format!(
        "#!ipxe\nchain {api}/api/assisted-install/v2/infra-envs/{id}/downloads/files?file_name=ipxe-script\n"
    );
    fs::write(&script, text)?;
    let report = boot(Firmware::Bios, &BootMedium::Network(script)).await?;
    let ignition = digest(&site.get("/downloads/files?file_name=discovery.ign").await?);
    assert_eq!(
        report.files.get("/config.ign"),
        Some(&ignition),
        "{report:?}"
    );
    assert_eq!(report.values["rootfs"], digest(&live_image::rootfs()));
    assert!(
        report.values["cmdline"].contains(" boots=yes"),
        "{report:?}"
    );
    has_all(&report, &site.network().await?)
}
