//! Use cases of agents: registration, polls, replies, progress.

use std::sync::Arc;

use model::Error;
use model::events::EventSeverity;
use model::host::{Host, HostCreateParams, HostProgress, HostStatus};
use model::ids::{HostId, InfraEnvId};
use model::steps::{StepReply, StepType, Steps};
use model::time::Timestamp;
use rules::HostState;
use rules::NewEvent;
use rules::Snapshot;
use rules::host::Trigger;
use rules::host::heartbeat;
use rules::network::vip_leases;
use rules::steps::replies::{self, CheckedReply};

use super::events::Events;
use super::expected_hosts::expected_list;
use super::infra_envs::{HostOrigin, InfraEnvCache};
use super::repeated_replies::{RepeatedReplies, SentReply};
use super::steps::AgentSteps;
use super::{ClusterStore, ClusterTransaction, Heartbeats, Scope, StoredSnapshot, render, request};
use crate::blocking;
use crate::db::{self, Database, hosts, tx};

/// A poll: the request's parameters about the agent.
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

/// Hosts, as their agents report them.
#[derive(Debug)]
pub(crate) struct Agents {
    pub(super) db: Database,
    pub(super) clusters: Arc<ClusterStore>,
    pub(super) heartbeats: Arc<Heartbeats>,
    pub(super) infra_envs: InfraEnvCache,
    pub(super) events: Arc<Events>,
    pub(super) steps: AgentSteps,
    pub(super) repeated_replies: RepeatedReplies,
}

