//! Assembly of the discovery ignition.
//!
//! Source: openshift/assisted-service, `internal/ignition/discovery.go` and `internal/ignition/templates`.

use ignition::{IgnitionConfig, IgnitionFile, SpecVersion, Unit, User, archive};
use model::Error;
use model::infra_env::{ImageType, InfraEnv};
use secrecy::ExposeSecret;

use super::agent::{AgentSource, SERVICE_CA_PATH};
use super::context::{DiscoveryOptions, DiscoverySecrets};
use super::{agent, network, ntp, proxy};

/// Embed area of a live image, for the compressed archive. Units: bytes.
pub const LIMIT_BYTES: usize = archive::EMBED_AREA;

const ANCHORS: &str = "/etc/pki/ca-trust/source/anchors";
const PROGRAM: u32 = 0o755;
const READABLE: u32 = 0o644;
const PRIVATE: u32 = 0o600;

/// The discovery ignition of `infra_env` for an image of `image_type`, with the user's override merged over it.
/// `agent_image` is the container image of the agent, for hosts whose discovery image has none inside.
///
/// Errors: `Conflict` – such hosts, and no image; `Invalid` – the override does not parse or merge, or the result exceeds [`LIMIT_BYTES`].
pub fn ignition(
    infra_env: &InfraEnv,
    image_type: ImageType,
    agent_image: &str,
    secrets: &DiscoverySecrets,
    ctx: &DiscoveryOptions,
) -> Result<IgnitionConfig, Error> {
    let agent = AgentSource::of(infra_env, agent_image)?;
    let own = network::add(
        base(infra_env, agent, secrets, ctx),
        infra_env,
        image_type,
        &ctx.nmstate_service_from,
    )?;
    let text = infra_env.ignition_config_override.trim();
    if text.is_empty() {
        check_size(&own, "infra_env")?;
        return Ok(own);
    }
    let refuse =
        |error: ignition::Error| Error::invalid("ignition_config_override", error.to_string());
    let user = IgnitionConfig::parse(text.as_bytes()).map_err(refuse)?;
    let merged = ignition::merge(&own, &user).map_err(refuse)?;
    check_size(&merged, "ignition_config_override")?;
    Ok(merged)
}

fn check_size(config: &IgnitionConfig, field: &str) -> Result<(), Error> {
    let packed = archive::write(&config.to_json())
        .map_err(|error| Error::invalid(field, error.to_string()))?;
    let size = packed.len();
    if size <= LIMIT_BYTES {
        return Ok(());
    }
    Err(Error::invalid(
        field,
        format!(
            "the compressed discovery ignition has {size} bytes, the limit of a live image is {LIMIT_BYTES}; shorten \
            the ignition override or the trust bundle"
        ),
    ))
}

fn base(
    infra_env: &InfraEnv,
    agent: AgentSource<'_>,
    secrets: &DiscoverySecrets,
    ctx: &DiscoveryOptions,
) -> IgnitionConfig {
    let proxy = infra_env
        .proxy
        .as_ref()
        .filter(|proxy| proxy::is_set(proxy));
    let mut config = IgnitionConfig::new(SpecVersion::V3_1);
    if agent != AgentSource::Embedded {
        for (name, text) in agent::PULL_SCRIPTS {
            config = config.file(program(name, text));
        }
    }
    config = config
        .file(IgnitionFile::text(
            "/etc/motd",
            READABLE,
            include_str!("host_files/motd"),
        ))
        .file(IgnitionFile::text(
            "/etc/NetworkManager/conf.d/01-ipv6.conf",
            READABLE,
            preparation::IPV6_SETTINGS,
        ))
        .file(IgnitionFile::text(
            "/root/assisted.te",
            READABLE,
            include_str!("host_files/assisted.te"),
        ))
        // Private: only root pulls images.
        .file(IgnitionFile::text(
            "/root/.docker/config.json",
            PRIVATE,
            secrets.pull_secret.expose_secret(),
        ))
        .unit(Unit::enabled(
            "agent.service",
            agent::unit(infra_env.id, agent, proxy, secrets, ctx),
        ))
        .unit(Unit::enabled(
            "selinux.service",
            include_str!("host_files/selinux.service"),
        ));
    if !is_okd(infra_env) {
        config = storage(config);
    }
    if let Some(proxy) = proxy {
        config.ignition.proxy = proxy::ignition(proxy);
        config = config.file(IgnitionFile::text(
            "/etc/profile.d/proxy.sh",
            READABLE,
            &proxy::profile(proxy),
        ));
    }
    if let Some(script) = ntp::script(infra_env) {
        config = config
            .file(program("add-ntp-sources.sh", &script))
            .unit(Unit::enabled(
                "add-ntp-sources.service",
                include_str!("host_files/add-ntp-sources.service"),
            ));
    }
    if let Some(user) = user(&infra_env.ssh_authorized_key) {
        config = config.user(user);
    }
    trust(config, infra_env, ctx)
}

/// OKD's live image has neither multipathd nor iscsid.
fn is_okd(infra_env: &InfraEnv) -> bool {
    ["okd", "scos"]
        .iter()
        .any(|word| infra_env.openshift_version.contains(word))
}

fn storage(config: IgnitionConfig) -> IgnitionConfig {
    let multipathd = Unit {
        name: "multipathd.service".to_owned(),
        enabled: Some(true),
        ..Unit::default()
    };
    config
        .file(IgnitionFile::text(
            "/etc/multipath.conf",
            READABLE,
            include_str!("host_files/multipath.conf"),
        ))
        .unit(multipathd)
        .unit(Unit::enabled(
            "iscsistart.service",
            include_str!("host_files/iscsistart.service"),
        ))
}

/// Adds certificates, mirrors and the signature policy.
fn trust(
    mut config: IgnitionConfig,
    infra_env: &InfraEnv,
    ctx: &DiscoveryOptions,
) -> IgnitionConfig {
    if let Some(pem) = &ctx.service_ca {
        config = config.file(IgnitionFile::text(SERVICE_CA_PATH, READABLE, pem));
    }
    if !infra_env.additional_trust_bundle.is_empty() {
        let path = format!("{ANCHORS}/assisted-infraenv-additional-trust-bundle.pem");
        config = config.file(IgnitionFile::text(
            path,
            READABLE,
            &infra_env.additional_trust_bundle,
        ));
    }
    if let Some(mirrors) = ctx.mirrors.get() {
        config = config.file(IgnitionFile::text(
            "/etc/containers/registries.conf",
            READABLE,
            &mirrors.registries_conf,
        ));
        if let Some(pem) = &mirrors.ca_bundle {
            config = config.file(IgnitionFile::text(
                format!("{ANCHORS}/domain.crt"),
                READABLE,
                pem,
            ));
        }
    }
    if ctx.insecure_policy {
        config = config.file(IgnitionFile::text(
            "/etc/containers/policy.json",
            READABLE,
            include_str!("host_files/policy.json"),
        ));
    }
    config
}

fn program(name: &str, text: &str) -> IgnitionFile {
    IgnitionFile::text(format!("/usr/local/bin/{name}"), PROGRAM, text)
}

fn user(keys: &str) -> Option<User> {
    let keys: Vec<String> = keys
        .lines()
        .map(str::trim)
        .filter(|line| !line.is_empty())
        .map(str::to_owned)
        .collect();
    (!keys.is_empty()).then(|| User {
        groups: vec!["sudo".to_owned()],
        ..User::with_keys("core", keys)
    })
}

#[cfg(test)]
#[path = "tests.rs"]
mod tests;
