//! `atoll token`: keys and users' tokens of the installer API with AUTH_TYPE=local.

use std::path::PathBuf;

use api_server::Settings;
use clap::{Args, Subcommand};
use credentials::log_in;
use service::{Error, ResultExt as _};

use crate::terminal;
use crate::web_address::web_text;

/// Units: days. A century, which clocks and formats of all clients can represent.
const MAX_DAYS: i64 = 36_500;

/// Subcommands for tokens.
#[derive(Debug, Clone, Subcommand)]
pub(crate) enum TokenCommand {
    /// Print a new pair of keys, as settings of the installer API
    Keys,
    /// Print a token of a user, for the header `Authorization: Bearer TOKEN`
    ///
    /// The keys are those of the environment, or of a file of settings.
    User(UserTokenArgs),
    /// Print a link that logs a browser into the web UI, once
    ///
    /// The keys are those of the environment, or of a file of settings.
    Link(LogInLinkArgs),
}

/// Arguments of `atoll token user`.
#[derive(Debug, Clone, Args)]
pub(crate) struct UserTokenArgs {
    /// Name of the user in the audit log
    #[arg(long, default_value = "admin")]
    name: String,
    /// Validity in days
    #[arg(long, default_value_t = 30, value_parser = clap::value_parser!(u32).range(1..=MAX_DAYS))]
    days: u32,
    /// File of settings (NAME=value), as of the pod
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
}

/// Arguments of `atoll token link`.
#[derive(Debug, Clone, Args)]
pub(crate) struct LogInLinkArgs {
    /// Name of the user in the audit log
    #[arg(long, default_value = log_in::ADMINISTRATOR)]
    name: String,
    /// Validity in hours
    #[arg(long, default_value_t = log_in::LINK_HOURS, value_parser = clap::value_parser!(u32).range(1..=168))]
    hours: u32,
    /// File of settings (NAME=value), as of the pod
    #[arg(long, value_name = "FILE")]
    config: PathBuf,
    /// URL of the web UI; default: that of the settings
    #[arg(long, value_name = "URL", value_parser = web_text)]
    url: Option<String>,
}

/// Runs the subcommand.
///
/// Errors: missing or invalid keys.
pub(crate) fn run(command: &TokenCommand) -> Result<(), Error> {
    match command {
        TokenCommand::Keys => keys(),
        TokenCommand::User(arguments) => user(arguments),
        TokenCommand::Link(arguments) => link(arguments),
    }
}

fn keys() -> Result<(), Error> {
    for (name, text) in log_in::new_keys()? {
        terminal::print(&format!("{name}={text}"));
    }
    Ok(())
}

fn user(arguments: &UserTokenArgs) -> Result<(), Error> {
    let settings = Settings::load(arguments.config.as_deref());
    let settings = settings.doing("reading the settings")?;
    let token = api_server::user_token(&settings, &arguments.name, arguments.days)?;
    terminal::print(&token);
    Ok(())
}

fn link(arguments: &LogInLinkArgs) -> Result<(), Error> {
    let settings = Settings::load(Some(&arguments.config));
    let settings = settings.doing("reading the settings")?;
    let base = match &arguments.url {
        Some(url) => url.clone(),
        None => log_in::page_url(&arguments.config)?,
    };
    let link = log_in::link(&settings, &arguments.name, arguments.hours, &base)?;
    terminal::print(&link);
    Ok(())
}

#[cfg(test)]
mod tests {
    use service::settings::{FromValues as _, Values};

    use super::*;

    #[test]
    fn new_keys_sign_tokens() {
        let keys = log_in::new_keys().unwrap();
        let pairs = keys.iter().map(|(name, text)| (*name, text.as_str()));
        let lower: Vec<_> = pairs
            .map(|(name, text)| (name.to_lowercase(), text))
            .collect();
        let values = lower.iter().map(|(name, text)| (name.as_str(), *text));
        let settings = Settings::from_values(&Values::from_pairs(values)).unwrap();
        let token = api_server::user_token(&settings, "alice", 1).unwrap();
        assert_eq!(token.split('.').count(), 3);
        let error = api_server::user_token(&Settings::default(), "alice", 1).unwrap_err();
        assert!(error.to_string().contains("EC_PUBLIC_KEY_PEM"), "{error}");
    }
}
