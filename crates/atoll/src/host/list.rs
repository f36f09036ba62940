//! `atoll host list`.

use std::time::SystemTime;

use clap::Args;
use kubernetes::ListedHost;
use model::time::Timestamp;
use service::runtime;
use service::{Error, ResultExt as _};

use crate::catalog::table::table;
use crate::cluster_args::ClusterArgs;
use crate::terminal;

/// Arguments of `list`.
#[derive(Debug, Clone, Args)]
pub(crate) struct HostListArgs {
    #[command(flatten)]
    cluster: ClusterArgs,
}

/// Lists the hosts of a cluster.
///
/// Errors: the cluster cannot be read, or manages no hosts.
pub(super) fn run(arguments: &HostListArgs) -> Result<(), Error> {
    let hosts = runtime::block_on(async {
        let cluster = arguments.cluster.connect().await?;
        let doing = || format!("listing the hosts of {}", cluster.url());
        let hosts = cluster.hosts().await;
        let hosts = hosts.doing(doing)?;
        hosts.ok_or_else(|| Error::new(doing(), "it has no records of kind BareMetalHost"))
    })??;
    terminal::print(&listed(&hosts, SystemTime::now().into()));
    Ok(())
}

fn listed(hosts: &[ListedHost], now: Timestamp) -> String {
    let filled = |text: &str| if text.is_empty() { "-" } else { text }.to_owned();
    let row = |host: &ListedHost| {
        let error = match (host.error_kind.as_str(), host.error.as_str()) {
            ("", "") => "-".to_owned(),
            (kind, "") => kind.to_owned(),
            ("", error) => error.to_owned(),
            (kind, error) => format!("{kind}: {error}"),
        };
        [
            host.name.clone(),
            filled(&host.state),
            filled(host.consumer.as_deref().unwrap_or_default()),
            host.is_online.to_string(),
            error,
            age(&host.created_at, now),
        ]
    };
    let rows: Vec<_> = hosts.iter().map(row).collect();
    table(
        ["NAME", "STATE", "CONSUMER", "ONLINE", "ERROR", "AGE"],
        &rows,
    )
}

/// As kubectl shows it, in its largest unit; `-` where the record has no time.
fn age(created_at: &str, now: Timestamp) -> String {
    let Ok(created) = created_at.parse::<Timestamp>() else {
        return "-".to_owned();
    };
    let age = now.signed_duration_since(created);
    match (age.num_days(), age.num_hours(), age.num_minutes()) {
        (days @ 1.., ..) => format!("{days}d"),
        (_, hours @ 1.., _) => format!("{hours}h"),
        (_, _, minutes @ 1..) => format!("{minutes}m"),
        _ => format!("{}s", age.num_seconds().max(0)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_are_listed_with_their_errors_and_ages() {
        let now = "2026-01-03T00:00:00Z".parse().unwrap();
        let host = |name: &str, created_at: &str| ListedHost {
            name: name.to_owned(),
            created_at: created_at.to_owned(),
            ..ListedHost::default()
        };
        let hosts = [
            ListedHost {
                state: "externally provisioned".to_owned(),
                consumer: Some("demo-master-0".to_owned()),
                is_online: true,
                ..host("master-0", "2026-01-01T00:00:00Z")
            },
            ListedHost {
                state: "registering".to_owned(),
                error_kind: "registration error".to_owned(),
                error: "no answer".to_owned(),
                ..host("master-1", "2026-01-02T23:58:30Z")
            },
            host("unseen", ""),
        ];
        let expected = "\
NAME      STATE                   CONSUMER       ONLINE  ERROR                          AGE
master-0  externally provisioned  demo-master-0  true    -                              2d
master-1  registering             -              false   registration error: no answer  1m
unseen    -                       -              false   -                              -";
        assert_eq!(listed(&hosts, now), expected);
    }
}
