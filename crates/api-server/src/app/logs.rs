//! Use cases of logs of hosts and controllers.

use std::sync::Arc;

use cluster_files::{FileStore, GENERATED_MANIFESTS, LOGS, Object, USER_MANIFESTS};
use model::Error;
use model::cluster::Cluster;
use model::events::{EventCategory, EventSeverity};
use model::ids::{ClusterId, HostId, InfraEnvId};
use model::logs::LogsState;
use rules::HostState;
use rules::NewEvent;
use serde::Serialize;
use tokio::io::AsyncRead;

use super::events::Events;
use super::owners::file_owner;
use super::{ClusterStore, ClusterTransaction, Scope, render};
use crate::db::{Database, EventFilter};

/// Bound of the events in an archive of all logs: the newest.
const EVENTS_LIMIT: i64 = 50_000;

/// Sender of logs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LogSource {
    /// A host.
    Host(HostId),
    /// The controller in the cluster.
    Controller,
}

impl LogSource {
    pub(super) fn object(self) -> String {
        match self {
            Self::Host(id) => format!("{LOGS}/{id}/logs.tar.gz"),
            Self::Controller => format!("{LOGS}/controller/logs.tar.gz"),
        }
    }
}

/// Archive of all logs of an installation. Source: openshift/assisted-service, for the names in it.
#[derive(Debug)]
pub(crate) struct LogArchive {
    /// The cluster.
    pub(crate) cluster: ClusterId,
    /// Name of the archive.
    pub(crate) name: String,
    /// Seconds since 1970.
    pub(crate) made_at_s: u64,
    /// The files in it.
    pub(crate) members: Vec<LogArchiveMember>,
}

/// A file of [`LogArchive`].
#[derive(Debug)]
pub(crate) struct LogArchiveMember {
    /// Name in the archive.
    pub(crate) name: String,
    /// Length of its bytes, without an inner archive. Units: bytes.
    pub(crate) length: u64,
    /// Location of its bytes.
    pub(crate) content: MemberContent,
}

impl LogArchiveMember {
    /// The same bytes within an archive of their own, as tools for these logs look them up.
    fn wrapped(self, name: String) -> Self {
        let content = match self.content {
            MemberContent::Stored(object) => MemberContent::Wrapped { name, object },
            content => content,
        };
        Self { content, ..self }
    }
}

/// Location of the bytes of a [`LogArchiveMember`].
#[derive(Debug)]
pub(crate) enum MemberContent {
    /// In memory.
    Bytes(Vec<u8>),
    /// In the file store, under this name.
    Stored(String),
    /// A tar archive with one member of this name, whose bytes are in the file store under that name.
    Wrapped {
        /// Name in the inner archive.
        name: String,
        /// Name in the file store.
        object: String,
    },
}

/// Logs of installations.
#[derive(Debug)]
pub(crate) struct Logs {
    pub(super) db: Database,
    pub(super) clusters: Arc<ClusterStore>,
    pub(super) files: FileStore,
    pub(super) events: Arc<Events>,
    /// `MAX_LOG_BYTES`. Units: bytes.
    pub(crate) max_bytes: u64,
}

impl Logs {
    /// Stores an archive of logs; replaces the last one of the same source.
    ///
    /// Errors: NotFound; TooLarge – the archive, or a quota; Unavailable – the disk is full.
    pub(crate) async fn store(
        &self,
        id: ClusterId,
        source: LogSource,
        archive: impl AsyncRead + Send,
    ) -> Result<(), Error> {
        let stored = self.clusters.stored(id).await?;
        if let LogSource::Host(host) = source
            && stored.snapshot.host(host).is_none()
        {
            return Err(Error::not_found("host", host));
        }
        let owner = file_owner(&self.db, id).await?;
        self.files
            .put_stream(owner, &source.object(), archive, self.max_bytes)
            .await?;
        let decide = |change: &mut ClusterTransaction| {
            let now = change.now;
            match source {
                LogSource::Controller => {
                    let cluster = &mut change.snapshot.cluster;
                    let is_first = cluster.controller_logs_collected_at.0.is_none();
                    cluster.logs_info = Some(LogsState::Collecting);
                    cluster.controller_logs_collected_at = now.into();
                    if is_first {
                        let text = "Uploaded logs of the cluster";
                        change.events.push(
                            NewEvent::new("cluster_logs_uploaded", EventSeverity::Info, text)
                                .cluster(id),
                        );
                    }
                }
                LogSource::Host(host) => {
                    let (host, _) = change.host(host)?;
                    let is_first = host.record.logs_collected_at.0.is_none();
                    host.record.logs_info = Some(LogsState::Collecting);
                    host.record.logs_collected_at = now.into();
                    if is_first {
                        let name = host.name();
                        let text = format!("Host {name}: uploaded logs");
                        let event = NewEvent::new("host_logs_uploaded", EventSeverity::Info, text)
                            .host(&host.record)
                            .prop("host_name", name);
                        change.events.push(event);
                    }
                }
            }
            Ok(())
        };
        self.clusters
            .change("store logs", Scope::Cluster(id), decide)
            .await
            .map(drop)
    }

