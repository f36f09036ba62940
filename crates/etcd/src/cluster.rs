//! The cluster behind its endpoints.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures_util::future::join_all;
use net::resolve::Resolver;
use rustls::ClientConfig;

use super::address::EtcdAddress;
use super::connection::EtcdCredentials;
use super::endpoint::EtcdEndpoint;
use super::error::{ClusterDifference, EtcdError};
use super::member::{EndpointStatus, EtcdMember, MemberList};
use super::view::{EtcdView, MemberHealth, ObservedMember};
use crate::quorum::{MemberId, MemberRole};

/// Most URLs of one member that are tried.
const MAX_URLS: usize = 4;
/// Observations of a contradiction, which a change between two reads explains.
const OBSERVATIONS: u32 = 3;
const OBSERVATION_PAUSE: Duration = Duration::from_millis(300);
/// Key of our linearizable writes: outside the prefixes of Kubernetes.
const WRITE_KEY: &[u8] = b"/atoll/write-check";

/// A cluster. Its endpoints are those of the settings, and those that its members advertise.
#[derive(Debug)]
pub struct EtcdCluster {
    pub(super) seeds: Vec<EtcdAddress>,
    tls: Arc<ClientConfig>,
    resolver: Resolver,
    endpoints: Mutex<BTreeMap<EtcdAddress, EtcdEndpoint>>,
}

/// One look at an endpoint.
struct Inspection {
    endpoint: EtcdEndpoint,
    status: Option<EndpointStatus>,
    /// The members, if it serves linearizable reads.
    members: Option<MemberList>,
    /// The failure, if something is missing.
    failure: Option<EtcdError>,
}

impl EtcdCluster {
    /// The cluster with endpoints at `seeds`; at least one that lives, of any member. Connects at the first call.
    ///
    /// Errors: Credentials; Address.
    pub fn new(
        seeds: Vec<EtcdAddress>,
        credentials: &EtcdCredentials,
        resolver: Resolver,
    ) -> Result<Self, EtcdError> {
        Ok(Self {
            seeds,
            tls: Arc::new(credentials.client_config()?),
            resolver,
            endpoints: Mutex::default(),
        })
    }

    /// The endpoint at `address`. Its connection is kept.
    ///
    /// Errors: Address.
    pub fn endpoint(&self, address: &EtcdAddress) -> Result<EtcdEndpoint, EtcdError> {
        let mut endpoints = self
            .endpoints
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        if let Some(endpoint) = endpoints.get(address) {
            return Ok(endpoint.clone());
        }
        let (tls, resolver) = (Arc::clone(&self.tls), self.resolver.clone());
        let endpoint = EtcdEndpoint::new(address.clone(), tls, resolver)?;
        endpoints.insert(address.clone(), endpoint.clone());
        Ok(endpoint)
    }

    /// Members and health, as seen by every healthy voter.
    ///
    /// Errors: NoVoter; Different – twice in a row, with both lists.
    pub async fn observe(&self) -> Result<EtcdView, EtcdError> {
        for _ in 1..OBSERVATIONS {
            match self.observe_once().await {
                Err(EtcdError::Different(_)) => tokio::time::sleep(OBSERVATION_PAUSE).await,
                observed => return observed,
            }
        }
        self.observe_once().await
    }

    async fn observe_once(&self) -> Result<EtcdView, EtcdError> {
        let mut inspected = self.inspect(self.seeds.iter().cloned()).await?;
        let list = agreed(&inspected)?;
        let advertised: BTreeSet<_> = list.members.iter().flat_map(addresses).collect();
        let known = inspected.iter().map(|it| it.endpoint.address().clone());
        let known: BTreeSet<_> = known.collect();
        let missing = advertised.difference(&known).cloned();
        inspected.extend(self.inspect(missing).await?);
        let list = agreed(&inspected)?;
        let members: Vec<_> = list
            .members
            .into_iter()
            .map(|member| observed(member, &inspected))
            .collect();
        let voter = inspected.iter().find(|it| it.members.is_some());
        let alarms = match voter {
            Some(voter) => voter.endpoint.alarms().await?,
            None => Vec::new(),
        };
        Ok(EtcdView {
            cluster_id: list.cluster_id,
            members,
            alarms,
        })
    }

    async fn inspect(
        &self,
        addresses: impl Iterator<Item = EtcdAddress>,
    ) -> Result<Vec<Inspection>, EtcdError> {
        let endpoints = addresses.map(|address| self.endpoint(&address));
        let endpoints: Vec<_> = endpoints.collect::<Result<_, _>>()?;
        Ok(join_all(endpoints.into_iter().map(inspect)).await)
    }

    /// The endpoint of a member that answered in `view`.
    ///
    /// Errors: NoEndpoint.
    pub fn endpoint_of(
        &self,
        view: &EtcdView,
        member: MemberId,
    ) -> Result<EtcdEndpoint, EtcdError> {
        let observed = view.member(member).filter(|it| it.is_healthy());
        let address = observed.and_then(|it| it.endpoint.as_ref());
        self.endpoint(address.ok_or(EtcdError::NoEndpoint { member })?)
    }

