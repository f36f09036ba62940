//! Use cases of agents: registration, polls, replies, progress.

use std::sync::Arc;

use model::Error;
use model::events::EventSeverity;
use model::host::{Host, HostCreateParams, HostProgress, HostStatus};
use model::ids::{HostId, InfraEnvId};
use model::infra_env::InfraEnv;
use model::steps::{StepReply, Steps};
use model::time::Timestamp;
use rules::host::Trigger;
use rules::{HostState, NewEvent, Snapshot, presence};

use super::{App, Scope, Stored, Work, render};
use crate::blocking;
use crate::db::hosts;
use crate::db::tx;

/// A poll, with what its request tells about the agent.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Poll<'a> {
    /// Seconds since 1970 by the host's clock.
    pub(crate) host_time_s: Option<i64>,
    /// Image of the agent.
    pub(crate) agent_version: Option<&'a str>,
}

impl Poll<'_> {
    fn clock_offset_s(&self, now: Timestamp) -> Option<i64> {
        let host_time_s = self.host_time_s?;
        Some(host_time_s.saturating_sub(now.timestamp()))
    }
}

impl App {
    /// Registers a host, for the first time or again.
    pub(crate) async fn register_host(
        &self,
        infra_env: InfraEnvId,
        params: &HostCreateParams,
    ) -> Result<Host, Error> {
        let infra_env = self.infra_env_row(infra_env).await?.record;
        let result = self.register_in(&infra_env, params).await;
        if let Err(
            error @ (Error::Conflict { .. } | Error::Invalid { .. } | Error::Forbidden { .. }),
        ) = &result
        {
            let text = format!("Host {}: registration failed: {error}", params.host_id);
            let mut event = NewEvent::new("host_registration_failed", EventSeverity::Error, text)
                .infra_env(infra_env.id)
                .prop("message", error);
            event.cluster_id = infra_env.cluster_id;
            event.host_id = Some(params.host_id);
            self.record(&[event]).await?;
        }
        result
    }

    async fn register_in(
        &self,
        infra_env: &InfraEnv,
        params: &HostCreateParams,
    ) -> Result<Host, Error> {
        let id = params.host_id;
        let known = tx("find host", async || {
            let mut connection = self.pool()?.acquire().await?;
            hosts::place(&mut connection, infra_env.id, id).await
        })
        .await?;
        // A host that exists stays where it is bound; a new one goes where its image belongs.
        let cluster = match known {
            Some(place) => place.cluster.map(|(id, _)| id),
            None => infra_env.cluster_id,
        };
        let scope = cluster.map_or(Scope::Pool(infra_env.id, id), Scope::Cluster);
        let decide = |work: &mut Work| {
            let now = work.now;
            if let Ok((host, cluster)) = work.host(id) {
                let trigger = Trigger::Register {
                    agent_version: params.discovery_agent_version.clone(),
                };
                let new = rules::host::apply(host, cluster, trigger, &self.policy, now)?;
                host.record.registered_at = now.into();
                presence::heard(&mut host.record, now, None);
                work.events.extend(new);
            } else {
                let host = rules::host::new_host(params, infra_env, work.cluster(), now)?;
                work.events.push(rules::host::registered(&host));
                work.snapshot.hosts.push(host);
            }
            work.refresh(&self.policy);
            Ok(())
        };
        // Its cluster is refreshed later: an agent that registers learns nothing of that.
        let stored = self
            .change_one("register host", scope, id, decide)
            .await?
            .stored;
        self.check_ins
            .note(infra_env.id, id, service::clock::now(), None);
        let host = stored
            .snapshot
            .host(id)
            .ok_or_else(|| Error::not_found("host", id))?;
        Ok(render::host(&host.record))
    }

    /// What a host shall do next. Writes nothing, except when the poll itself changes the host's state.
    pub(crate) async fn next_steps(
        &self,
        infra_env: InfraEnvId,
        id: HostId,
        poll: Poll<'_>,
    ) -> Result<Steps, Error> {
        let (mut stored, origin) = self.stored_host(infra_env, id).await?;
        let now = service::clock::now();
        let offset_s = poll.clock_offset_s(now);
        self.check_ins.note(infra_env, id, now, offset_s);
        let host = find(&stored.snapshot, id)?;
        let is_back = matches!(
            host.record.status,
            HostStatus::Disconnected | HostStatus::DisconnectedUnbound
        );
        let other_version = poll.agent_version.filter(|version| {
            !version.is_empty() && *version != host.record.discovery_agent_version
        });
        let tells_another_time = tells_another_time(&host.record, offset_s);
        let cluster = host.record.cluster_id;
        let scope = Scope::Host(infra_env, id);
        if let Some(version) = other_version {
            let decide = |work: &mut Work| {
                version.clone_into(&mut work.host(id)?.0.record.discovery_agent_version);
                work.refresh(&self.policy);
                Ok(())
            };
            let changed = self.change_one("poll of a new agent", scope, id, decide);
            stored = changed.await?.stored;
        }
        if is_back || tells_another_time {
            if let Some(cluster) = cluster {
                self.refresh_soon(cluster).end().await;
                stored = self.stored_host(infra_env, id).await?.0;
            } else {
                let decide = |work: &mut Work| {
                    work.refresh(&self.policy);
                    Ok(())
                };
                ((), stored) = self.change("poll with news", scope, decide).await?;
            }
        }
        let host = find(&stored.snapshot, id)?;
        self.instructions(&stored, host, &origin, now).await
    }

