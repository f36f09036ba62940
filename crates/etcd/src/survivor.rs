//! Members that answer by themselves: without quorum, nothing else does.

use futures_util::future::join_all;
use serde::Serialize;

use super::address::EtcdAddress;
use super::cluster::EtcdCluster;
use super::error::EtcdError;
use super::member::EndpointStatus;

/// A member that answers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct EtcdSurvivor {
    /// Its endpoint.
    pub endpoint: EtcdAddress,
    /// Its own view of itself.
    pub status: EndpointStatus,
}

impl EtcdSurvivor {
    /// Newer logs are greater: by the term of their leader, then by their length.
    pub fn log(&self) -> (u64, u64) {
        (self.status.term, self.status.raft_index)
    }
}

/// The endpoints of the settings, apart from each other.
#[derive(Debug)]
pub struct EtcdSurvivors {
    /// Those that answer, the newest log first.
    pub alive: Vec<EtcdSurvivor>,
    /// The others, with the failure of each.
    pub dead: Vec<(EtcdAddress, EtcdError)>,
}

impl EtcdCluster {
    /// Asks each endpoint of the settings about itself alone.
    ///
    /// Errors: Address.
    pub async fn survivors(&self) -> Result<EtcdSurvivors, EtcdError> {
        let endpoints = self.seeds.iter().map(|seed| self.endpoint(seed));
        let endpoints: Vec<_> = endpoints.collect::<Result<_, _>>()?;
        let asked = endpoints.iter().map(super::EtcdEndpoint::status);
        let asked = join_all(asked).await;
        let mut survivors = EtcdSurvivors {
            alive: Vec::new(),
            dead: Vec::new(),
        };
        for (endpoint, status) in endpoints.iter().zip(asked) {
            let endpoint = endpoint.address().clone();
            match status {
                Ok(status) => survivors.alive.push(EtcdSurvivor { endpoint, status }),
                Err(error) => survivors.dead.push((endpoint, error)),
            }
        }
        survivors
            .alive
            .sort_by_key(|it| std::cmp::Reverse(it.log()));
        Ok(survivors)
    }
}
