//! `atoll install`: from one file to a running pod, in a network namespace whose uplink counts packets.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail, ensure};
use bundle::assemble::{BOOT_IMAGE_LIST, BundleContent, BundleHeading};
use bundle::{BundleFile, ImageUse, PlannedContent};
use oci_client::image::{ImageLocation, Layout};
use serde_json::{Value, json};
use system_tests::pod::{Engine, PORTS};
use system_tests::process::program;
use system_tests::{Scratch, free_ports, until};

use crate::podman_compose::succeed;
use crate::{Trials, say};

/// Images of the pod.
const IMAGES: [&str; 7] = [
    "api-server",
    "catalog-server",
    "db",
    "image-service",
    "proxy",
    "registry",
    "webui",
];
const VERSION: &str = env!("CARGO_PKG_VERSION");
/// Releases in the local registry: the bundle has a boot image for the first one, the archive one for the second.
const RELEASES: [&str; 2] = ["4.18.30", "4.19.1"];
const NEWER: &str = "99.0.0";
/// The boot image of the archive in the registry, by the operating system of the second release.
const ARCHIVED: &str = "openshift/boot-images:418.94.4.19.1-x86_64";
const READY_LIMIT: Duration = Duration::from_mins(3);
/// Settings of published ports.
const PUBLISHED: [&str; 9] = [
    "PUBLISH_API",
    "PUBLISH_IMAGES",
    "PUBLISH_WEBUI",
    "PUBLISH_WEBUI_STATIC",
    "PUBLISH_REGISTRY",
    "PUBLISH_DB",
    "PUBLISH_CATALOG",
    "PUBLISH_HTTP",
    "PUBLISH_HTTPS",
];
const UPLINK: &str = "uplink";
/// Makes an uplink with a default route, as hosts have it; packets that leave by it are lost, and counted.
const NETWORK: &str = "ip link set lo up && ip link add uplink type veth peer name far \
    && echo 1 > /proc/sys/net/ipv6/conf/uplink/disable_ipv6 && ip link set far up && ip addr add 198.51.100.1/24 dev uplink \
    && ip link set uplink up && ip route add default via 198.51.100.254 dev uplink";

pub(crate) fn add(trials: &mut Trials) {
    trials.add_long(
        "install::a_bundle_becomes_a_pod_without_a_network",
        installs,
    );
}

async fn installs(_engine: Engine) -> Result<()> {
    if !rustix::process::geteuid().is_root() {
        say("install: not root, and so without a network namespace: not tested");
        return Ok(());
    }
    let site = Site::new()?;
    let content = site.content().await?;
    let file = site.write(content, VERSION).await?;
    site.refuses_damage(&file)?;
    site.refuses_small_disks(&file)?;
    site.refuses_other_architectures().await?;
    let newer = site.write(site.content().await?, NEWER).await?;

    for path in ["atoll", ".env", "mirror-results"] {
        site.kill_at(&file, path)?;
    }
    // By another program of the same version, which hands over to that of the bundle.
    let other = site.scratch.path().join("other-atoll");
    fs::copy(program("atoll")?, &other)?;
    fs::OpenOptions::new()
        .append(true)
        .open(&other)
        .and_then(|mut file| std::io::Write::write_all(&mut file, b"\n"))?;
    let began = Instant::now();
    let printed = site.atoll(
        &other,
        &["install", &shown(&file), "--answers", &site.answers()?],
    )?;
    ensure!(
        printed.contains("Continuing with the program of the bundle"),
        "{printed}"
    );
    ensure!(printed.contains("is ready"), "{printed}");
    site.names_manifests(&printed)?;
    say(&format!(
        "installed in {:.1} s",
        began.elapsed().as_secs_f64()
    ));
    site.has_content().await?;
    site.serves_boot_images().await?;

    let own = site.pod().join("atoll");
    site.sql("create table kept as select 7 as number")?;
    let before = site.containers()?;
    ensure!(before.len() == 6, "{before:?}");
    site.atoll(&own, &["install", &shown(&file)])?;
    ensure!(
        site.containers()? == before,
        "a repeated installation restarts containers"
    );

    site.scales(&own, &before)?;

    site.refuses_small_disks_for_backups(&newer)?;
    site.atoll(&own, &["install", &shown(&newer)])?;
    site.sql("update kept set number = 8")?;
    let printed = site.atoll(&own, &["install", &shown(&file)])?;
    ensure!(printed.contains("forward only"), "{printed}");
    let kept = site.sql("select number from kept")?;
    ensure!(kept.trim() == "7", "{kept}");
    // Of changed data, and by the program that the older bundle has put there.
    site.sql("update kept set number = 9")?;
    site.atoll(&own, &["install", &shown(&newer)])?;
    site.atoll(&own, &["install", &shown(&file)])?;
    let kept = site.sql("select number from kept")?;
    ensure!(kept.trim() == "9", "{kept}");
    site.has_content().await?;

    let sent = site.run(&[
        "cat",
        &format!("/sys/class/net/{UPLINK}/statistics/tx_packets"),
    ])?;
    ensure!(sent.trim() == "0", "{sent} packets left the machine");
    say("0 packets left the machine");
    Ok(())
}

