//! Boot scripts of iPXE.

use model::host::{Host, HostStage, HostStatus};
use model::infra_env::{KernelArgument, KernelArgumentOperation};

use crate::urls::BootArtifacts;

/// The script that boots the discovery system.
///
/// `kernel_arguments` is the infra-env's JSON list as text.
pub fn discovery_script(artifacts: &BootArtifacts, kernel_arguments: Option<&str>) -> String {
    let BootArtifacts {
        kernel,
        rootfs,
        initrd,
    } = artifacts;
    let user: Vec<KernelArgument> = kernel_arguments
        .and_then(|text| serde_json::from_str(text).ok())
        .unwrap_or_default();
    let appended = user
        .iter()
        .filter(|argument| argument.operation == Some(KernelArgumentOperation::Append))
        .map(|argument| argument.value.as_str());
    model::ipxe::boot_script(kernel, rootfs, initrd, appended)
}

/// The script that repeats the request with the machine's MAC, which only the firmware knows.
/// Source: assisted-service, internal/bminventory/inventory_v2_handlers.go, hostRedirectIPXEScript.
pub fn redirect_script(url: &str) -> String {
    let separator = if url.contains('?') { '&' } else { '?' };
    format!("#!ipxe\nchain {url}{separator}mac=${{net0/mac}}\n")
}

/// Whether a host that is found by its MAC boots the discovery image, and not from its disk.
/// Source: assisted-service, internal/bminventory/inventory_v2_handlers.go, canServeHostIPXEScript.
pub fn boots_discovery(host: &Host) -> bool {
    match host.status {
        HostStatus::Installed | HostStatus::AddedToExistingCluster => false,
        HostStatus::InstallingInProgress => {
            let stage = host
                .progress
                .as_ref()
                .and_then(|progress| progress.current_stage);
            !matches!(
                stage,
                Some(
                    HostStage::Rebooting
                        | HostStage::WaitingForIgnition
                        | HostStage::Configuring
                        | HostStage::Joined
                        | HostStage::Done
                )
            )
        }
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use model::host::HostProgressInfo;

    use super::*;

    #[test]
    fn the_script_names_every_artifact() {
        let artifacts = BootArtifacts {
            kernel: "http://i/kernel".to_owned(),
            rootfs: "http://i/rootfs".to_owned(),
            initrd: "http://i/initrd".to_owned(),
        };
        let user = r#"[{"operation":"append","value":"quiet"},{"operation":"delete","value":"x"}]"#;
        insta::assert_snapshot!(discovery_script(&artifacts, Some(user)), @r#"
        #!ipxe
        initrd --name initrd http://i/initrd
        kernel http://i/kernel initrd=initrd coreos.live.rootfs_url=http://i/rootfs random.trust_cpu=on rd.luks.options=discard ignition.firstboot ignition.platform.id=metal console=tty1 console=ttyS1,115200n8 coreos.inst.persistent-kargs="console=tty1 console=ttyS1,115200n8" quiet
        boot
        "#);
    }

    #[test]
    fn the_firmware_fills_in_its_mac() {
        assert_eq!(
            redirect_script("http://a/files?file_name=ipxe-script"),
            "#!ipxe\nchain http://a/files?file_name=ipxe-script&mac=${net0/mac}\n"
        );
    }

    #[test]
    fn installed_hosts_boot_from_disk() {
        let host = |status, stage| Host {
            status,
            progress: Some(HostProgressInfo {
                current_stage: stage,
                ..HostProgressInfo::default()
            }),
            ..Host::default()
        };
        for (status, stage, expected) in [
            (HostStatus::Known, None, true),
            (HostStatus::Installed, None, false),
            (
                HostStatus::InstallingInProgress,
                Some(HostStage::WritingImageToDisk),
                true,
            ),
            (
                HostStatus::InstallingInProgress,
                Some(HostStage::Rebooting),
                false,
            ),
            (
                HostStatus::InstallingInProgress,
                Some(HostStage::Joined),
                false,
            ),
        ] {
            assert_eq!(
                boots_discovery(&host(status, stage)),
                expected,
                "{status} {stage:?}"
            );
        }
    }
}