    /// A host with its cluster, from memory when that is of the right revision, and its infra-env.
    async fn stored_host(
        &self,
        infra_env: InfraEnvId,
        id: HostId,
    ) -> Result<(Arc<Stored>, InfraEnv), Error> {
        tx("poll", async || {
            let mut connection = self.pool()?.acquire().await?;
            let polled = hosts::poll(&mut connection, infra_env, id).await?;
            let polled = polled.ok_or_else(|| Error::not_found("host", id))?;
            drop(connection);
            let stored = if let Some((cluster, revision)) = polled.cluster {
                let stored = self.at_least(cluster, revision).await?;
                stored.ok_or_else(|| Error::not_found("host", id))?
            } else {
                let mut stored = Stored::default();
                let alone = polled.alone.map(HostState::new);
                stored.snapshot.hosts.extend(alone);
                Arc::new(stored)
            };
            Ok((stored, polled.infra_env))
        })
        .await
    }

    /// Takes down what a step found out.
    pub(crate) async fn accept_reply(
        &self,
        infra_env: InfraEnvId,
        id: HostId,
        reply: &StepReply,
    ) -> Result<(), Error> {
        let (stored, _) = self.stored_host(infra_env, id).await?;
        self.check_ins
            .note(infra_env, id, service::clock::now(), None);
        // Parsing is done where it delays no other request.
        let long = reply.output.len() > blocking::LARGE_TEXT;
        if blocking::unless_short(long, || self.tells_nothing_new(&stored, id, reply)) {
            return Ok(());
        }
        let decide = |work: &mut Work| {
            let now = work.now;
            let (host, cluster) = work.host(id)?;
            let accepted = blocking::unless_short(long, || {
                rules::replies::accept(host, cluster, reply, &self.policy, now)
            })?;
            work.events.extend(accepted.events);
            if work.cluster().is_some() {
                rules::replies::store_vips(&mut work.snapshot.cluster, &accepted.vips);
            }
            if accepted.refresh {
                work.refresh(&self.policy);
            }
            Ok(())
        };
        let scope = Scope::Host(infra_env, id);
        let changed = self
            .change_one("accept step reply", scope, id, decide)
            .await?;
        if let Some(refresh) = changed.refresh {
            refresh.end().await;
        }
        Ok(())
    }

    /// Most replies repeat the last one: they need no transaction.
    fn tells_nothing_new(&self, stored: &Stored, id: HostId, reply: &StepReply) -> bool {
        let Some(before) = stored.snapshot.host(id) else {
            return false;
        };
        let cluster = before.record.cluster_id.map(|_| &stored.snapshot.cluster);
        let mut host = before.clone();
        let accepted = rules::replies::accept(
            &mut host,
            cluster,
            reply,
            &self.policy,
            service::clock::now(),
        );
        match accepted {
            Ok(accepted) => {
                accepted.events.is_empty()
                    && accepted.vips.is_empty()
                    && host.record == before.record
            }
            Err(_) => false,
        }
    }

    /// Takes down how far an installation is.
    pub(crate) async fn report_progress(
        &self,
        infra_env: InfraEnvId,
        id: HostId,
        progress: &HostProgress,
    ) -> Result<(), Error> {
        if progress.progress_info.len() > PROGRESS_INFO_BYTES {
            return Err(Error::TooLarge {
                what: "progress_info",
                limit: PROGRESS_INFO_BYTES as u64,
            });
        }
        let stage = progress.current_stage.ok_or_else(|| {
            Error::invalid(
                "current_stage",
                "is missing: name the stage that was reached",
            )
        })?;
        let decide = |work: &mut Work| {
            let now = work.now;
            let (host, cluster) = work.host(id)?;
            let trigger = Trigger::Progress {
                stage,
                info: progress.progress_info.clone(),
            };
            let new = rules::host::apply(host, cluster, trigger, &self.policy, now)?;
            work.events.extend(new);
            work.refresh(&self.policy);
            Ok(())
        };
        let scope = Scope::Host(infra_env, id);
        let changed = self
            .change_one("report progress", scope, id, decide)
            .await?;
        if let Some(refresh) = changed.refresh {
            refresh.end().await;
        }
        Ok(())
    }
}

/// Units: bytes of what a host says about its stage, which is stored and repeated in an event.
pub(crate) const PROGRESS_INFO_BYTES: usize = rules::bounds::MESSAGE_BYTES;
/// Units: seconds by which a host's clock has moved against ours before that is looked at.
const CLOCK_MOVED_S: i64 = 60;

/// Whether the host's clock stands otherwise than when it was last looked at.
fn tells_another_time(known: &Host, offset_s: Option<i64>) -> bool {
    let Some(offset_s) = offset_s else {
        return false;
    };
    presence::clock_offset_s(known)
        .is_none_or(|before| before.saturating_sub(offset_s).saturating_abs() > CLOCK_MOVED_S)
}

fn find(snapshot: &Snapshot, id: HostId) -> Result<&HostState, Error> {
    snapshot
        .host(id)
        .ok_or_else(|| Error::not_found("host", id))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_clock_that_moved_is_looked_at() {
        let at = |seconds| chrono::DateTime::from_timestamp(seconds, 0).unwrap();
        let known = Host {
            checked_in_at: at(1000).into(),
            timestamp: 990,
            ..Host::default()
        };
        assert!(!tells_another_time(&known, Some(-8)));
        assert!(!tells_another_time(&known, None));
        assert!(tells_another_time(&known, Some(3940)));
        assert!(
            tells_another_time(&Host::default(), Some(-8)),
            "never looked at"
        );
    }
}