/// A host: a network namespace, and a folder with an odd name.
struct Site {
    name: String,
    scratch: Scratch,
    holder: Child,
    first_port: u16,
}

impl Site {
    fn new() -> Result<Self> {
        let holder = Command::new("unshare")
            .args(["--net", "sleep", "infinity"])
            .stdin(Stdio::null())
            .spawn()
            .context("running unshare")?;
        let site = Self {
            name: format!("atoll-test-install-{}", std::process::id()),
            scratch: Scratch::new()?,
            holder,
            first_port: free_ports(PORTS)?,
        };
        // The namespace exists when it differs from this one.
        let namespace = |pid: &str| fs::read_link(format!("/proc/{pid}/ns/net"));
        while namespace(&site.holder.id().to_string())? == namespace("self")? {
            std::thread::yield_now();
        }
        // /sys shows the devices of the namespace in which it was mounted.
        site.run(&["sh", "-c", NETWORK])?;
        Ok(site)
    }

    fn pod(&self) -> PathBuf {
        self.scratch.path().join("an odd ä folder/pod")
    }

    /// Runs a command in the namespace.
    fn run(&self, command: &[&str]) -> Result<String> {
        let mut run = Command::new("nsenter");
        run.arg(format!("--net=/proc/{}/ns/net", self.holder.id()))
            .args(["unshare", "--mount", "sh", "-c"])
            .arg("mount -t sysfs sysfs /sys 2>/dev/null; exec \"$@\"")
            .arg("sh")
            .args(command);
        succeed(&mut run)
    }

    /// Runs a program with the folder of the pod.
    fn atoll(&self, program: &Path, arguments: &[&str]) -> Result<String> {
        let mut run = Command::new("nsenter");
        run.arg(format!("--net=/proc/{}/ns/net", self.holder.id()));
        run.arg(program)
            .args(arguments)
            .arg("--dir")
            .arg(self.pod());
        succeed(&mut run)
    }