    /// An archive of logs, and the name of its file.
    ///
    /// Errors: Conflict – no logs collected.
    pub(crate) async fn get(
        &self,
        id: ClusterId,
        source: LogSource,
    ) -> Result<(String, Object), Error> {
        let stored = self.clusters.stored(id).await?;
        let cluster = &stored.snapshot.cluster;
        let name = match source {
            LogSource::Controller => format!("{}_{id}_controller.tar.gz", cluster.name),
            LogSource::Host(host) => {
                let host = stored
                    .snapshot
                    .host(host)
                    .ok_or_else(|| Error::not_found("host", host))?;
                format!("{}.tar.gz", host_archive_name(cluster, host, ""))
            }
        };
        match self.files.get(id, &source.object()).await {
            Ok(object) => Ok((name, object)),
            Err(Error::NotFound { .. }) => Err(Error::conflict(format!(
                "the logs for {name} have not been collected"
            ))),
            Err(error) => Err(error),
        }
    }

    /// All logs, with the events, the record and the manifests of the cluster.
    ///
    /// Errors: NotFound.
    pub(crate) async fn all(&self, id: ClusterId) -> Result<LogArchive, Error> {
        let stored = self.clusters.stored(id).await?;
        let cluster = &stored.snapshot.cluster;
        let filter = EventFilter {
            cluster_id: Some(id.0),
            categories: EventCategory::ALL.to_vec(),
            descending: true,
            limit: Some(EVENTS_LIMIT),
            ..EventFilter::default()
        };
        let events = self.events.list(&filter).await?;
        let record = render::cluster(&stored.snapshot, true);
        let mut members = vec![
            written("cluster_events.json", &events)?,
            written("cluster_metadata.json", &record)?,
        ];
        for host in &stored.snapshot.hosts {
            let mut stem = host_archive_name(cluster, host, "");
            let mut name = format!("{stem}.tar");
            if members.iter().any(|member| member.name == name) {
                stem = host_archive_name(cluster, host, &format!("_{}", host.record.id));
                name = format!("{stem}.tar");
            }
            let object = LogSource::Host(host.record.id).object();
            if let Some(member) = self.stored_member(id, name, object).await? {
                members.push(member.wrapped(format!("{stem}.tar.gz")));
            }
        }
        let controller = "controller_logs.tar.gz".to_owned();
        let object = LogSource::Controller.object();
        members.extend(self.stored_member(id, controller, object).await?);
        for (prefix, source) in [(USER_MANIFESTS, "user"), (GENERATED_MANIFESTS, "system")] {
            for object in self.files.list(id, prefix).await? {
                let object = object.as_str();
                let path = object.strip_prefix(prefix).unwrap_or(object);
                let name = format!("cluster_manifest_{source}{}", path.replace('/', "_"));
                members.extend(self.stored_member(id, name, object.to_owned()).await?);
            }
        }
        let now = service::clock::now().timestamp();
        Ok(LogArchive {
            cluster: id,
            name: format!("{}_{id}.tar", cluster.name),
            made_at_s: now.try_into().unwrap_or_default(),
            members,
        })
    }

    /// Checks that a cluster exists.
    ///
    /// Errors: NotFound.
    pub(crate) async fn check_cluster(&self, id: ClusterId) -> Result<(), Error> {
        self.clusters.stored(id).await.map(drop)
    }

    /// The bytes of an archive's member in the file store.
    pub(crate) async fn content(&self, id: ClusterId, object: &str) -> Result<Object, Error> {
        self.files.get(id, object).await
    }

    async fn stored_member(
        &self,
        id: ClusterId,
        name: String,
        object: String,
    ) -> Result<Option<LogArchiveMember>, Error> {
        match self.files.get(id, &object).await {
            Ok(found) => Ok(Some(LogArchiveMember {
                name,
                length: found.length,
                content: MemberContent::Stored(object),
            })),
            Err(Error::NotFound { .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Stores the progress of the controller's logs.
    pub(crate) async fn report_of_cluster(
        &self,
        id: ClusterId,
        state: LogsState,
    ) -> Result<(), Error> {
        let decide = |change: &mut ClusterTransaction| {
            let cluster = &mut change.snapshot.cluster;
            cluster.logs_info = Some(state);
            if state == LogsState::Requested {
                cluster.controller_logs_started_at = change.now.into();
            }
            Ok(())
        };
        self.clusters
            .change("report cluster logs", Scope::Cluster(id), decide)
            .await
            .map(drop)
    }

    /// Stores the progress of a host's logs.
    pub(crate) async fn report_of_host(
        &self,
        infra_env: InfraEnvId,
        id: HostId,
        state: LogsState,
    ) -> Result<(), Error> {
        let decide = |change: &mut ClusterTransaction| {
            let now = change.now;
            let (host, _) = change.host(id)?;
            host.record.logs_info = Some(state);
            if state == LogsState::Requested {
                host.record.logs_started_at = now.into();
            }
            Ok(())
        };
        self.clusters
            .change("report host logs", Scope::Host(infra_env, id), decide)
            .await
            .map(drop)
    }
}

/// File name of a host's logs, without its extension; `mark` distinguishes hosts of one name.
fn host_archive_name(cluster: &Cluster, host: &HostState, mark: &str) -> String {
    let role = match host.record.role {
        _ if host.record.bootstrap => "bootstrap",
        Some(role) => role.as_str(),
        None => "host",
    };
    // A host's own name is not validated, and may not be a valid file name.
    let name = host
        .name()
        .replace(|c: char| c == '/' || c.is_control(), "_");
    format!("{}_{role}_{name}{mark}", cluster.name)
}

fn written(name: &str, value: &impl Serialize) -> Result<LogArchiveMember, Error> {
    let bytes = serde_json::to_vec(value)
        .map_err(|error| Error::internal(format!("writing {name}"), error))?;
    Ok(LogArchiveMember {
        name: name.to_owned(),
        length: bytes.len() as u64,
        content: MemberContent::Bytes(bytes),
    })
}
