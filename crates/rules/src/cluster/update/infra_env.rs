//! Changes of an infra-env.

use model::Error;
use model::events::EventSeverity;
use model::infra_env::{InfraEnv, InfraEnvUpdateParams};

use super::context::UpdateContext;
use super::image_parts::{ImageParts, set_image_parts};
use crate::NewEvent;
use crate::input;
use crate::urls;
use crate::versions::find_os_image;

/// Applies the changes, all or none; the caller stores a new pull secret.
///
/// Errors: `Invalid` naming the field.
/// Source: assisted-service, internal/bminventory/inventory.go, UpdateInfraEnvInternal.
pub fn infra_env(
    infra_env: &mut InfraEnv,
    params: InfraEnvUpdateParams,
    ctx: &UpdateContext<'_>,
) -> Result<Vec<NewEvent>, Error> {
    let mut changed = infra_env.clone();
    set_texts(&mut changed, &params, ctx)?;
    if let Some(kind) = params.image_type {
        changed.r#type = kind;
    }
    set_image_parts(
        &mut changed,
        ImageParts {
            static_network_config: params.static_network_config,
            rendezvous_ip: params.rendezvous_ip,
            kernel_arguments: params.kernel_arguments,
            network_discovery_delay_seconds: params.network_discovery_delay_seconds,
            embedded_agent: params.embedded_agent,
        },
    )?;
    if let Some(version) = params
        .openshift_version
        .filter(|version| !version.is_empty())
    {
        changed.openshift_version = version;
    }
    let wanted = changed.cpu_architecture.unwrap_or_default();
    let version = Some(changed.openshift_version.as_str());
    let os_stream = params.os_stream.unwrap_or(changed.os_stream.clone());
    let os_image = find_os_image(&ctx.offer.os_images, version, wanted, &os_stream)?;
    os_image.other_stream.clone_into(&mut changed.os_stream);
    changed
        .openshift_version
        .clone_from(&os_image.image.openshift_version);
    if changed.static_network_config != infra_env.static_network_config
        || changed.openshift_version != infra_env.openshift_version
    {
        crate::network::static_networks::applicable_static_network(
            &changed,
            &ctx.offer.nmstate_service_from,
        )?;
    }
    if let Some(proxy) = params.proxy {
        input::proxy(&proxy, &changed.openshift_version)?;
        changed.proxy = Some(proxy);
    }
    changed.download_url = urls::download_url(
        &ctx.offer.image_service_url,
        urls::ImageAddress::ById(changed.id),
        os_image.name(),
        changed.r#type,
    );
    let details = changed_parts(infra_env, &changed);
    *infra_env = changed;
    if details.is_empty() {
        return Ok(Vec::new());
    }
    Ok(vec![image_event(infra_env, &details.join(", "))])
}

/// An event about a new image; `details` name its changed parts.
/// Source: assisted-service, internal/bminventory/inventory.go, GenerateInfraEnvISOInternal.
pub(crate) fn image_event(infra_env: &InfraEnv, details: &str) -> NewEvent {
    let text = format!("Updated image information ({details})");
    let mut event = NewEvent::new("image_info_updated", EventSeverity::Info, text)
        .infra_env(infra_env.id)
        .prop("details", details);
    event.cluster_id = infra_env.cluster_id;
    event
}

fn set_texts(
    infra_env: &mut InfraEnv,
    params: &InfraEnvUpdateParams,
    ctx: &UpdateContext<'_>,
) -> Result<(), Error> {
    if let Some(list) = &params.additional_ntp_sources {
        input::additional_ntp_source("additional_ntp_sources", list)?;
        infra_env.additional_ntp_sources.clone_from(list);
    }
    if let Some(list) = &params.ntp_sources {
        infra_env.ntp_sources.clone_from(list);
    }
    input::ntp_sources(
        &infra_env.ntp_sources,
        "additional_ntp_sources",
        &infra_env.additional_ntp_sources,
    )?;
    if let Some(keys) = &params.ssh_authorized_key {
        input::ssh_public_keys("ssh_authorized_key", keys)?;
        infra_env.ssh_authorized_key.clone_from(keys);
    }
    if !params.pull_secret.is_empty() {
        input::pull_secret(
            &params.pull_secret,
            &ctx.offer.components.known().collect::<Vec<_>>(),
            &ctx.offer.public_registries,
        )?;
        infra_env.pull_secret_set = true;
    }
    if !params.ignition_config_override.is_empty() {
        let text = &params.ignition_config_override;
        input::ignition_config_override("ignition_config_override", text)?;
        infra_env.ignition_config_override.clone_from(text);
    }
    if let Some(bundle) = &params.additional_trust_bundle {
        infra_env.additional_trust_bundle =
            input::ca_certificates("additional_trust_bundle", bundle)?;
    }
    Ok(())
}

/// Changed inputs of the image, by wire name.
fn changed_parts(before: &InfraEnv, after: &InfraEnv) -> Vec<&'static str> {
    [
        ("image_type", before.r#type != after.r#type),
        (
            "openshift_version",
            before.openshift_version != after.openshift_version,
        ),
        ("os_stream", before.os_stream != after.os_stream),
        ("proxy", before.proxy != after.proxy),
        (
            "additional_ntp_sources",
            before.additional_ntp_sources != after.additional_ntp_sources,
        ),
        ("ntp_sources", before.ntp_sources != after.ntp_sources),
        (
            "ssh_authorized_key",
            before.ssh_authorized_key != after.ssh_authorized_key,
        ),
        (
            "static_network_config",
            before.static_network_config != after.static_network_config,
        ),
        ("rendezvous_ip", before.rendezvous_ip != after.rendezvous_ip),
        (
            "kernel_arguments",
            before.kernel_arguments != after.kernel_arguments,
        ),
        (
            "embedded_agent",
            before.embedded_agent != after.embedded_agent,
        ),
        (
            "ignition_config_override",
            before.ignition_config_override != after.ignition_config_override,
        ),
        (
            "additional_trust_bundle",
            before.additional_trust_bundle != after.additional_trust_bundle,
        ),
    ]
    .into_iter()
    .filter(|(_, differs)| *differs)
    .map(|(name, _)| name)
    .collect()
}