    /// Images of the engine, a boot image, and manifests that name the images.
    async fn content(&self) -> Result<BundleContent> {
        let mut content = BundleContent::default();
        for image in IMAGES {
            let folder = self.scratch.path().join("layouts").join(image);
            if !folder.exists() {
                fs::create_dir_all(folder.parent().context("no parent")?)?;
                let mut save = Command::new("podman");
                save.args([
                    "save",
                    "--quiet",
                    "--format=oci-dir",
                    "--uncompressed",
                    "--output",
                ]);
                save.arg(&folder)
                    .arg(format!("localhost/atoll/{image}:{VERSION}"));
                succeed(&mut save)?;
            }
            let layout = Layout { folder, name: None };
            content
                .images
                .add_layout(&layout, ImageUse::Service)
                .await?;
        }
        for version in RELEASES {
            let layout = self.release(version).await?;
            let name = format!("localhost/openshift/release-images:{version}-x86_64");
            let layout = ImageLocation::Layout(layout);
            content
                .images
                .add(&name, layout, ImageUse::Registry)
                .await?;
        }
        content.add_archives(&self.archives()?)?;
        let compose = fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../compose.yaml"))?;
        content.manifests.push(("compose.yaml".to_owned(), compose));
        let image = PlannedContent::file("images/live.iso", self.boot_image()?);
        let list = json!([boot_image_entry()]).to_string();
        let list = PlannedContent::text(BOOT_IMAGE_LIST, list);
        content.others.extend([image, list]);
        content.add_program(&program("atoll")?);
        Ok(content)
    }

    /// A release whose only image is that of the archive.
    async fn release(&self, version: &str) -> Result<Layout> {
        let layouts = self.scratch.path().join("layouts");
        let folder = layouts.join(version);
        if !folder.exists() {
            let index: Value =
                serde_json::from_slice(&fs::read(layouts.join("webui/index.json"))?)?;
            let digest = index["manifests"][0]["digest"].as_str();
            let image = format!("localhost/atoll/webui@{}", digest.context("no digest")?);
            let client = oci_client::Client::new(oci_client::ClientOptions::default())?;
            let place = format!("oci://{}:release:{version}", folder.display());
            let images = [("cli", image.as_str())];
            testkit::release::publish_payload(&client, &place, version, &images).await?;
        }
        Ok(Layout { folder, name: None })
    }

    /// An archive of an image and a boot image, which were in layouts.
    fn archives(&self) -> Result<PathBuf> {
        let (set, folder) = (self.scratch.path().join("set.yaml"), self.scratch.path());
        let archives = folder.join("archives");
        if !archives.exists() {
            let (layout, boot) = (folder.join("layouts/webui"), folder.join("layouts/boot"));
            let mut push = Command::new(program("atoll")?);
            push.args(["image", "push"]).arg(self.boot_image()?);
            succeed(push.arg(format!("oci://{}:{ARCHIVED}", boot.display())))?;
            let text = format!(
                "kind: ImageSetConfiguration\napiVersion: mirror.openshift.io/v1alpha2\nmirror:\n  \
                 additionalImages: [{{name: \"oci://{}\"}}, {{name: \"oci://{}\"}}]\n",
                layout.display(),
                boot.display(),
            );
            fs::write(&set, text)?;
            let mut mirror = Command::new(program("atoll")?);
            mirror.arg("mirror").arg("--config").arg(set);
            mirror.arg(format!("file://{}", archives.display()));
            succeed(mirror.arg("--dir").arg(folder.join("workspace")))?;
        }
        Ok(archives)
    }

    /// The image service has the boot images of both releases.
    async fn serves_boot_images(&self) -> Result<()> {
        let port = self.first_port + 1;
        for version in ["4.18", "4.19"] {
            let url = format!(
                "http://127.0.0.1:{port}/boot-artifacts/kernel?version={version}&arch=x86_64"
            );
            // The service reads the image first, and then the proxy has to notice that it is ready.
            until("the image is served", READY_LIMIT, async || {
                let answer = self.run(&["curl", "--silent", "--fail", "-o", "/dev/null", &url]);
                Ok(answer.ok())
            })
            .await?;
        }
        Ok(())
    }

    /// A live image.
    fn boot_image(&self) -> Result<PathBuf> {
        let file = self.scratch.path().join("live.iso");
        if !file.exists() {
            let mut make = Command::new(program("atoll")?);
            succeed(make.args(["image", "make-test-iso"]).arg(&file))?;
        }
        Ok(file)
    }

