//! Use cases about logs of hosts and controllers.

use model::Error;
use model::events::EventSeverity;
use model::ids::{ClusterId, HostId, InfraEnvId};
use model::logs::LogsState;
use rules::NewEvent;
use tokio::io::AsyncRead;

use super::{App, Scope, Work};
use crate::files::{LOGS, Object};

/// Units: bytes of one archive. Must-gather archives of large clusters reach a few hundred MB.
const ARCHIVE_LIMIT: u64 = 2 << 30;

/// Whose logs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Source {
    /// Of a host.
    Host(HostId),
    /// Of the controller in the cluster.
    Controller,
}

impl Source {
    fn object(self) -> String {
        match self {
            Self::Host(id) => format!("{LOGS}/{id}/logs.tar.gz"),
            Self::Controller => format!("{LOGS}/controller/logs.tar.gz"),
        }
    }
}

impl App {
    /// Stores an archive of logs.
    pub(crate) async fn store_logs(
        &self,
        id: ClusterId,
        source: Source,
        archive: impl AsyncRead + Send,
    ) -> Result<(), Error> {
        let stored = self.stored_cluster(id).await?;
        if let Source::Host(host) = source
            && stored.snapshot.host(host).is_none()
        {
            return Err(Error::not_found("host", host));
        }
        self.store
            .put_stream(id, &source.object(), archive, ARCHIVE_LIMIT)
            .await?;
        let decide = |work: &mut Work| {
            let now = work.now;
            match source {
                Source::Controller => {
                    let cluster = &mut work.snapshot.cluster;
                    let is_first = cluster.controller_logs_collected_at.0.is_none();
                    cluster.logs_info = Some(LogsState::Collecting);
                    cluster.controller_logs_collected_at = now.into();
                    if is_first {
                        let text = "Uploaded logs of the cluster";
                        work.events.push(
                            NewEvent::new("cluster_logs_uploaded", EventSeverity::Info, text)
                                .cluster(id),
                        );
                    }
                }
                Source::Host(host) => {
                    let (host, _) = work.host(host)?;
                    let is_first = host.record.logs_collected_at.0.is_none();
                    host.record.logs_info = Some(LogsState::Collecting);
                    host.record.logs_collected_at = now.into();
                    if is_first {
                        let name = host.name();
                        let text = format!("Host {name}: uploaded logs");
                        let event = NewEvent::new("host_logs_uploaded", EventSeverity::Info, text)
                            .host(&host.record)
                            .prop("host_name", name);
                        work.events.push(event);
                    }
                }
            }
            Ok(())
        };
        self.change("store logs", Scope::Cluster(id), decide)
            .await
            .map(drop)
    }

    /// An archive of logs, and the name of its file.
    ///
    /// Errors: Conflict – there are none.
    pub(crate) async fn logs(
        &self,
        id: ClusterId,
        source: Source,
    ) -> Result<(String, Object), Error> {
        let stored = self.stored_cluster(id).await?;
        let cluster = &stored.snapshot.cluster;
        let name = match source {
            Source::Controller => format!("{}_{id}_controller.tar.gz", cluster.name),
            Source::Host(host) => {
                let host = stored
                    .snapshot
                    .host(host)
                    .ok_or_else(|| Error::not_found("host", host))?;
                let role = match host.record.role {
                    _ if host.record.bootstrap => "bootstrap",
                    Some(role) => role.as_str(),
                    None => "host",
                };
                format!("{}_{role}_{}.tar.gz", cluster.name, host.name())
            }
        };
        match self.store.get(id, &source.object()).await {
            Ok(object) => Ok((name, object)),
            Err(Error::NotFound { .. }) => Err(Error::conflict(format!(
                "the logs for {name} have not been collected"
            ))),
            Err(error) => Err(error),
        }
    }

    /// Takes down how far the controller's logs are.
    pub(crate) async fn cluster_logs_progress(
        &self,
        id: ClusterId,
        state: LogsState,
    ) -> Result<(), Error> {
        let decide = |work: &mut Work| {
            let cluster = &mut work.snapshot.cluster;
            cluster.logs_info = Some(state);
            if state == LogsState::Requested {
                cluster.controller_logs_started_at = work.now.into();
            }
            Ok(())
        };
        self.change("report cluster logs", Scope::Cluster(id), decide)
            .await
            .map(drop)
    }

    /// Takes down how far a host's logs are.
    pub(crate) async fn host_logs_progress(
        &self,
        infra_env: InfraEnvId,
        id: HostId,
        state: LogsState,
    ) -> Result<(), Error> {
        let decide = |work: &mut Work| {
            let now = work.now;
            let (host, _) = work.host(id)?;
            host.record.logs_info = Some(state);
            if state == LogsState::Requested {
                host.record.logs_started_at = now.into();
            }
            Ok(())
        };
        self.change("report host logs", Scope::Host(infra_env, id), decide)
            .await
            .map(drop)
    }
}
