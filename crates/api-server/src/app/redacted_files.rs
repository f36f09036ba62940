//! Files without their secrets, for readers of a record without the right to edit it.

use std::ffi::OsStr;
use std::path::Path;

use chrono::TimeDelta;
use concurrency::BoxError;
use model::Error;
use model::cluster::ClusterStatus;
use model::host::HostStatus;
use model::ids::{ClusterId, HostId, InfraEnvId};
use model::time::Timestamp;
use serde_json::Value;

use super::ClusterStore;
use super::hosts::Hosts;
use crate::app::files::{KUBEADMIN_PASSWORD, KUBECONFIG_NOINGRESS};
use crate::auth::{Caller, forbidden};
use crate::operations::access::Role;

/// Start of the names of redacted files.
const PREFIX: &str = "redacted-";
/// Time of a cluster's controller for its last work in a complete cluster. Source: assisted-installer, the controller's
/// timeouts for operators of up to an hour each; two of them.
const CONTROLLER_TIME: TimeDelta = TimeDelta::hours(2);
/// Text in place of a secret.
const REDACTED: &str = "redacted";
/// Parts of the names of an install-config's members that hold secrets, in lower case.
const SECRET_WORDS: &[&str] = &[
    "secret",
    "password",
    "token",
    "credential",
    "privatekey",
    "proxy",
];

/// Whether a caller gets the secrets of a record of `owner`: users with the right to edit it do, and programs with a token
/// of it.
pub(crate) fn sees_secrets(caller: &Caller, owner: &str) -> bool {
    match caller {
        Caller::User(user) => match user.role {
            Role::Admin => true,
            Role::ReadOnlyAdmin => false,
            Role::User => user.name == owner,
        },
        Caller::Watcher => false,
        _ => true,
    }
}

/// Whether a file of a cluster or an infra-env has secrets.
pub(crate) fn has_secrets(name: &str) -> bool {
    is_ignition(name) || name.ends_with("install-config.yaml")
}

fn is_ignition(name: &str) -> bool {
    Path::new(name).extension() == Some(OsStr::new("ign"))
}

/// Name and content of a file without its secrets.
///
/// Errors: Internal – the stored file is malformed.
pub(crate) fn redacted(name: &str, content: &[u8]) -> Result<(String, Vec<u8>), Error> {
    let doing = "redacting a file";
    let failed = |error: serde_json::Error| Error::internal(doing, error);
    let content = if is_ignition(name) {
        let config: Value = serde_json::from_slice(content).map_err(failed)?;
        serde_json::to_vec(&ignition::redacted(config)).map_err(failed)?
    } else if has_secrets(name) {
        let failed = |error: BoxError| Error::internal(doing, error);
        let config = serde_yaml::from_slice(content).map_err(|error| failed(error.into()))?;
        let text = serde_yaml::to_string(&without_secrets(config));
        let text = text.map_err(|error| failed(error.into()))?;
        text.into_bytes()
    } else {
        return Ok((name.to_owned(), content.to_vec()));
    };
    Ok((format!("{PREFIX}{name}"), content))
}

/// An install-config without its secrets.
fn without_secrets(config: Value) -> Value {
    match config {
        Value::Array(items) => items.into_iter().map(without_secrets).collect(),
        Value::Object(members) => {
            let members = members.into_iter().map(|(name, value)| {
                let lower = name.to_lowercase();
                let is_secret = SECRET_WORDS.iter().any(|word| lower.contains(word));
                let value = match value {
                    Value::String(_) if is_secret => REDACTED.into(),
                    value => without_secrets(value),
                };
                (name, value)
            });
            members.collect()
        }
        other => other,
    }
}

/// Whether a caller gets the secrets of a cluster.
///
/// Errors: NotFound.
pub(crate) async fn sees_secrets_of_cluster(
    clusters: &ClusterStore,
    caller: &Caller,
    id: ClusterId,
) -> Result<bool, Error> {
    // Without a read of the cluster for programs and administrators.
    if sees_secrets(caller, "") {
        return Ok(true);
    }
    let stored = clusters.stored(id).await?;
    Ok(sees_secrets(caller, &stored.snapshot.cluster.user_name))
}

/// An install-config as JSON without its secrets.
///
/// Errors: Internal – it is malformed.
pub(super) fn redacted_install_config(text: &str) -> Result<String, Error> {
    let config = serde_json::from_str(text);
    let config = config.map_err(|error| Error::internal("redacting a file", error))?;
    Ok(without_secrets(config).to_string())
}

