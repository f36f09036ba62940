//! New infra-envs.

use std::collections::BTreeSet;

use model::Error;
use model::cluster::Cluster;
use model::ids::InfraEnvId;
use model::infra_env::{InfraEnv, InfraEnvCreateParams, InfraEnvKind};
use model::time::Timestamp;
use model::versions::CpuArchitecture;

use super::context::CreateContext;
use crate::cluster::update::{ImageParts, set_image_parts};
use crate::event::NewEvent;
use crate::input;
use crate::operators;
use crate::urls;
use crate::versions::{FoundOsImage, architecture, find_os_image};

/// A new infra-env's record; the context holds the cluster that the parameters name.
///
/// Errors: `Invalid` naming the field; `NotFound` – the named cluster does not exist.
/// Source: assisted-service, internal/bminventory/inventory.go, validateInfraEnvCreateParams,
/// setDefaultRegisterInfraEnvParams.
pub fn infra_env(
    params: InfraEnvCreateParams,
    ctx: &CreateContext<'_>,
    now: Timestamp,
) -> Result<InfraEnv, Error> {
    if let (Some(id), None) = (params.cluster_id, ctx.cluster) {
        return Err(Error::not_found("cluster", id));
    }
    if params.name.trim().is_empty() {
        return Err(Error::invalid(
            "name",
            "is empty: give the infra-env a name",
        ));
    }
    let text = |value: &Option<String>| value.clone().unwrap_or_default();
    let (additional, sources) = (
        text(&params.additional_ntp_sources),
        text(&params.ntp_sources),
    );
    input::additional_ntp_source("additional_ntp_sources", &additional)?;
    input::ntp_sources(&sources, "additional_ntp_sources", &additional)?;
    let ssh_authorized_key = text(&params.ssh_authorized_key);
    input::ssh_public_keys("ssh_authorized_key", &ssh_authorized_key)?;
    input::pull_secret(
        &params.pull_secret,
        &ctx.offer.components.known().collect::<Vec<_>>(),
        &ctx.offer.public_registries,
    )?;
    input::ignition_config_override("ignition_config_override", &params.ignition_config_override)?;
    let bundle =
        input::ca_certificates("additional_trust_bundle", &params.additional_trust_bundle)?;

    let wanted = requested_architecture(params.cpu_architecture, ctx.cluster)?;
    if let Some(cluster) = ctx.cluster {
        operators::check_compatibility(cluster, &BTreeSet::from([wanted]))?;
    }
    let os_image = requested_image(&params, ctx, wanted)?;
    let proxy = params.proxy.unwrap_or_default();
    input::proxy(&proxy, &os_image.image.openshift_version)?;

    let id = InfraEnvId(ctx.id);
    let mut infra_env = InfraEnv {
        kind: InfraEnvKind::InfraEnv,
        id,
        href: urls::infra_env(id),
        name: params.name,
        openshift_version: os_image.image.openshift_version.clone(),
        os_stream: os_image.other_stream.to_owned(),
        cpu_architecture: Some(wanted),
        proxy: Some(proxy),
        additional_ntp_sources: additional,
        ntp_sources: sources,
        ssh_authorized_key,
        pull_secret_set: true,
        ignition_config_override: params.ignition_config_override,
        additional_trust_bundle: bundle,
        cluster_id: params.cluster_id,
        r#type: params.image_type.unwrap_or(ctx.offer.image_type),
        created_at: now.into(),
        updated_at: now.into(),
        ..InfraEnv::default()
    };
    set_image_parts(
        &mut infra_env,
        ImageParts {
            static_network_config: params.static_network_config,
            rendezvous_ip: params.rendezvous_ip,
            kernel_arguments: params.kernel_arguments,
            network_discovery_delay_seconds: params.network_discovery_delay_seconds,
            embedded_agent: params.embedded_agent,
        },
    )?;
    crate::network::static_networks::applicable_static_network(
        &infra_env,
        &ctx.offer.nmstate_service_from,
    )?;
    let address = urls::ImageAddress::ById(id);
    infra_env.download_url = urls::download_url(
        &ctx.offer.image_service_url,
        address,
        os_image.name(),
        infra_env.r#type,
    );
    Ok(infra_env)
}

fn requested_architecture(
    given: Option<CpuArchitecture>,
    cluster: Option<&Cluster>,
) -> Result<CpuArchitecture, Error> {
    let of_cluster = cluster
        .and_then(|cluster| cluster.cpu_architecture)
        .map(architecture)
        .filter(|cluster| *cluster != CpuArchitecture::Multi);
    let wanted = match given {
        Some(given) => architecture(given),
        None => of_cluster.unwrap_or(CpuArchitecture::X86_64),
    };
    if wanted == CpuArchitecture::Multi {
        return Err(input::refuse(
            "cpu_architecture",
            wanted.as_str(),
            "is not one machine's architecture: make one infra-env for each architecture",
        ));
    }
    match of_cluster {
        Some(of_cluster) if of_cluster != wanted => Err(input::refuse(
            "cpu_architecture",
            wanted.as_str(),
            &format!("does not fit the cluster, whose architecture is {of_cluster}"),
        )),
        _ => Ok(wanted),
    }
}

/// The image of the requested version and stream, or of the cluster's; the version of an infra-env may lack that stream.
fn requested_image<'a>(
    params: &InfraEnvCreateParams,
    ctx: &CreateContext<'a>,
    wanted: CpuArchitecture,
) -> Result<FoundOsImage<'a>, Error> {
    let version = requested_version(&params.openshift_version, ctx.cluster);
    let find =
        |stream: &str| find_os_image(&ctx.offer.os_images, version.as_deref(), wanted, stream);
    match (&params.os_stream, ctx.cluster) {
        (Some(stream), _) => find(stream),
        (None, Some(cluster)) => find(&cluster.os_stream).or_else(|_| find("")),
        (None, None) => find(""),
    }
}

/// The requested version, or the cluster's. An image of another version boots hosts of the cluster, too.
/// Source: assisted-service, internal/bminventory/inventory.go, validateClusterArchitectureAndVersion.
fn requested_version(given: &str, cluster: Option<&Cluster>) -> Option<String> {
    let of_cluster = cluster.map(|cluster| cluster.openshift_version.as_str());
    let version = if given.is_empty() { of_cluster? } else { given };
    (!version.is_empty()).then(|| version.to_owned())
}

/// An event about the image of a new infra-env.
pub fn image_event(infra_env: &InfraEnv) -> NewEvent {
    let image = format!("image type is {}", infra_env.r#type);
    crate::cluster::update::image_event(infra_env, &image)
}
