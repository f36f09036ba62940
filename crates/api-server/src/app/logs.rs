//! Use cases about logs of hosts and controllers.

use model::Error;
use model::cluster::Cluster;
use model::events::{EventCategory, EventSeverity};
use model::ids::{ClusterId, HostId, InfraEnvId};
use model::logs::LogsState;
use rules::{HostState, NewEvent};
use serde::Serialize;
use tokio::io::AsyncRead;

use super::{App, Scope, Work, render};
use crate::db::EventFilter;
use crate::files::{GENERATED_MANIFESTS, LOGS, Object, USER_MANIFESTS};

/// Events in an archive of everything: the newest.
const EVENTS_LIMIT: i64 = 50_000;

/// Whose logs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Source {
    /// Of a host.
    Host(HostId),
    /// Of the controller in the cluster.
    Controller,
}

impl Source {
    pub(super) fn object(self) -> String {
        match self {
            Self::Host(id) => format!("{LOGS}/{id}/logs.tar.gz"),
            Self::Controller => format!("{LOGS}/controller/logs.tar.gz"),
        }
    }
}

/// Everything that tells how an installation went.
#[derive(Debug)]
pub(crate) struct Collected {
    /// The cluster.
    pub(crate) cluster: ClusterId,
    /// Name of the archive.
    pub(crate) name: String,
    /// Seconds since 1970.
    pub(crate) made_at_s: u64,
    /// The files in it.
    pub(crate) members: Vec<Member>,
}

/// A file of [`Collected`].
#[derive(Debug)]
pub(crate) struct Member {
    /// Name in the archive.
    pub(crate) name: String,
    /// Units: bytes.
    pub(crate) length: u64,
    /// Where its bytes are.
    pub(crate) content: Content,
}

/// Where the bytes of a [`Member`] are.
#[derive(Debug)]
pub(crate) enum Content {
    /// Here.
    Bytes(Vec<u8>),
    /// In the file store, under this name.
    Stored(String),
}

impl App {
    /// Stores an archive of logs, in place of the one that the same host or controller sent before.
    ///
    /// Errors: NotFound; TooLarge – the archive, or a quota; Unavailable – the disk is full.
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
            .put_stream(id, &source.object(), archive, self.settings.max_log_bytes)
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
                host_archive_name(cluster, host, "")
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

    /// Whatever logs there are, with the events, the record and the manifests of the cluster.
    ///
    /// Errors: NotFound.
    pub(crate) async fn all_logs(&self, id: ClusterId) -> Result<Collected, Error> {
        let stored = self.stored_cluster(id).await?;
        let cluster = &stored.snapshot.cluster;
        let filter = EventFilter {
            cluster_id: Some(id.0),
            categories: EventCategory::ALL.to_vec(),
            descending: true,
            limit: Some(EVENTS_LIMIT),
            ..EventFilter::default()
        };
        let (events, _) = self.list_events(&filter).await?;
        let record = render::cluster(&stored.snapshot, true);
        let mut members = vec![
            written("cluster_events.json", &events)?,
            written("cluster_metadata.json", &record)?,
        ];
        for host in &stored.snapshot.hosts {
            let mut name = host_archive_name(cluster, host, "");
            if members.iter().any(|member| member.name == name) {
                name = host_archive_name(cluster, host, &format!("_{}", host.record.id));
            }
            let object = Source::Host(host.record.id).object();
            members.extend(self.stored_member(id, name, object).await?);
        }
        let controller = "controller_logs.tar.gz".to_owned();
        let object = Source::Controller.object();
        members.extend(self.stored_member(id, controller, object).await?);
        for (prefix, source) in [(USER_MANIFESTS, "user"), (GENERATED_MANIFESTS, "system")] {
            for object in self.store.list(id, prefix).await? {
                let object = object.as_str();
                let path = object.strip_prefix(prefix).unwrap_or(object);
                let name = format!("cluster_manifest_{source}{}", path.replace('/', "_"));
                members.extend(self.stored_member(id, name, object.to_owned()).await?);
            }
        }
        let now = service::clock::now().timestamp();
        Ok(Collected {
            cluster: id,
            name: format!("{}_{id}.tar", cluster.name),
            made_at_s: now.try_into().unwrap_or_default(),
            members,
        })
    }

    async fn stored_member(
        &self,
        id: ClusterId,
        name: String,
        object: String,
    ) -> Result<Option<Member>, Error> {
        match self.store.get(id, &object).await {
            Ok(found) => Ok(Some(Member {
                name,
                length: found.length,
                content: Content::Stored(object),
            })),
            Err(Error::NotFound { .. }) => Ok(None),
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

/// `mark` tells hosts of one name apart.
fn host_archive_name(cluster: &Cluster, host: &HostState, mark: &str) -> String {
    let role = match host.record.role {
        _ if host.record.bootstrap => "bootstrap",
        Some(role) => role.as_str(),
        None => "host",
    };
    // What a host calls itself is checked by nobody, and need not be the name of a file.
    let name = host
        .name()
        .replace(|c: char| c == '/' || c.is_control(), "_");
    format!("{}_{role}_{name}{mark}.tar.gz", cluster.name)
}

fn written(name: &str, value: &impl Serialize) -> Result<Member, Error> {
    let bytes = serde_json::to_vec(value)
        .map_err(|error| Error::internal(format!("writing {name}"), error))?;
    Ok(Member {
        name: name.to_owned(),
        length: bytes.len() as u64,
        content: Content::Bytes(bytes),
    })
}