    /// The leader's endpoint: changes of members are sent to it.
    ///
    /// Errors: NoLeader.
    pub fn leader(&self, view: &EtcdView) -> Result<EtcdEndpoint, EtcdError> {
        let leader = view.leader().ok_or(EtcdError::NoLeader)?;
        self.endpoint_of(view, leader.member.id)
    }

    /// Writes `value` under a key of ours by the leader, and reads it by every other healthy voter. The revision of
    /// the write.
    ///
    /// Errors: of a call; LostWrite – a voter does not have it.
    pub async fn check_write(&self, view: &EtcdView, value: &[u8]) -> Result<i64, EtcdError> {
        let leader = self.leader(view)?;
        let revision = leader.put(WRITE_KEY, value).await?;
        let is_voter =
            |it: &&ObservedMember| it.is_healthy() && it.member.role == MemberRole::Voter;
        for member in view.members.iter().filter(is_voter) {
            let endpoint = self.endpoint_of(view, member.member.id)?;
            let (_, found) = endpoint.get(WRITE_KEY).await?;
            if found.is_none_or(|it| it.revision < revision) {
                let endpoint = endpoint.address().to_string();
                return Err(EtcdError::LostWrite { endpoint, revision });
            }
        }
        leader.delete(WRITE_KEY).await?;
        Ok(revision)
    }
}

async fn inspect(endpoint: EtcdEndpoint) -> Inspection {
    let mut inspection = Inspection {
        endpoint,
        status: None,
        members: None,
        failure: None,
    };
    match inspection.endpoint.status().await {
        Ok(status) => inspection.status = Some(status),
        Err(error) => inspection.failure = Some(inspection.endpoint.explain(error).await),
    }
    let role = inspection.status.as_ref().map(|it| it.role);
    if role == Some(MemberRole::Voter) {
        match inspection.endpoint.members().await {
            Ok(members) => inspection.members = Some(members),
            Err(error) => inspection.failure = Some(error),
        }
    }
    inspection
}

/// The member list on which all that serve linearizable reads agree.
fn agreed(inspected: &[Inspection]) -> Result<MemberList, EtcdError> {
    let mut lists = inspected
        .iter()
        .filter_map(|it| Some((it.endpoint.address(), it.members.as_ref()?)));
    let Some((first, list)) = lists.next() else {
        let failures = inspected.iter().map(|it| match &it.failure {
            Some(failure) => failure.to_string(),
            None => format!("{}: a learner", it.endpoint.address()),
        });
        return Err(EtcdError::NoVoter {
            failures: failures.collect(),
        });
    };
    let side = |address: &EtcdAddress, list: &MemberList| {
        (address.to_string(), list.cluster_id, list.members.clone())
    };
    match lists.find(|(_, other)| *other != list) {
        Some((second, other)) => Err(EtcdError::Different(Box::new(ClusterDifference {
            first: side(first, list),
            second: side(second, other),
        }))),
        None => Ok(list.clone()),
    }
}

/// Addresses that a member advertises; those of other protocols are skipped.
fn addresses(member: &EtcdMember) -> impl Iterator<Item = EtcdAddress> {
    let urls = member.client_urls.iter().take(MAX_URLS);
    urls.filter_map(|url| url.parse().ok())
}

/// The health of a member: the best of its endpoints.
fn observed(member: EtcdMember, inspected: &[Inspection]) -> ObservedMember {
    let own: Vec<_> = addresses(&member).collect();
    let own = inspected
        .iter()
        .filter(|it| own.contains(it.endpoint.address()));
    let mut reason = None;
    for inspection in own {
        let address = inspection.endpoint.address();
        match &inspection.status {
            Some(status) if status.member_id == member.id => {
                let is_healthy = match member.role {
                    MemberRole::Voter => inspection.members.is_some(),
                    // A learner that knows no leader receives no log.
                    MemberRole::Learner => status.leader.is_some(),
                };
                if is_healthy {
                    return ObservedMember {
                        health: MemberHealth::Healthy,
                        endpoint: Some(address.clone()),
                        status: Some(status.clone()),
                        member,
                    };
                }
                reason = match &inspection.failure {
                    Some(failure) => Some(failure.to_string()),
                    None => Some(format!("{address}: knows no leader")),
                };
            }
            Some(status) => {
                let other = status.member_id;
                reason = Some(format!("{address}: the member {other} answers"));
            }
            None => reason = inspection.failure.as_ref().map(ToString::to_string),
        }
    }
    let health = if member.has_started() {
        MemberHealth::Unhealthy {
            reason: reason.unwrap_or_else(|| "it advertises no address".to_owned()),
        }
    } else {
        MemberHealth::NotStarted
    };
    ObservedMember {
        member,
        health,
        endpoint: None,
        status: None,
    }
}
