//! Steps `download-boot-artifacts` and `reboot-for-reclaim`: a host that leaves its cluster becomes discovered again.
//!
//! Source: assisted-installer-agent, src/commands/actions.

use std::path::{Component, Path};

use serde::Deserialize;

use super::context::{StepContext, StepOutcome, only};
use crate::boot_artifacts::{ArtifactUrls, BootFolder};
use crate::{HostFiles, fetch, install};

#[derive(Debug, Deserialize)]
struct DownloadRequest {
    #[serde(flatten)]
    urls: ArtifactUrls,
    host_fs_mount_dir: String,
}

#[derive(Debug, Deserialize)]
struct RebootRequest {
    host_fs_mount_dir: String,
}

pub(super) async fn download(
    context: &StepContext,
    arguments: &[String],
) -> Result<StepOutcome, String> {
    let request: DownloadRequest = only(arguments)?;
    let folder = boot_folder(&context.files, &request.host_fs_mount_dir)?;
    let pem = context.api.cacert().map(std::fs::read).transpose();
    let pem = pem.map_err(|error| format!("reading the trusted certificates: {error}"))?;
    let client = fetch::download_client(pem.as_deref(), context.api.is_insecure());
    let client = client.map_err(|error| error.chain())?;
    let stored = folder.store(&client, &request.urls).await;
    stored.map_err(|error| error.chain())?;
    Ok(StepOutcome {
        output: "boot artifacts are in place".to_owned(),
        ..StepOutcome::default()
    })
}

/// Restarts the host only into the discovery image: otherwise it would return to the cluster that it left.
pub(super) async fn reboot(
    context: &StepContext,
    arguments: &[String],
) -> Result<StepOutcome, String> {
    let request: RebootRequest = only(arguments)?;
    let folder = boot_folder(&context.files, &request.host_fs_mount_dir)?;
    if !folder.has_entry() {
        return Err(
            "the host has no boot loader entry of the discovery image: download-boot-artifacts has to precede"
                .to_owned(),
        );
    }
    let rebooted = if folder.is_own_root() {
        install::reboot().await
    } else {
        folder.run("systemctl", &["reboot"]).await
    };
    rebooted.map_err(|error| error.chain())?;
    Ok(StepOutcome::default())
}

/// The host's root is mounted in an agent's container, and is the own one of an agent without.
fn boot_folder(files: &HostFiles, mount: &str) -> Result<BootFolder, String> {
    let path = Path::new(mount);
    let is_plain = path
        .components()
        .all(|part| matches!(part, Component::RootDir | Component::Normal(_)));
    if !path.is_absolute() || !is_plain {
        return Err(format!("host_fs_mount_dir {mount:?} is no absolute path"));
    }
    let mounted = files.path(mount);
    let is_mounted = mounted.join("boot").is_dir();
    Ok(BootFolder::below(if is_mounted {
        mounted
    } else {
        files.path("/")
    }))
}

#[cfg(test)]
mod tests {
    use model::steps::StepType;
    use serde_json::json;

    use super::*;
    use crate::steps::network_tests::context;
    use crate::steps::run;

    #[tokio::test]
    async fn boot_folders_are_those_of_the_host() {
        let root = tempfile::tempdir().unwrap();
        let files = HostFiles::below(root.path());
        let exists = |folder: &BootFolder| folder.has_entry();
        let entries = root.path().join("boot/loader/entries");
        std::fs::create_dir_all(&entries).unwrap();
        std::fs::write(entries.join("00-assisted-discovery.conf"), "").unwrap();
        assert!(exists(&boot_folder(&files, "/host").unwrap()));
        std::fs::create_dir_all(root.path().join("host/boot")).unwrap();
        assert!(!exists(&boot_folder(&files, "/host").unwrap()));
        for wrong in ["", "host", "/host/../.."] {
            assert!(boot_folder(&files, wrong).is_err(), "{wrong}");
        }
        assert!(
            boot_folder(&HostFiles::default(), "/")
                .unwrap()
                .is_own_root()
        );
    }

    #[tokio::test]
    async fn a_host_without_artifacts_is_not_restarted() {
        let root = tempfile::tempdir().unwrap();
        let context = context(&root);
        let request = json!({ "host_fs_mount_dir": "/host" }).to_string();
        let outcome = run(&context, StepType::RebootForReclaim, &[request]).await;
        assert_eq!(outcome.exit_code, -1);
        assert!(
            outcome.error.contains("no boot loader entry"),
            "{}",
            outcome.error
        );
        let url = "http://127.0.0.1:1/x";
        let request = json!({ "kernel_url": url, "initrd_url": url, "host_fs_mount_dir": "/host" });
        let outcome = run(
            &context,
            StepType::DownloadBootArtifacts,
            &[request.to_string()],
        )
        .await;
        assert!(outcome.error.contains("rootfs_url"), "{}", outcome.error);
    }
}
