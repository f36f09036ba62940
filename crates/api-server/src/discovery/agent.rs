//! The systemd unit of the agent.
//!
//! Source: openshift/assisted-installer-agent, the arguments of its `agent` program.

use model::ids::InfraEnvId;
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

/// Text of agent.service: it runs the agent that is inside the image, or copies one out of the agent's container image.
pub(super) fn unit(
    id: InfraEnvId,
    is_embedded: bool,
    proxy: Option<&Proxy>,
    secrets: &DiscoverySecrets,
    ctx: &DiscoveryOptions,
) -> String {
    let image = &ctx.agent_image;
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
    let (pre, program, version) = if is_embedded {
        let pre = format!(
            "ExecStartPre=/usr/bin/install -D -m 0755 {EMBEDDED} /usr/local/bin/atoll-agent\n"
        );
        (pre, "atoll-agent", " --console".to_owned())
    } else {
        let pre = format!(
            "ExecStartPre=/usr/local/bin/agent-fix-bz1964591 {image}\n\
             ExecStartPre=/usr/local/bin/agent-pull-image {image}\n\
             ExecStartPre=podman run --pull=never --privileged --rm -v /usr/local/bin:/hostbin {image} cp /usr/bin/agent /hostbin\n"
        );
        (pre, "agent", format!(" --agent-version {image}"))
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
