//! The client of update services.
//!
//! Source: Cincinnati, `/v1/graph`, with the peer's query.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use model::Error;
use model::image_set::ReleaseKind;
use net::web::shown;
use uuid::Uuid;

use super::cross_channel::ChannelName;
use super::graph::{GraphRelease, UpdateGraph};
use super::settings::ReleaseSources;
use super::shortest_path::of_channel;

const MEDIA_TYPE: &str = "application/json";
/// Units: bytes. The whole graph of a platform takes a few.
const GRAPH_LIMIT_BYTES: u64 = 64 << 20;

/// Upgrade graphs, each fetched once.
#[derive(Debug)]
pub struct Updates<'a> {
    sources: &'a ReleaseSources,
    /// Identifier of the client for the service.
    id: Uuid,
    graphs: BTreeMap<GraphKey, (Arc<UpdateGraph>, Bytes)>,
    /// Replies of the service, by architecture and channel.
    replies: BTreeMap<(String, String), Bytes>,
}

/// Platform, architecture and channel; the service of OKD returns all at once.
type GraphKey = (&'static str, String, String);

impl<'a> Updates<'a> {
    pub fn new(sources: &'a ReleaseSources) -> Self {
        Self {
            sources,
            id: Uuid::new_v4(),
            graphs: BTreeMap::new(),
            replies: BTreeMap::new(),
        }
    }

    /// The graphs that the service returned, as it did, by architecture and channel.
    pub(super) fn into_replies(self) -> BTreeMap<(String, String), Bytes> {
        self.replies
    }

    /// The graph of a channel that has releases, for an architecture as Go names it, or `multi`.
    ///
    /// Errors: Invalid – there is no such channel, or the reply is no graph; NotFound – there is no such service;
    /// Unavailable.
    pub async fn graph(
        &mut self,
        kind: ReleaseKind,
        architecture: &str,
        channel: &str,
    ) -> Result<Arc<UpdateGraph>, Error> {
        let graph = self.ask(kind, architecture, channel).await?;
        if !graph.is_empty() {
            return Ok(graph);
        }
        let meant = self.meant(kind, architecture, channel).await;
        let meant = meant.map_or_else(String::new, |meant| format!("; {meant} may be meant"));
        let service = shown(&self.sources.updates_of(kind));
        let reason = format!("has no releases for {architecture}, says {service}{meant}");
        Err(of_channel(channel, &reason))
    }

    /// The channels of a version's releases, as `x.y`, besides its stable one.
    ///
    /// Errors: as [`Self::graph`].
    pub async fn channels(&mut self, version: &str) -> Result<Vec<String>, Error> {
        let stable = format!("stable-{version}");
        let graph = self.graph(ReleaseKind::Ocp, "", &stable).await?;
        let channels = graph.releases().iter().flat_map(|it| it.channels.clone());
        let channels: std::collections::BTreeSet<String> = channels.collect();
        Ok(channels.into_iter().collect())
    }

    async fn ask(
        &mut self,
        kind: ReleaseKind,
        architecture: &str,
        channel: &str,
    ) -> Result<Arc<UpdateGraph>, Error> {
        let mut url = self.sources.updates_of(kind);
        let key = match kind {
            ReleaseKind::Okd => (kind.as_str(), String::new(), String::new()),
            ReleaseKind::Ocp => (kind.as_str(), architecture.to_owned(), channel.to_owned()),
        };
        let named = (architecture.to_owned(), channel.to_owned());
        if let Some((known, reply)) = self.graphs.get(&key) {
            self.replies.insert(named, reply.clone());
            return Ok(Arc::clone(known));
        }
        if kind == ReleaseKind::Ocp {
            let id = self.id.to_string();
            let asked = [("arch", architecture), ("channel", channel), ("id", &id)];
            let asked = asked.into_iter().filter(|(_, value)| !value.is_empty());
            url.query_pairs_mut().extend_pairs(asked);
        }
        let reply = self.sources.web.get(&url, MEDIA_TYPE, GRAPH_LIMIT_BYTES);
        let reply = reply.await?;
        let graph = UpdateGraph::parse(&reply).map_err(|error| {
            Error::invalid(format!("the answer of {}", shown(&url)), error.to_string())
        })?;
        let graph = Arc::new(graph);
        self.graphs.insert(key, (Arc::clone(&graph), reply.clone()));
        self.replies.insert(named, reply);
        Ok(graph)
    }

    /// The nearest channel, of those with releases of the same version and the one before.
    async fn meant(
        &mut self,
        kind: ReleaseKind,
        architecture: &str,
        channel: &str,
    ) -> Option<String> {
        let ChannelName { major, minor, .. } = channel.parse().ok()?;
        let mut known = Vec::new();
        for minor in [minor, minor.saturating_sub(1)] {
            let stable = format!("stable-{major}.{minor}");
            // Without its graph there is no suggestion, which needs no message.
            let Ok(graph) = self.ask(kind, architecture, &stable).await else {
                continue;
            };
            known.extend(
                graph
                    .releases()
                    .iter()
                    .flat_map(GraphRelease::channels_known),
            );
            if !graph.is_empty() {
                known.push(stable);
            }
        }
        let limit = (channel.len() / 3).max(1);
        let meant = model::nearest(channel, known.iter().map(String::as_str), limit);
        meant.map(str::to_owned)
    }
}

impl GraphRelease {
    fn channels_known(&self) -> impl Iterator<Item = String> {
        self.channels.iter().cloned()
    }
}