    /// The content of the bundle is there, and on offer.
    async fn has_content(&self) -> Result<()> {
        self.offers().await?;
        self.has_archives()
    }

    /// The releases of the bundle and their boot images are on offer, and the settings list none of them.
    async fn offers(&self) -> Result<()> {
        let settings = fs::read_to_string(self.pod().join(".env"))?;
        for line in ["\nOS_IMAGES=[]\n", "\nRELEASE_IMAGES=[]\n"] {
            ensure!(settings.contains(line), "{settings}");
        }
        ensure!(!self.pod().join("images/live.iso").exists());
        let api = format!(
            "http://127.0.0.1:{}/api/assisted-install/v2",
            self.first_port
        );
        let listed = |path: &str, member: &str| -> Result<Vec<String>> {
            let url = format!("{api}/{path}");
            let answer = self.run(&["curl", "--silent", "--fail", &url])?;
            let list: Vec<Value> = serde_json::from_str(&answer)?;
            let texts = list.iter().filter_map(|it| it[member].as_str());
            Ok(texts.map(str::to_owned).collect())
        };
        // The registry reports its content, which the API server reads then.
        until("the releases are on offer", READY_LIMIT, async || {
            let releases = listed("release-images", "version").unwrap_or_default();
            Ok((releases == RELEASES).then_some(()))
        })
        .await?;
        let systems = listed("os-images", "version")?;
        ensure!(
            systems == ["418.94.202511191518-0", "418.94.4.19.1"],
            "{systems:?}"
        );
        Ok(())
    }

    /// The registry has the image of the archive, and the pod's folder no copy of the archive.
    fn has_archives(&self) -> Result<()> {
        let volume = format!("{}_registry", self.name);
        let mut inspect = Command::new("podman");
        let root =
            succeed(inspect.args(["volume", "inspect", "--format={{.Mountpoint}}", &volume]))?;
        let repositories = Path::new(root.trim()).join("docker/registry/v2/repositories");
        let image = repositories
            .join("atoll/webui/_manifests/tags")
            .join(VERSION);
        ensure!(image.exists(), "{}: not published", image.display());
        ensure!(!self.pod().join("atoll-archives").exists());
        Ok(())
    }

    /// The printed folder of the manifests for clusters is there.
    fn names_manifests(&self, printed: &str) -> Result<()> {
        let mut lines = printed
            .lines()
            .filter(|it| it.contains("manifests for clusters"));
        let (line, others) = (lines.next().context("no manifests")?, lines.count());
        ensure!(others == 0, "{printed}");
        let folder = line.strip_prefix("manifests for clusters written to ");
        let folder = Path::new(folder.with_context(|| line.to_owned())?);
        let results = self.pod().join("mirror-results");
        ensure!(folder.starts_with(results), "{line}: elsewhere");
        ensure!(folder.join("mapping.txt").exists(), "{line}: incomplete");
        Ok(())
    }

    /// A newer version is not installed where its backup does not fit, and nothing is written then.
    fn refuses_small_disks_for_backups(&self, newer: &Path) -> Result<()> {
        let mut folder = self.pod().into_os_string();
        folder.push("-backups");
        fs::create_dir(&folder)?;
        let script = "mount -t tmpfs -o size=64m tmpfs \"$1\" && shift && exec \"$@\"";
        let mut run = Command::new("unshare");
        run.args(["--mount", "sh", "-c", script, "sh"]).arg(&folder);
        run.arg(self.pod().join("atoll")).arg("install").arg(newer);
        let before = fs::read(self.pod().join("installation.json"))?;
        let Err(error) = succeed(run.arg("--dir").arg(self.pod())) else {
            bail!("a version was installed without space for the backup of the previous one");
        };
        let error = format!("{error:#}");
        ensure!(error.contains("pod-backups needs"), "{error}");
        ensure!(fs::read(self.pod().join("installation.json"))? == before);
        fs::remove_dir(folder)?;
        Ok(())
    }

