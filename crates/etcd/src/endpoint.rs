//! Calls to one endpoint.

use std::sync::Arc;

use net::resolve::Resolver;
use prost::Message;
use rustls::ClientConfig;
use tonic::client::Grpc;
use tonic::transport::Channel;
use tonic::{Request, Streaming};
use tonic_prost::ProstCodec;

use super::address::EtcdAddress;
use super::call::{self, EtcdCall};
use super::connection;
use super::error::EtcdError;
use super::member::{AlarmKind, EndpointStatus, EtcdMember, MemberAlarm, MemberList, StoredValue};
use super::messages::{
    AlarmRequest, AlarmResponse, DeleteRangeRequest, DeleteRangeResponse, MemberAddRequest,
    MemberAddResponse, MemberListRequest, MemberListResponse, MemberPromoteRequest,
    MemberPromoteResponse, MemberRemoveRequest, MemberRemoveResponse, MemberUpdateRequest,
    MemberUpdateResponse, MoveLeaderRequest, MoveLeaderResponse, PutRequest, PutResponse,
    RangeRequest, RangeResponse, ResponseHeader, SnapshotRequest, SnapshotResponse, StatusRequest,
    StatusResponse,
};
use crate::quorum::{MemberId, MemberRole};

/// Largest response. A member list has less than 10 KiB, a message of a snapshot 32 KiB. Units: bytes.
const MAX_RESPONSE_BYTES: usize = 1 << 20;
/// Most members of a list; etcd recommends at most 7.
pub const MAX_MEMBERS: usize = 32;
/// A key of etcd's own health check, which need not exist. Source: etcdctl, `endpoint health`.
const HEALTH_KEY: &[u8] = b"health";

/// An endpoint of a member. Clones share its connection.
#[derive(Clone, Debug)]
pub struct EtcdEndpoint {
    address: EtcdAddress,
    grpc: Grpc<Channel>,
    tls: Arc<ClientConfig>,
    resolver: Resolver,
}

impl EtcdEndpoint {
    /// Connects at the first call.
    pub(super) fn new(
        address: EtcdAddress,
        tls: Arc<ClientConfig>,
        resolver: Resolver,
    ) -> Result<Self, EtcdError> {
        let channel = connection::channel(&address, Arc::clone(&tls), resolver.clone())?;
        let grpc = Grpc::new(channel).max_decoding_message_size(MAX_RESPONSE_BYTES);
        Ok(Self {
            address,
            grpc,
            tls,
            resolver,
        })
    }

    /// Its address.
    pub fn address(&self) -> &EtcdAddress {
        &self.address
    }

    /// Status of its member; learners answer as well.
    pub async fn status(&self) -> Result<EndpointStatus, EtcdError> {
        let call = &call::STATUS;
        let response: StatusResponse = self.call(call, StatusRequest {}).await?;
        let header = self.header(call, response.header)?;
        Ok(EndpointStatus {
            cluster_id: header.cluster_id,
            member_id: MemberId(header.member_id),
            version: response.version,
            leader: Some(MemberId(response.leader)).filter(|id| id.0 != 0),
            term: response.raft_term,
            raft_index: response.raft_index,
            applied_index: response.raft_applied_index,
            db_size_bytes: u64::try_from(response.db_size).unwrap_or(0),
            role: if response.is_learner {
                MemberRole::Learner
            } else {
                MemberRole::Voter
            },
        })
    }

    /// `error` with the alert by which the server closes connections, if it does.
    pub(super) async fn explain(&self, mut error: EtcdError) -> EtcdError {
        if let EtcdError::Unavailable { reason, .. } = &mut error {
            let tls = Arc::clone(&self.tls);
            let alert = connection::closing_alert(&self.address, tls, &self.resolver).await;
            if let Some(alert) = alert {
                *reason = format!("{reason}: {alert}");
            }
        }
        error
    }

    /// A linearizable read: the member has quorum, and its database all acknowledged writes. The revision.
    pub async fn linearizable_read(&self) -> Result<i64, EtcdError> {
        let (revision, _) = self.get(HEALTH_KEY).await?;
        Ok(revision)
    }

    /// The members, as linearizable as the server can: those of 3.4 read their own list, after a linearizable read.
    pub async fn members(&self) -> Result<MemberList, EtcdError> {
        self.linearizable_read().await?;
        let call = &call::MEMBERS;
        let request = MemberListRequest { linearizable: true };
        let response: MemberListResponse = self.call(call, request).await?;
        let header = self.header(call, response.header)?;
        let count = response.members.len();
        if count > MAX_MEMBERS {
            let reason = format!("{count} members are more than {MAX_MEMBERS}");
            return Err(self.malformed(call, reason));
        }
        let mut members: Vec<EtcdMember> = response.members.into_iter().map(Into::into).collect();
        members.sort_unstable();
        Ok(MemberList {
            cluster_id: header.cluster_id,
            members,
        })
    }

    /// Active alarms of all members.
    pub async fn alarms(&self) -> Result<Vec<MemberAlarm>, EtcdError> {
        let request = AlarmRequest { action: 0 };
        let response: AlarmResponse = self.call(&call::ALARMS, request).await?;
        let alarms = response.alarms.into_iter();
        let alarms = alarms.take(MAX_MEMBERS).filter_map(|alarm| {
            let kind = AlarmKind::from_wire(alarm.alarm)?;
            let member = MemberId(alarm.member_id);
            Some(MemberAlarm { member, kind })
        });
        Ok(alarms.collect())
    }

