//! The systemd unit of the agent.
//!
//! Source: openshift/assisted-installer-agent, the arguments of its `agent` program.

use model::Error;
use model::ids::InfraEnvId;
use model::infra_env::InfraEnv;
use model::network::Proxy;
use secrecy::ExposeSecret;

use super::context::{DiscoveryOptions, DiscoverySecrets};
use super::proxy;

/// Path of the service's certificate authority on a host.
pub(super) const SERVICE_CA_PATH: &str = "/etc/assisted-service/service-ca-cert.crt";

/// Programs that pull the agent's container image.
pub(super) const PULL_SCRIPTS: [(&str, &str); 2] = [
    (
        "agent-fix-bz1964591",
        include_str!("host_files/agent-fix-bz1964591"),
    ),
    (
        "agent-pull-image",
        include_str!("host_files/agent-pull-image"),
    ),
];
/// Where early boot puts the agent that is inside the image. Source: the image service, `image/agent.rs`.
const EMBEDDED: &str = "/run/atoll/agent";

/// Where hosts get their agent from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum AgentSource<'a> {
    /// It is inside the discovery image.
    Embedded,
    /// A container image.
    Image(&'a str),
}

impl<'a> AgentSource<'a> {
    /// That of the hosts of `infra_env`; `image` is empty if it is unknown.
    ///
    /// Errors: Conflict – they need an image, and it is unknown.
    pub(super) fn of(infra_env: &InfraEnv, image: &'a str) -> Result<Self, Error> {
        match image {
            _ if infra_env.embedded_agent => Ok(Self::Embedded),
            "" => Err(Error::conflict(format!(
                "no image of the agent is known for infra-env {}: the operator sets AGENT_DOCKER_IMAGE, or a new \
                 infra-env takes that of a release",
                infra_env.id
            ))),
            image => Ok(Self::Image(image)),
        }
    }
}

/// Text of agent.service: it runs the agent that is inside the image, or copies one out of the agent's container image.
pub(super) fn unit(
    id: InfraEnvId,
    agent: AgentSource<'_>,
    proxy: Option<&Proxy>,
    secrets: &DiscoverySecrets,
    ctx: &DiscoveryOptions,
) -> String {
    let url = &ctx.service_base_url;
    let insecure = ctx.insecure;
    let timeout = ctx.agent_start_timeout.as_secs();
    let mut environment = proxy.map(proxy::unit_lines).unwrap_or_default();
    if let Some(token) = &secrets.agent_token {
        environment.push_str("Environment=PULL_SECRET_TOKEN=");
        environment.push_str(&token.expose_secret().replace('%', "%%"));
        environment.push('\n');
    }
    let cacert = match ctx.service_ca {
        Some(_) => format!(" --cacert {SERVICE_CA_PATH}"),
        None => String::new(),
    };
    let (pre, program, version) = match agent {
        AgentSource::Embedded => {
            let pre = format!(
                "ExecStartPre=/usr/bin/install -D -m 0755 {EMBEDDED} /usr/local/bin/atoll-agent\n"
            );
            (pre, "atoll-agent", " --console".to_owned())
        }
        AgentSource::Image(image) => {
            let pre = format!(
                "ExecStartPre=/usr/local/bin/agent-fix-bz1964591 {image}\n\
             ExecStartPre=/usr/local/bin/agent-pull-image {image}\n\
             ExecStartPre=podman run --pull=never --privileged --rm -v /usr/local/bin:/hostbin {image} cp /usr/bin/agent /hostbin\n"
            );
            (pre, "agent", format!(" --agent-version {image}"))
        }
    };
    format!(
        "[Unit]\n\
         Description=Agent of the installer service\n\
         Wants=network-online.target\n\
         After=network-online.target\n\
         StartLimitInterval=0\n\
         \n\
         [Service]\n\
         Type=simple\n\
         Restart=always\n\
         RestartSec=3\n\
         {environment}\
         TimeoutStartSec={timeout}\n\
         {pre}\
         ExecStart=/usr/local/bin/{program} --url {url} --infra-env-id {id}{version} --insecure={insecure}{cacert}\n\
         \n\
         [Install]\n\
         WantedBy=multi-user.target\n"
    )
}
