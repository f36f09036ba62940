//! The node's operating system is deployed on the written disk, so that the machine config operator finds its own and does
//! not restart the node for it.
//!
//! No container runs: ostree of the live system pulls the image that the node itself would pull. A failure costs the
//! restart that was to be saved, since a deployment is complete or not there.
//!
//! Source: openshift/assisted-installer, src/ops, OverwriteOsImage.

use std::path::Path;
use std::time::Duration;

use super::node_config::NodeConfig;
use super::partitions::PartitionTable;
use super::plan::InstallPlan;
use crate::command::succeed;
use crate::{Error, HostFiles};

/// Of every disk of the operating system.
const BOOT_PARTITION: u32 = 3;
const ROOT_PARTITION: u32 = 4;
const ROOT: &str = "/mnt";
const BOOT: &str = "/mnt/boot";
/// Logins of registries, which the discovery ignition wrote.
const LOGINS: &str = "/root/.docker/config.json";
const DEFAULT_PLATFORM: &str = "ignition.platform.id=metal";
const ENFORCING: &str = "/sys/fs/selinux/enforce";
const ATTEMPTS: u32 = 3;
const PAUSE: Duration = Duration::from_secs(5);
const COMMAND_TIMEOUT: Duration = Duration::from_mins(2);
/// For the download of an operating system.
const DEPLOY_TIMEOUT: Duration = Duration::from_mins(30);

/// Deploys the operating system of the node that the host becomes.
///
/// Errors: the control plane does not have its configuration in time; a program fails.
pub(super) async fn run(
    files: &HostFiles,
    plan: &InstallPlan,
    ignition: &Path,
    disk: &Path,
) -> Result<(), Error> {
    let config = NodeConfig::fetch(ignition).await?;
    let table = PartitionTable::read(files, disk)?;
    let deployment = Deployment {
        arguments: kernel_arguments(&plan.arguments, &config),
        image: config.os_image,
        platform: platform(files),
    };
    let commands = deployment.commands(&table, disk)?;
    // ostree of 4.14 fails under a policy of the live system.
    let is_enforcing = files.text(ENFORCING).as_deref() == Some("1");
    if is_enforcing {
        attempt("setenforce", &["0"]).await;
    }
    let done = run_all(&commands).await;
    if is_enforcing {
        attempt("setenforce", &["1"]).await;
    }
    if done.is_err() {
        attempt("umount", &["--recursive", ROOT]).await;
    }
    done
}

#[derive(Debug)]
struct Deployment {
    image: String,
    /// Of the kernel.
    arguments: Vec<String>,
    platform: String,
}

impl Deployment {
    fn commands(&self, table: &PartitionTable, disk: &Path) -> Result<Vec<Vec<String>>, Error> {
        let disk = disk.to_string_lossy();
        let words = |words: &[&str]| -> Vec<String> {
            words.iter().map(|word| (*word).to_owned()).collect()
        };
        // The node's image needs as much space as the written one. The rest of the disk stays free for partitions of
        // the ignition.
        let free = table.free_percent_after_doubling(ROOT_PARTITION);
        let number = ROOT_PARTITION.to_string();
        let mut grow = words(&["growpart", &disk, &number]);
        if free > 0 {
            grow.insert(1, format!("--free-percent={free}"));
        }
        let mut deploy = words(&[
            "ostree",
            "container",
            "image",
            "deploy",
            "--sysroot",
            ROOT,
            "--authfile",
            LOGINS,
            "--imgref",
            &format!("ostree-unverified-registry:{}", self.image),
            "--stateroot",
            "rhcos",
            "--karg",
            &self.platform,
            "--karg",
            "$ignition_firstboot",
        ]);
        for argument in &self.arguments {
            deploy.extend(["--karg".to_owned(), argument.clone()]);
        }
        let mut commands = vec![
            words(&["mount", table.device(ROOT_PARTITION)?, ROOT]),
            words(&["mount", table.device(BOOT_PARTITION)?, BOOT]),
            grow,
            words(&["xfs_growfs", ROOT]),
            deploy,
        ];
        // Freezing writes the journals back, which the boot loader does not read, also when the file system stays
        // mounted in the namespace of another service.
        for mount in [BOOT, ROOT] {
            commands.push(words(&["fsfreeze", "--freeze", mount]));
            commands.push(words(&["fsfreeze", "--unfreeze", mount]));
            commands.push(words(&["umount", mount]));
        }
        Ok(commands)
    }
}