    async fn write(&self, content: BundleContent, version: &str) -> Result<PathBuf> {
        let file = self.scratch.path().join(format!("bundle {version}.tar"));
        let heading = BundleHeading {
            version,
            architecture: std::env::consts::ARCH,
        };
        self.write_as(content, &file, heading).await?;
        Ok(file)
    }

    async fn write_as(
        &self,
        content: BundleContent,
        file: &Path,
        heading: BundleHeading<'_>,
    ) -> Result<()> {
        let mut progress = |_| {};
        content.write(file, heading, None, &mut progress).await?;
        Ok(())
    }

    /// Kills an installation when this file of the pod exists.
    fn kill_at(&self, file: &Path, path: &str) -> Result<()> {
        let mut run = Command::new("nsenter");
        run.arg(format!("--net=/proc/{}/ns/net", self.holder.id()));
        run.arg(program("atoll")?).arg("install").arg(file);
        run.args(["--answers", &self.answers()?, "--dir"])
            .arg(self.pod());
        let mut child = run.stdout(Stdio::null()).stderr(Stdio::null()).spawn()?;
        while !self.pod().join(path).exists() {
            ensure!(
                child.try_wait()?.is_none(),
                "it ended before {path} was written"
            );
            std::thread::yield_now();
        }
        // Nsenter has become the program.
        child.kill()?;
        child.wait()?;
        Ok(())
    }

    /// A folder with too little space is refused with both numbers.
    fn refuses_small_disks(&self, file: &Path) -> Result<()> {
        let disk = self.scratch.path().join("small");
        fs::create_dir(&disk)?;
        let script = "mount -t tmpfs -o size=64m tmpfs \"$1\" && shift && exec \"$@\"";
        let mut run = Command::new("unshare");
        run.args(["--mount", "sh", "-c", script, "sh"]).arg(&disk);
        run.arg(program("atoll")?).arg("install").arg(file);
        run.args(["--answers", &self.answers()?, "--dir"])
            .arg(disk.join("pod"));
        let Err(error) = succeed(&mut run) else {
            bail!("a bundle was installed on a small disk");
        };
        let error = format!("{error:#}");
        ensure!(
            error.contains("needs") && error.contains("64.0 MiB free"),
            "{error}"
        );
        Ok(())
    }

    async fn refuses_other_architectures(&self) -> Result<()> {
        let file = self.scratch.path().join("other.tar");
        let heading = BundleHeading {
            version: VERSION,
            architecture: "riscv64",
        };
        self.write_as(BundleContent::default(), &file, heading)
            .await?;
        let refused = self.atoll(&program("atoll")?, &["install", &shown(&file)]);
        let Err(error) = refused else {
            bail!("a bundle of another architecture was installed");
        };
        ensure!(
            format!("{error:#}").contains("it is for riscv64"),
            "{error:#}"
        );
        ensure!(!self.pod().exists());
        Ok(())
    }

    /// Neither a damaged file nor a foreign one is installed, and nothing is written then.
    fn refuses_damage(&self, file: &Path) -> Result<()> {
        let bundle = BundleFile::open(file, None)?;
        let last = bundle.manifest().members.last().context("no members")?;
        let damaged = self.scratch.path().join("damaged.tar");
        for (place, expected) in [(last.offset, "is damaged"), (u64::MAX, "is truncated")] {
            fs::copy(file, &damaged)?;
            let target = fs::OpenOptions::new().write(true).open(&damaged)?;
            if place == u64::MAX {
                target.set_len(bundle.manifest().size - 512)?;
            } else {
                std::os::unix::fs::FileExt::write_all_at(&target, b"?", place)?;
            }
            let refused = self.atoll(
                &program("atoll")?,
                &["install", &shown(&damaged), "--answers", &self.answers()?],
            );
            let Err(error) = refused else {
                bail!("a damaged bundle was installed");
            };
            ensure!(format!("{error:#}").contains(expected), "{error:#}");
            ensure!(!self.pod().exists() && self.containers()?.is_empty());
        }
        fs::remove_file(&damaged)?;
        Ok(())
    }