impl Agents {
    /// Registers a host; idempotent. Returns the image of the agent that it is to run, too.
    pub(crate) async fn register(
        &self,
        infra_env: InfraEnvId,
        params: &HostCreateParams,
    ) -> Result<(Host, String), Error> {
        let id = params.host_id;
        let (origin, is_known) = tx("find host", async || {
            let lookup = self.clusters.look_up((infra_env, id)).await?;
            let lookup = lookup.ok_or_else(|| Error::not_found("infra-env", infra_env))?;
            let origin = self.infra_envs.at(infra_env, lookup.infra_env).await?;
            Ok((origin, lookup.binding.is_some()))
        })
        .await?;
        let infra_env = &origin.record;
        let result = self.register_in(&origin, is_known, params).await;
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
            self.events.record(&[event]).await?;
        }
        result
    }

    async fn register_in(
        &self,
        origin: &Arc<HostOrigin>,
        is_known: bool,
        params: &HostCreateParams,
    ) -> Result<(Host, String), Error> {
        let (id, infra_env) = (params.host_id, &origin.record);
        // A known host keeps its binding; a new one is bound to the cluster of its infra-env.
        let new = infra_env
            .cluster_id
            .map_or(Scope::Pool(infra_env.id, id), Scope::Cluster);
        if !is_known {
            return self.register_within(new, origin, params).await;
        }
        let known = Scope::Host(infra_env.id, id);
        match self.register_within(known, origin, params).await {
            // Deleted meanwhile.
            Err(Error::NotFound { kind: "host", .. }) => {
                self.register_within(new, origin, params).await
            }
            result => result,
        }
    }

    async fn register_within(
        &self,
        scope: Scope,
        origin: &Arc<HostOrigin>,
        params: &HostCreateParams,
    ) -> Result<(Host, String), Error> {
        let (infra_env_id, id) = (origin.record.id, params.host_id);
        let (own, params) = (Arc::clone(origin), params.clone());
        let policy = Arc::clone(&self.clusters.policy);
        let decide = move |change: &mut ClusterTransaction| {
            let (now, infra_env) = (change.now, &own.record);
            let is_known = change.snapshot.hosts.position(infra_env.id, id).is_some();
            if is_known {
                let (host, cluster) = change.host(id)?;
                let trigger = Trigger::Register {
                    agent_version: params.discovery_agent_version.clone(),
                };
                let new = rules::host::apply(host, cluster, trigger, &policy, now)?;
                host.record.registered_at = now.into();
                heartbeat::receive(&mut host.record, now, None);
                change.events.extend(new);
            } else {
                let mut host = rules::host::new_host(&params, infra_env, change.cluster(), now)?;
                host.record.user_name.clone_from(&infra_env.user_name);
                if let Ok((replaced, _)) = change.host(id) {
                    rules::host::check_replaced(replaced)?;
                    let event = rules::host::deregistered(replaced);
                    change.events.push(event);
                    change.snapshot.hosts.remove(id);
                    rules::cluster::update::release_machine_networks(&mut change.snapshot);
                }
                change.events.push(rules::host::registered(&host));
                change.snapshot.hosts.push(host);
            }
            change.refresh();
            Ok(())
        };
        // The reply does not depend on the refresh of the cluster, so it is not awaited.
        let stored = self
            .clusters
            .change_one("register host", scope, id, decide)
            .await?
            .stored;
        if !request::is_dry_run() {
            self.heartbeats
                .note(infra_env_id, id, service::clock::now(), None);
        }
        let host = stored
            .snapshot
            .host(id)
            .ok_or_else(|| Error::not_found("host", id))?;
        let images = stored.snapshot.components.or(&origin.components);
        Ok((render::host(host), images.agent))
    }

    /// Next steps of a host. Writes nothing, except when the poll itself changes the host's state.
    pub(crate) async fn next_steps(
        &self,
        infra_env: InfraEnvId,
        id: HostId,
        poll: Poll<'_>,
    ) -> Result<Steps, Error> {
        let (mut stored, origin) = self.stored_host(infra_env, id).await?;
        let now = service::clock::now();
        let offset_s = poll.clock_offset_s(now);
        self.heartbeats.note(infra_env, id, now, offset_s);
        let host = find(&stored.snapshot, id)?;
        let is_back = matches!(
            host.record.status,
            HostStatus::Disconnected | HostStatus::DisconnectedUnbound
        );
        let other_version = poll.agent_version.filter(|version| {
            !version.is_empty() && *version != host.record.discovery_agent_version
        });
        let clock_moved = clock_moved(&host.record, offset_s);
        let cluster = host.record.cluster_id;
        let scope = Scope::Host(infra_env, id);
        if let Some(version) = other_version {
            let version = version.to_owned();
            let decide = move |change: &mut ClusterTransaction| {
                version.clone_into(&mut change.host(id)?.0.record.discovery_agent_version);
                change.refresh();
                Ok(())
            };
            let changed = self
                .clusters
                .change_one("poll of a new agent", scope, id, decide);
            stored = changed.await?.stored;
        }
        let lease_timed_out =
            vip_leases::is_timeout_due(&stored.snapshot, self.heartbeats.observed(now), now);
        if is_back || clock_moved || lease_timed_out {
            if let Some(cluster) = cluster {
                drop(stored);
                self.clusters.request_refresh(cluster).wait().await;
                stored = self.stored_host(infra_env, id).await?.0;
            } else {
                let decide = |change: &mut ClusterTransaction| {
                    change.refresh();
                    Ok(())
                };
                ((), stored) = self
                    .clusters
                    .change("poll with changes", scope, decide)
                    .await?;
            }
        }
        let host = find(&stored.snapshot, id)?;
        self.steps.instructions(&stored, host, &origin, now).await
    }

    /// A host with its cluster, from the cache when its revision is current, and its infra-env.
    async fn stored_host(
        &self,
        infra_env: InfraEnvId,
        id: HostId,
    ) -> Result<(Arc<StoredSnapshot>, Arc<HostOrigin>), Error> {
        tx("poll", async || {
            let lookup = self.clusters.look_up((infra_env, id)).await?;
            let known = lookup.and_then(|lookup| Some((lookup.infra_env, lookup.binding?)));
            let (version, binding) = known.ok_or_else(|| Error::not_found("host", id))?;
            let origin = self.infra_envs.at(infra_env, version).await?;
            let Some((cluster, revision)) = binding.cluster else {
                let mut connection = self.db.pool()?.acquire().await?;
                let row =
                    hosts::find(&mut connection, &self.db.keys().await, infra_env, id).await?;
                // Bound or deleted meanwhile.
                let row = row.filter(|row| row.record.cluster_id.is_none());
                let mut stored = StoredSnapshot::default();
                stored.snapshot.components = self.clusters.components.or(&origin.components);
                let host = row.ok_or(db::Error::Moved)?.into_state();
                stored.snapshot.hosts.push(host);
                return Ok((Arc::new(stored), origin));
            };
            let stored = self.clusters.at_least(cluster, revision).await?;
            let stored = stored.ok_or_else(|| Error::not_found("host", id))?;
            // Unbound or deleted meanwhile: the row decides, an agent stops polling after a 404.
            if stored.snapshot.hosts.position(infra_env, id).is_none() {
                return Err(db::Error::Moved);
            }
            Ok((stored, origin))
        })
        .await
    }

    /// Receives a step reply: its heartbeat counts, and it is stored unless it changes nothing. `sent` is its structure,
    /// by which a repeated one is recognised; `parse` reads the whole reply.
    ///
    /// Errors: NotFound; those of `parse`; Invalid – an unreadable inventory.
    pub(crate) async fn reply<E: From<Error>>(
        &self,
        infra_env: InfraEnvId,
        id: HostId,
        sent: Option<&SentReply<'_>>,
        parse: impl Fn() -> Result<StepReply, E>,
    ) -> Result<(), E> {
        // Refused before its host is looked up, unless it is a spelling of a reply that is not recognised.
        let parsed = match sent {
            Some(_) => None,
            None => Some(parse()?),
        };
        let (stored, _) = self.stored_host(infra_env, id).await?;
        self.heartbeats
            .note(infra_env, id, service::clock::now(), None);
        // A pool host has no revision.
        let sent = sent.filter(|_| stored.revision > 0);
        let digest = sent.map(|sent| self.repeated_replies.digest(id, stored.revision, sent));
        if digest.is_some_and(|digest| self.repeated_replies.contains(&digest)) {
            return Ok(());
        }
        let reply = parsed.map_or_else(parse, Ok)?;
        let is_repeated = self.accept(infra_env, id, stored, reply).await?;
        if let Some(digest) = digest.filter(|_| is_repeated) {
            self.repeated_replies.add(digest);
        }
        Ok(())
    }

    /// Stores a step reply. Returns whether it changes nothing, and needed no transaction.
    async fn accept(
        &self,
        infra_env: InfraEnvId,
        id: HostId,
        stored: Arc<StoredSnapshot>,
        reply: StepReply,
    ) -> Result<bool, Error> {
        // Long replies are parsed off the runtime, where they delay no other request.
        let long = reply.output.len() > blocking::LARGE_TEXT;
        // Only an inventory says which expected host it is.
        let is_inventory = reply.step_type == Some(StepType::Inventory);
        let (reply, is_repeated) = blocking::unless_short(long, || {
            let mut reply = CheckedReply::new(reply)?;
            let is_repeated = self.is_repeated_reply(&stored, id, &mut reply);
            Ok::<_, Error>((reply, is_repeated))
        })?;
        let unreadable = reply.unreadable().cloned();
        if is_repeated {
            if let Some(unreadable) = unreadable {
                return Err(unreadable.to_error());
            }
            return Ok(true);
        }
        // When many hosts boot, each waiting request would keep an older snapshot of its cluster.
        drop(stored);
        let expected = if is_inventory {
            expected_list(&self.db, infra_env).await?
        } else {
            None
        };
        let policy = Arc::clone(&self.clusters.policy);
        let decide = move |change: &mut ClusterTransaction| {
            let now = change.now;
            let (host, cluster) = change.host(id)?;
            let mut reply = reply.clone();
            let accepted = blocking::unless_short(long, || {
                replies::accept(host, cluster, &mut reply, &policy, now)
            })?;
            let matched = if is_inventory {
                rules::host::expected_hosts::assign(host, cluster, expected.as_deref())
            } else {
                None
            };
            change.events.extend(accepted.events);
            change.events.extend(matched);
            if change.cluster().is_some() {
                replies::store_vips(&mut change.snapshot.cluster, &accepted.vips);
                let leased = accepted.leased;
                let event = leased.and_then(|leased| leased.store(&mut change.snapshot));
                change.events.extend(event);
            }
            if accepted.refresh {
                change.refresh();
            }
            Ok(())
        };
        let scope = Scope::Host(infra_env, id);
        let changed = self
            .clusters
            .change_one("accept step reply", scope, id, decide);
        // Only the refresh: the rest of the change holds a snapshot.
        let refresh = changed.await?.refresh;
        if let Some(refresh) = refresh {
            refresh.wait().await;
        }
        let Some(unreadable) = unreadable else {
            return Ok(false);
        };
        tracing::warn!(host = %id, %infra_env, reason = %unreadable, "unreadable inventory refused");
        Err(unreadable.to_error())
    }

    /// Whether a reply repeats the last one, as most do: it needs no transaction.
    fn is_repeated_reply(
        &self,
        stored: &StoredSnapshot,
        id: HostId,
        reply: &mut CheckedReply,
    ) -> bool {
        let Some(before) = stored.snapshot.host(id) else {
            return false;
        };
        let cluster = before.record.cluster_id.map(|_| &stored.snapshot.cluster);
        let mut host = before.clone();
        let accepted = replies::accept(
            &mut host,
            cluster,
            reply,
            &self.clusters.policy,
            service::clock::now(),
        );
        match accepted {
            Ok(accepted) => {
                let leased = accepted.leased.as_ref();
                let repeats_leases = leased.is_none_or(|leased| leased.repeats(&stored.snapshot));
                accepted.events.is_empty()
                    && accepted.vips.is_empty()
                    && repeats_leases
                    && host.record == before.record
            }
            Err(_) => false,
        }
    }

    /// Stores the progress of a host's installation.
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
        let info = progress.progress_info.clone();
        let policy = Arc::clone(&self.clusters.policy);
        let decide = move |change: &mut ClusterTransaction| {
            let now = change.now;
            let (host, cluster) = change.host(id)?;
            let info = info.clone();
            let trigger = Trigger::Progress { stage, info };
            let new = rules::host::apply(host, cluster, trigger, &policy, now)?;
            change.events.extend(new);
            change.refresh();
            Ok(())
        };
        let scope = Scope::Host(infra_env, id);
        let changed = self
            .clusters
            .change_one("report progress", scope, id, decide)
            .await?;
        if let Some(refresh) = changed.refresh {
            refresh.wait().await;
        }
        Ok(())
    }
}

/// Bound of `progress_info`, which is stored and repeated in an event. Units: bytes.
pub(crate) const PROGRESS_INFO_BYTES: usize = rules::bounds::MESSAGE_BYTES;
/// Smallest change of a host's clock offset that starts a refresh. Units: seconds.
const CLOCK_MOVED_S: i64 = 60;

/// Whether the offset of the host's clock differs from the stored one by more than [`CLOCK_MOVED_S`].
fn clock_moved(known: &Host, offset_s: Option<i64>) -> bool {
    let Some(offset_s) = offset_s else {
        return false;
    };
    heartbeat::clock_offset_s(known)
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
    fn clock_offset_changes_above_the_threshold_are_detected() {
        let at = |seconds| chrono::DateTime::from_timestamp(seconds, 0).unwrap();
        let known = Host {
            checked_in_at: at(1000).into(),
            timestamp: 990,
            ..Host::default()
        };
        assert!(!clock_moved(&known, Some(-8)));
        assert!(!clock_moved(&known, None));
        assert!(clock_moved(&known, Some(3940)));
        assert!(clock_moved(&Host::default(), Some(-8)), "no stored offset");
    }
}
