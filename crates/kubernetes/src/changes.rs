//! Changes of records by their names.

use kube::api::{DeleteParams, Patch, PatchParams, PostParams};
use kube::core::DynamicObject;
use model::Error;
use serde_json::{Value, json};

use super::connect::{KubernetesCluster, is_conflict, is_missing, refused};
use super::resources::ResourceKind;

impl KubernetesCluster {
    /// Creates a record; one of its name that exists is left as it is.
    ///
    /// Errors: Invalid – the content is no record; those of the cluster.
    pub async fn create_record(&self, kind: &ResourceKind, record: &Value) -> Result<(), Error> {
        let record: DynamicObject = serde_json::from_value(record.clone())
            .map_err(|error| Error::invalid("record", error.to_string()))?;
        let (api, params) = (self.api(kind), PostParams::default());
        match api.create(&params, &record).await {
            Err(error) if !is_conflict(&error) => Err(refused(kind, error)),
            _ => Ok(()),
        }
    }

    /// Deletes a record; a missing one is deleted.
    ///
    /// Errors: those of the cluster.
    pub async fn delete_record(&self, kind: &ResourceKind, name: &str) -> Result<(), Error> {
        match self.api(kind).delete(name, &DeleteParams::default()).await {
            Err(error) if !is_missing(&error) => Err(refused(kind, error)),
            _ => Ok(()),
        }
    }

    /// Removes the finalizers of a record that is being deleted.
    ///
    /// Errors: those of the cluster.
    pub async fn drop_finalizers(&self, kind: &ResourceKind, name: &str) -> Result<(), Error> {
        let Some(record) = self.find(kind, name).await? else {
            return Ok(());
        };
        // A record of this name that is not being deleted is another one.
        if record.metadata.deletion_timestamp.is_none() {
            return Ok(());
        }
        let patch = json!({ "metadata": { "uid": record.metadata.uid, "finalizers": null } });
        match self.merge_record(kind, name, &patch).await {
            Err(Error::NotFound { .. }) => Ok(()),
            dropped => dropped,
        }
    }

    /// Changes a record by a merge patch.
    ///
    /// Errors: NotFound; those of the cluster.
    pub async fn merge_record(
        &self,
        kind: &ResourceKind,
        name: &str,
        patch: &Value,
    ) -> Result<(), Error> {
        let (api, params) = (self.api(kind), PatchParams::default());
        match api.patch(name, &params, &Patch::Merge(patch)).await {
            Ok(_) => Ok(()),
            Err(error) if is_missing(&error) => Err(Error::not_found(kind.kind, name)),
            Err(error) => Err(refused(kind, error)),
        }
    }
}
