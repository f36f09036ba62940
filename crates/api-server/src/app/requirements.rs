//! What a cluster asks of its hosts before any is there.

use model::Error;
use model::ids::ClusterId;
use rules::hardware::Requirements;
use serde_json::{Value, json};

use super::App;

impl App {
    /// Hardware requirements by role, in the shape `preflight-hardware-requirements`.
    pub(crate) async fn preflight_requirements(&self, id: ClusterId) -> Result<Value, Error> {
        let stored = self.stored_cluster(id).await?;
        let cluster = &stored.snapshot.cluster;
        let requirements = Requirements::of(&self.policy, &cluster.openshift_version);
        let is_single = cluster.control_plane_count == 1;
        let master = if is_single {
            &requirements.single_node
        } else {
            &requirements.master
        };
        Ok(json!({
            "ocp": {
                "master": { "quantitative": master, "qualitative": [] },
                "worker": { "quantitative": requirements.worker, "qualitative": [] },
            },
            "operators": [],
        }))
    }
}