    fn answers(&self) -> Result<String> {
        let path = self.scratch.path().join("answers.yaml");
        let third = std::process::id() % 200;
        let mut text = format!(
            "host: atoll.example.org\nsettings:\n  COMPOSE_PROJECT_NAME: {}\n  \
             SUBNET: 10.211.{third}.0/24\n  GATEWAY: 10.211.{third}.1\n  CONTENT_REGISTRY: registry:5000\n",
            self.name
        );
        for (name, port) in PUBLISHED.iter().zip(self.first_port..) {
            writeln!(text, "  {name}: {port}")?;
        }
        fs::write(&path, text)?;
        Ok(shown(&path))
    }

    /// Scaling a service touches no container of the others.
    fn scales(&self, own: &Path, before: &BTreeMap<String, String>) -> Result<()> {
        self.atoll(own, &["pod", "scale", "api-server=3"])?;
        let scaled = self.containers()?;
        ensure!(scaled.len() == 8, "{scaled:?}");
        for (name, id) in before {
            ensure!(scaled.get(name) == Some(id), "scaling restarts {name}");
        }
        let settings = fs::read_to_string(self.pod().join(".env"))?;
        ensure!(settings.contains("\nAPI_SERVER_REPLICAS=3\n"), "{settings}");
        let status = self.atoll(own, &["pod", "status"])?;
        ensure!(status.matches(" healthy").count() == 8, "{status}");
        self.atoll(own, &["pod", "scale", "api-server=1"])?;
        ensure!(self.containers()? == *before);
        Ok(())
    }

    /// Ids of running containers by name.
    fn containers(&self) -> Result<BTreeMap<String, String>> {
        let mut list = Command::new("podman");
        list.args([
            "ps",
            "--no-trunc",
            "--format",
            "{{.Names}} {{.ID}}",
            "--filter",
        ]);
        list.arg(format!("label=io.podman.compose.project={}", self.name));
        let text = succeed(&mut list)?;
        let pairs = text.lines().filter_map(|line| line.split_once(' '));
        Ok(pairs
            .map(|(name, id)| (name.to_owned(), id.to_owned()))
            .collect())
    }

    fn sql(&self, statement: &str) -> Result<String> {
        let container = format!("{}_db_1", self.name);
        let mut run = Command::new("podman");
        run.args(["exec", &container, "psql", "-qtAc", statement, "installer"]);
        succeed(&mut run)
    }
}

impl Drop for Site {
    fn drop(&mut self) {
        let label = format!("label=io.podman.compose.project={}", self.name);
        let list = |arguments: &[&str]| {
            let output = Command::new("podman")
                .args(arguments)
                .args(["--filter", &label])
                .output();
            let output = output.map(|it| String::from_utf8_lossy(&it.stdout).into_owned());
            output.unwrap_or_default()
        };
        for id in list(&["ps", "--all", "--quiet"]).lines() {
            self.run(&["podman", "rm", "--force", "--volumes", "--time", "5", id])
                .ok();
        }
        for name in list(&["volume", "ls", "--quiet"]).lines() {
            self.run(&["podman", "volume", "rm", "--force", name]).ok();
        }
        self.run(&["podman", "network", "rm", &format!("{}_default", self.name)])
            .ok();
        self.holder.kill().ok();
        self.holder.wait().ok();
    }
}

/// The entry of the boot image in OS_IMAGES.
fn boot_image_entry() -> Value {
    json!({
        "openshift_version": "4.18", "cpu_architecture": "x86_64", "version": "418.94.202511191518-0",
        "url": "file:///images/live.iso",
    })
}

fn shown(path: &Path) -> String {
    path.display().to_string()
}
