//! Arguments of the program: those of assisted-installer-agent, so that its systemd unit starts ours.

use std::path::PathBuf;

use clap::builder::{StringValueParser, TypedValueParser as _};
use clap::{ArgAction, Parser};
use secrecy::SecretString;
use url::Url;
use uuid::Uuid;

/// Discovery agent: registers this host with the installer API and runs its steps.
#[derive(Debug, Clone, Parser)]
#[command(name = "atoll-agent", version)]
pub struct AgentArgs {
    /// URL of the installer API
    #[arg(long)]
    pub url: Url,
    /// Infra-env of this host
    #[arg(long)]
    pub infra_env_id: Uuid,
    /// Version to report
    #[arg(long, default_value = concat!("atoll-agent/", env!("CARGO_PKG_VERSION")))]
    pub agent_version: String,
    /// Do not verify the API's certificate
    #[arg(long, num_args = 0..=1, default_missing_value = "true", default_value = "false",
          require_equals = true, action = ArgAction::Set)]
    pub insecure: bool,
    /// PEM file of certificate authorities to trust besides the system's
    #[arg(long, value_name = "FILE")]
    pub cacert: Option<PathBuf>,
    /// Host id, instead of one by the hardware
    #[arg(long)]
    pub host_id: Option<Uuid>,
    /// Token that authenticates the agent
    #[arg(long, env = "PULL_SECRET_TOKEN", hide_env_values = true, default_value = "",
          value_parser = StringValueParser::new().map(SecretString::from))]
    pub pull_secret_token: SecretString,
    /// Seconds between attempts to register
    #[arg(long, default_value_t = 60)]
    pub interval: u64,
    /// Show the state of this host on tty1 and on serial consoles, and take changes of its network there
    #[arg(long)]
    pub console: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_unit_s_arguments_are_accepted() {
        let id = "1b4e28ba-2fa1-41d2-883f-0016d3cca427";
        let line = format!(
            "agent --url http://10.0.0.1:8090 --infra-env-id {id} --agent-version quay.io/a/b:c --insecure=true --cacert /etc/ca.crt"
        );
        let args = AgentArgs::try_parse_from(line.split(' ')).unwrap();
        assert!(args.insecure);
        assert_eq!(args.infra_env_id.to_string(), id);
        let line = line.replace("--insecure=true", "--insecure");
        assert!(AgentArgs::try_parse_from(line.split(' ')).unwrap().insecure);
        let line = line.replace(" --insecure", "");
        assert!(!AgentArgs::try_parse_from(line.split(' ')).unwrap().insecure);
    }
}