/// Checks that an installer downloads the Ignition configuration of a host while that is installed.
///
/// Errors: NotFound; Forbidden.
pub(crate) async fn check_installer_download(
    hosts: &Hosts,
    caller: &Caller,
    infra_env: InfraEnvId,
    id: HostId,
) -> Result<(), Error> {
    use HostStatus::{
        Installing, InstallingInProgress, InstallingPendingUserAction, PreparingSuccessful,
    };
    if !matches!(caller, Caller::Agent(_)) {
        return Ok(());
    }
    match hosts.get(infra_env, id).await?.status {
        PreparingSuccessful | Installing | InstallingInProgress | InstallingPendingUserAction => {
            Ok(())
        }
        status => Err(forbidden(format!(
            "a token of an agent does not open the ignition of a host that is {status}: installers need it while the host is installed"
        ))),
    }
}

/// Checks that an agent, an installer or a controller downloads files of its cluster while that is installed: a token
/// of discovery is no credential of a cluster.
///
/// Errors: NotFound; Forbidden.
pub(crate) async fn check_agent_download(
    clusters: &ClusterStore,
    caller: &Caller,
    id: ClusterId,
    name: &str,
) -> Result<(), Error> {
    if !matches!(caller, Caller::Agent(_)) {
        return Ok(());
    }
    let stored = clusters.stored(id).await?;
    let cluster = &stored.snapshot.cluster;
    let status = cluster.status;
    let completed_at = cluster.install_completed_at.0;
    if is_needed_by_agents(name, status, completed_at, service::clock::now()) {
        return Ok(());
    }
    Err(forbidden(format!(
        "a token of an agent does not open {name} of a cluster that is {status}: agents need files while their cluster is installed"
    )))
}

/// Whether programs of an installation need a file of a cluster in that status, complete since `completed_at`.
fn is_needed_by_agents(
    name: &str,
    status: ClusterStatus,
    completed_at: Option<Timestamp>,
    now: Timestamp,
) -> bool {
    use ClusterStatus::{Finalizing, Installed, Installing, InstallingPendingUserAction};
    match status {
        Installing | Finalizing | InstallingPendingUserAction => name != KUBEADMIN_PASSWORD,
        // The controller applies the manifests of operators after the cluster is complete.
        Installed => {
            name == KUBECONFIG_NOINGRESS
                && completed_at.is_some_and(|at| now < at + CONTROLLER_TIME)
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn agents_need_files_during_the_installation_and_the_controller_shortly_after_it() {
        use ClusterStatus::{Finalizing, Installed, Installing, Ready};
        let now = Timestamp::from_timestamp(1_800_000_000, 0).unwrap();
        let since = |seconds| Some(now - TimeDelta::seconds(seconds));
        for (name, status, completed_at, expected) in [
            ("kubeconfig-noingress", Ready, None, false),
            ("kubeconfig-noingress", Installing, None, true),
            ("kubeconfig-noingress", Finalizing, None, true),
            ("kubeadmin-password", Finalizing, None, false),
            ("kubeconfig-noingress", Installed, since(7199), true),
            ("kubeconfig-noingress", Installed, since(7200), false),
            ("kubeconfig-noingress", Installed, None, false),
            ("kubeconfig", Installed, since(0), false),
            ("kubeadmin-password", Installed, since(0), false),
            ("bootstrap.ign", Installed, since(0), false),
        ] {
            let needed = is_needed_by_agents(name, status, completed_at, now);
            assert_eq!(needed, expected, "{name} {status} {completed_at:?}");
        }
    }

    #[test]
    fn install_configs_are_shown_without_secrets() {
        let config = json!({
            "metadata": { "name": "lab" }, "pullSecret": "s3cret", "sshKey": "ssh-rsa public",
            "proxy": { "httpProxy": "http://u:s3cret@p", "noProxy": "s3cret" },
            "platform": { "vsphere": { "vcenters": [{ "server": "v", "user": "u", "password": "s3cret" }] } },
        });
        let (name, text) = redacted("install-config.yaml", config.to_string().as_bytes()).unwrap();
        let text = String::from_utf8(text).unwrap();
        assert!(!text.contains("s3cret"), "{text}");
        assert!(
            text.contains("ssh-rsa public") && text.contains("pullSecret: redacted"),
            "{text}"
        );
        assert_eq!(name, "redacted-install-config.yaml");
        let (name, text) = redacted("metadata.json", b"{}").unwrap();
        assert_eq!(
            (name.as_str(), text.as_slice()),
            ("metadata.json", b"{}".as_slice())
        );
    }
}