/// The arguments that coreos-installer was given for the kernel, and those of the configuration.
fn kernel_arguments(installer: &[String], config: &NodeConfig) -> Vec<String> {
    const APPEND: &str = "--append-karg";
    let mut arguments = Vec::new();
    let mut words = installer.iter();
    while let Some(word) = words.next() {
        if word == APPEND {
            arguments.extend(words.next().cloned());
        } else if let Some(argument) = word.strip_prefix(APPEND) {
            arguments.extend(argument.strip_prefix('=').map(str::to_owned));
        }
    }
    arguments.extend(config.kernel_arguments.iter().cloned());
    arguments
}

/// The platform of the live system is that of the node.
fn platform(files: &HostFiles) -> String {
    let line = files.text("/proc/cmdline").unwrap_or_default();
    let mut arguments = line.split_whitespace();
    let own = arguments.find(|argument| argument.starts_with("ignition.platform.id="));
    own.unwrap_or(DEFAULT_PLATFORM).to_owned()
}

async fn run_all(commands: &[Vec<String>]) -> Result<(), Error> {
    for command in commands {
        let [program, arguments @ ..] = command.as_slice() else {
            continue;
        };
        let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        let timeout = if program == "ostree" {
            DEPLOY_TIMEOUT
        } else {
            COMMAND_TIMEOUT
        };
        let mut attempt = 1;
        while let Err(error) = succeed(program, &arguments, timeout).await {
            if attempt == ATTEMPTS {
                return Err(error);
            }
            tracing::warn!(
                attempt,
                error = error.chain(),
                "program failed, trying again"
            );
            tokio::time::sleep(PAUSE).await;
            attempt += 1;
        }
    }
    Ok(())
}

async fn attempt(program: &str, arguments: &[&str]) {
    if let Err(error) = succeed(program, arguments, COMMAND_TIMEOUT).await {
        tracing::warn!(error = error.chain(), "program failed");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::install::partitions::tests::host;

    #[test]
    fn the_image_is_deployed_on_the_written_disk() {
        let root = host();
        let files = HostFiles::below(root.path());
        let disk = Path::new("/dev/nvme0n1");
        let table = PartitionTable::read(&files, disk).unwrap();
        let installer = [
            "--append-karg",
            "ip=eno1:dhcp",
            "--copy-network",
            "--append-karg=a b",
        ];
        let config = NodeConfig {
            os_image: "quay.io/a/os@sha256:1".to_owned(),
            kernel_arguments: vec!["c=1".to_owned()],
        };
        let deployment = Deployment {
            arguments: kernel_arguments(&installer.map(str::to_owned), &config),
            image: config.os_image,
            platform: platform(&files),
        };
        let commands = deployment.commands(&table, disk).unwrap();
        let lines: Vec<String> = commands.iter().map(|command| command.join(" ")).collect();
        insta::assert_snapshot!(lines.join("\n"), @"
        mount /dev/nvme0n1p4 /mnt
        mount /dev/nvme0n1p3 /mnt/boot
        growpart --free-percent=44 /dev/nvme0n1 4
        xfs_growfs /mnt
        ostree container image deploy --sysroot /mnt --authfile /root/.docker/config.json --imgref ostree-unverified-registry:quay.io/a/os@sha256:1 --stateroot rhcos --karg ignition.platform.id=metal --karg $ignition_firstboot --karg ip=eno1:dhcp --karg a b --karg c=1
        fsfreeze --freeze /mnt/boot
        fsfreeze --unfreeze /mnt/boot
        umount /mnt/boot
        fsfreeze --freeze /mnt
        fsfreeze --unfreeze /mnt
        umount /mnt
        ");
    }

    #[test]
    fn the_platform_is_that_of_the_live_system() {
        let root = tempfile::tempdir().unwrap();
        std::fs::create_dir(root.path().join("proc")).unwrap();
        let files = HostFiles::below(root.path());
        assert_eq!(platform(&files), "ignition.platform.id=metal");
        let line = "BOOT_IMAGE=/x ignition.platform.id=nutanix a\n";
        std::fs::write(root.path().join("proc/cmdline"), line).unwrap();
        assert_eq!(platform(&files), "ignition.platform.id=nutanix");
    }

    #[tokio::test]
    async fn programs_run_in_their_order() {
        let folder = tempfile::tempdir().unwrap();
        let command = |script: String| vec!["sh".to_owned(), "-c".to_owned(), script];
        let path = folder.path().join("log").display().to_string();
        let commands = [
            command(format!("echo 1 >> {path}")),
            Vec::new(),
            command(format!("echo 2 >> {path}")),
        ];
        run_all(&commands).await.unwrap();
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "1\n2\n");
    }
}
