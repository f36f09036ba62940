//! iPXE scripts of an infra-env.

use std::sync::Arc;

use model::Error;
use model::infra_env::InfraEnv;
use model::versions::CpuArchitecture;
use rules::urls::BootArtifacts;

use super::offer::CurrentOffer;
use super::token_validity::InfraEnvTokens;
use crate::db::{Database, hosts, tx};

/// Parameters of a boot script request.
#[derive(Debug, Clone, Copy)]
pub(crate) struct IpxeScript<'a> {
    /// Boot order control: an installed host boots from its disk.
    pub(crate) by_boot_order: bool,
    /// MAC address of the requesting host.
    pub(crate) mac: Option<&'a str>,
    /// Its URLs have tokens of the infra-env.
    pub(crate) is_signed: bool,
}

/// Boot scripts of infra-envs.
#[derive(Debug)]
pub(crate) struct IpxeScripts {
    pub(super) db: Database,
    pub(super) tokens: Arc<InfraEnvTokens>,
    pub(super) offer: Arc<CurrentOffer>,
    /// URL of the API, for hosts.
    pub(super) callback_url: String,
}

impl IpxeScripts {
    /// The script that boots hosts of an infra-env over the network.
    ///
    /// Errors: NotFound – the requesting host is installed and boots from its disk; Internal – several hosts
    /// have its MAC. In both cases iPXE exits to the next boot device.
    pub(crate) async fn script(
        &self,
        infra_env: &InfraEnv,
        request: IpxeScript<'_>,
    ) -> Result<String, Error> {
        match (request.mac, request.by_boot_order) {
            (Some(mac), _) => self.check_boots_discovery(infra_env, mac).await?,
            (None, true) => {
                let url = format!(
                    "{}{}/downloads/files?file_name=ipxe-script&ipxe_script_type=boot-order-control",
                    self.callback_url,
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
            boot_artifacts(&self.offer, &self.tokens, infra_env).await?
        } else {
            unsigned_boot_artifacts(&self.offer, infra_env)?
        };
        Ok(rules::steps::ipxe::discovery_script(
            &artifacts,
            infra_env.kernel_arguments.as_deref(),
        ))
    }

    async fn check_boots_discovery(&self, infra_env: &InfraEnv, mac: &str) -> Result<(), Error> {
        let rows = tx("find host by MAC", async || {
            let mut connection = self.db.pool()?.acquire().await?;
            hosts::of_infra_env(&mut connection, &self.db.keys().await, infra_env.id).await
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

/// URLs of an infra-env's boot artifacts, with access to its initial ramdisk.
///
/// Errors: Invalid – no image of its version and architecture.
pub(super) async fn boot_artifacts(
    offer: &CurrentOffer,
    tokens: &InfraEnvTokens,
    infra_env: &InfraEnv,
) -> Result<BootArtifacts, Error> {
    let mut artifacts = unsigned_boot_artifacts(offer, infra_env)?;
    artifacts.initrd = tokens.sign_url(infra_env, artifacts.initrd).await?.url;
    Ok(artifacts)
}

fn unsigned_boot_artifacts(
    offer: &CurrentOffer,
    infra_env: &InfraEnv,
) -> Result<BootArtifacts, Error> {
    let version = Some(infra_env.openshift_version.as_str()).filter(|version| !version.is_empty());
    let architecture = infra_env
        .cpu_architecture
        .unwrap_or(CpuArchitecture::X86_64);
    let offer = offer.get();
    let stream = &infra_env.os_stream;
    let image = rules::versions::find_os_image(&offer.os_images, version, architecture, stream)?;
    let url = &offer.image_service_url;
    Ok(rules::urls::boot_artifacts(url, infra_env, image.name()))
}
