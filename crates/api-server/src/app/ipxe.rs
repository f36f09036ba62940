//! iPXE scripts of an infra-env.

use model::Error;
use model::infra_env::InfraEnv;
use model::versions::CpuArchitecture;
use rules::urls::BootArtifacts;

use super::ApiServer;
use super::infra_envs::IpxeScript;
use crate::db::hosts;
use crate::db::tx;

impl ApiServer {
    /// The script that boots hosts of an infra-env over the network.
    ///
    /// Errors: NotFound – the requesting host is installed and boots from its disk; Internal – several hosts
    /// have its MAC. In both cases iPXE exits to the next boot device.
    pub(crate) async fn ipxe_script(
        &self,
        infra_env: &InfraEnv,
        request: IpxeScript<'_>,
    ) -> Result<String, Error> {
        match (request.mac, request.by_boot_order) {
            (Some(mac), _) => self.check_boots_discovery(infra_env, mac).await?,
            (None, true) => {
                let url = format!(
                    "{}{}/downloads/files?file_name=ipxe-script&ipxe_script_type=boot-order-control",
                    self.settings.callback_url(),
                    rules::urls::infra_env(infra_env.id)
                );
                let url = if request.is_signed {
                    self.tokens.sign_url(infra_env, url).await?.url
                } else {
                    url
                };
                return Ok(rules::steps::ipxe::redirect_script(&url));
            }
            (None, false) => {}
        }
        let artifacts = if request.is_signed {
            self.boot_artifacts(infra_env).await?
        } else {
            self.unsigned_boot_artifacts(infra_env)?
        };
        Ok(rules::steps::ipxe::discovery_script(
            &artifacts,
            infra_env.kernel_arguments.as_deref(),
        ))
    }

    /// URLs of an infra-env's boot artifacts, with access to its initial ramdisk.
    ///
    /// Errors: Invalid – no image of its version and architecture.
    pub(super) async fn boot_artifacts(
        &self,
        infra_env: &InfraEnv,
    ) -> Result<BootArtifacts, Error> {
        let mut artifacts = self.unsigned_boot_artifacts(infra_env)?;
        artifacts.initrd = self.tokens.sign_url(infra_env, artifacts.initrd).await?.url;
        Ok(artifacts)
    }

    fn unsigned_boot_artifacts(&self, infra_env: &InfraEnv) -> Result<BootArtifacts, Error> {
        let version =
            Some(infra_env.openshift_version.as_str()).filter(|version| !version.is_empty());
        let architecture = infra_env
            .cpu_architecture
            .unwrap_or(CpuArchitecture::X86_64);
        let offer = self.offer.get();
        let image = rules::versions::find_os_image(&offer.os_images, version, architecture)?;
        let url = &offer.image_service_url;
        Ok(rules::urls::boot_artifacts(url, infra_env, image))
    }

    async fn check_boots_discovery(&self, infra_env: &InfraEnv, mac: &str) -> Result<(), Error> {
        let rows = tx("find host by MAC", async || {
            let mut connection = self.pool()?.acquire().await?;
            hosts::of_infra_env(&mut connection, &self.keys().await, infra_env.id).await
        })
        .await?;
        let mut hosts = rows
            .into_iter()
            .map(hosts::HostRow::into_state)
            .filter(|host| {
                host.inventory
                    .iter()
                    .flat_map(|inventory| &inventory.interfaces)
                    .any(|interface| interface.mac_address.eq_ignore_ascii_case(mac))
            });
        let (host, others) = (hosts.next(), hosts.count());
        match host {
            // Either may be installed: booting the wrong one into discovery would end its installation.
            Some(_) if others > 0 => Err(Error::Internal {
                doing: format!(
                    "choosing one boot script for the {} hosts with MAC {mac} (deregister all but one)",
                    others + 1
                ),
                source: None,
            }),
            Some(host) if !rules::steps::ipxe::boots_discovery(&host.record) => {
                Err(Error::not_found("boot script for the host with MAC", mac))
            }
            _ => Ok(()),
        }
    }
}