    /// Adds a learner. Its id.
    pub async fn add_learner(&self, peer_urls: &[String]) -> Result<MemberId, EtcdError> {
        let call = &call::ADD;
        let request = MemberAddRequest {
            peer_urls: peer_urls.to_vec(),
            is_learner: true,
        };
        let response: MemberAddResponse = self.call(call, request).await?;
        let member = response.member;
        let member = member.ok_or_else(|| self.malformed(call, "no member".to_owned()))?;
        Ok(MemberId(member.id))
    }

    /// Makes a learner a voter.
    pub async fn promote(&self, member: MemberId) -> Result<(), EtcdError> {
        let request = MemberPromoteRequest { id: member.0 };
        let _: MemberPromoteResponse = self.call(&call::PROMOTE, request).await?;
        Ok(())
    }

    /// Removes a member.
    pub async fn remove(&self, member: MemberId) -> Result<(), EtcdError> {
        let request = MemberRemoveRequest { id: member.0 };
        let _: MemberRemoveResponse = self.call(&call::REMOVE, request).await?;
        Ok(())
    }

    /// Changes the peer URLs of a member.
    pub async fn update(&self, member: MemberId, peer_urls: &[String]) -> Result<(), EtcdError> {
        let request = MemberUpdateRequest {
            id: member.0,
            peer_urls: peer_urls.to_vec(),
        };
        let _: MemberUpdateResponse = self.call(&call::UPDATE, request).await?;
        Ok(())
    }

    /// Moves leadership from this endpoint's member to `successor`, and waits until it leads.
    pub async fn move_leader(&self, successor: MemberId) -> Result<(), EtcdError> {
        let request = MoveLeaderRequest {
            target_id: successor.0,
        };
        let _: MoveLeaderResponse = self.call(&call::MOVE_LEADER, request).await?;
        Ok(())
    }

    /// A linearizable read: revision of the database, and the value of `key`.
    pub async fn get(&self, key: &[u8]) -> Result<(i64, Option<StoredValue>), EtcdError> {
        let call = &call::RANGE;
        let request = RangeRequest {
            key: key.to_vec(),
            limit: 1,
            serializable: false,
        };
        let response: RangeResponse = self.call(call, request).await?;
        let header = self.header(call, response.header)?;
        let found = response.kvs.into_iter().next().map(|found| StoredValue {
            revision: found.mod_revision,
            value: found.value,
        });
        Ok((header.revision, found))
    }

    /// Writes a key. The revision.
    pub async fn put(&self, key: &[u8], value: &[u8]) -> Result<i64, EtcdError> {
        let call = &call::PUT;
        let request = PutRequest {
            key: key.to_vec(),
            value: value.to_vec(),
        };
        let response: PutResponse = self.call(call, request).await?;
        Ok(self.header(call, response.header)?.revision)
    }

    /// Deletes a key.
    pub async fn delete(&self, key: &[u8]) -> Result<(), EtcdError> {
        let request = DeleteRangeRequest { key: key.to_vec() };
        let _: DeleteRangeResponse = self.call(&call::DELETE, request).await?;
        Ok(())
    }

    /// The database as a stream of messages.
    pub(super) async fn snapshot(&self) -> Result<Streaming<SnapshotResponse>, EtcdError> {
        let call = &call::SNAPSHOT;
        let mut grpc = self.grpc.clone();
        let streamed = async {
            grpc.ready()
                .await
                .map_err(|error| self.unavailable(call, &error))?;
            let codec = ProstCodec::<SnapshotRequest, SnapshotResponse>::default();
            let request = Request::new(SnapshotRequest {});
            let response = grpc.server_streaming(request, call.path(), codec).await;
            response.map_err(|status| self.status_error(call, &status))
        };
        let response = tokio::time::timeout(call.timeout, streamed).await;
        Ok(response.map_err(|_| self.timed_out(call))??.into_inner())
    }

    async fn call<Q, A>(&self, call: &'static EtcdCall, message: Q) -> Result<A, EtcdError>
    where
        Q: Message + Send + Sync + 'static,
        A: Message + Default + Send + Sync + 'static,
    {
        let mut grpc = self.grpc.clone();
        let mut request = Request::new(message);
        // The server gives up with the client.
        request.set_timeout(call.timeout);
        let answered = async {
            grpc.ready()
                .await
                .map_err(|error| self.unavailable(call, &error))?;
            let codec = ProstCodec::<Q, A>::default();
            let response = grpc.unary(request, call.path(), codec).await;
            response.map_err(|status| self.status_error(call, &status))
        };
        let response = tokio::time::timeout(call.timeout, answered).await;
        Ok(response.map_err(|_| self.timed_out(call))??.into_inner())
    }

    fn header(
        &self,
        call: &EtcdCall,
        header: Option<ResponseHeader>,
    ) -> Result<ResponseHeader, EtcdError> {
        header.ok_or_else(|| self.malformed(call, "no header".to_owned()))
    }

    pub(super) fn status_error(&self, call: &EtcdCall, status: &tonic::Status) -> EtcdError {
        EtcdError::from_status(self.address.to_string(), call.name, status)
    }

    pub(super) fn timed_out(&self, call: &EtcdCall) -> EtcdError {
        EtcdError::Timeout {
            endpoint: self.address.to_string(),
            call: call.name,
            timeout_s: call.timeout.as_secs(),
        }
    }

    fn unavailable(&self, call: &EtcdCall, error: &tonic::transport::Error) -> EtcdError {
        EtcdError::Unavailable {
            endpoint: self.address.to_string(),
            call: call.name,
            reason: model::error::chain(error),
        }
    }

    pub(super) fn malformed(&self, call: &EtcdCall, reason: String) -> EtcdError {
        EtcdError::Malformed {
            endpoint: self.address.to_string(),
            call: call.name,
            reason,
        }
    }
}
