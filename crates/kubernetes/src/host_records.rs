//! BareMetalHosts and the Secrets of their BMCs, as the controller reads and writes them.
//!
//! Each write names the version that was read: of a record that has changed meanwhile, nothing is written.

use kube::api::{Patch, PatchParams};
use kube::core::DynamicObject;
use model::Error;
use serde_json::{Value, json};

use super::connect::{KubernetesCluster, is_conflict, is_missing, refused};
use super::resources::{BMC_SECRETS, HOSTS};

/// The manager of the fields that the controller writes.
pub(super) const FIELD_MANAGER: &str = "atoll-host-controller";

/// A record of a host.
#[derive(Debug, Clone)]
pub struct HostRecord {
    /// Its whole content.
    pub content: Value,
    /// Its version at the API.
    pub version: String,
}

/// A secret, in its version.
#[expect(missing_debug_implementations, reason = "a secret is not printed")]
pub struct SecretRecord {
    /// Its whole content, credentials included.
    pub content: Value,
    /// Its version at the API.
    pub version: String,
}

/// The result of a write.
#[derive(Debug)]
pub enum HostWrite {
    /// The record as it is now.
    Done(HostRecord),
    /// The record has changed since it was read; nothing was written.
    Superseded,
    /// The record was deleted; nothing was written.
    Removed,
}

impl HostRecord {
    fn of(record: &DynamicObject) -> Self {
        Self {
            content: HOSTS.content(record),
            version: record.metadata.resource_version.clone().unwrap_or_default(),
        }
    }
}

impl KubernetesCluster {
    /// Names of all hosts; none where the cluster does not have the kind.
    ///
    /// Errors: as [`Self::list`].
    pub async fn host_names(&self) -> Result<Option<Vec<String>>, Error> {
        let name = |host: &DynamicObject| host.metadata.name.clone();
        let names = self.list(&HOSTS, name).await?;
        Ok(names.map(|names| names.into_iter().flatten().collect()))
    }

    /// The record of a host; none of a deleted one.
    ///
    /// Errors: as [`Self::list`].
    pub async fn host_record(&self, name: &str) -> Result<Option<HostRecord>, Error> {
        let record = self.find(&HOSTS, name).await?;
        Ok(record.as_ref().map(HostRecord::of))
    }

    /// A secret in the namespace of hosts.
    ///
    /// Errors: as [`Self::list`].
    pub async fn bmc_secret(&self, name: &str) -> Result<Option<SecretRecord>, Error> {
        let record = self.find(&BMC_SECRETS, name).await?;
        Ok(record.map(|record| SecretRecord {
            content: BMC_SECRETS.content(&record),
            version: record.metadata.resource_version.unwrap_or_default(),
        }))
    }

    /// Applies the fields of a host's status that the controller owns, and removes the `surplus` ones, as JSON pointers
    /// below the status, that another program wrote.
    ///
    /// Errors: those of the cluster.
    pub async fn apply_host_status(
        &self,
        name: &str,
        record: &HostRecord,
        status: &Value,
        surplus: &[&str],
    ) -> Result<HostWrite, Error> {
        let document = json!({
            "apiVersion": HOSTS.api_version(),
            "kind": HOSTS.kind,
            "metadata": { "name": name, "resourceVersion": record.version },
            "status": status,
        });
        let params = PatchParams::apply(FIELD_MANAGER).force();
        let api = self.api(&HOSTS);
        let applied = api
            .patch_status(name, &params, &Patch::Apply(&document))
            .await;
        let applied = match written(applied)? {
            HostWrite::Done(applied) => applied,
            other => return Ok(other),
        };
        // Fields that another manager has too are not removed by an apply without them.
        let present = &applied.content["status"];
        let left = surplus.iter().filter(|it| present.pointer(it).is_some());
        let Some(removal) = removal(&applied.version, left.copied()) else {
            return Ok(HostWrite::Done(applied));
        };
        let params = PatchParams {
            field_manager: Some(FIELD_MANAGER.to_owned()),
            ..PatchParams::default()
        };
        let removed = api
            .patch_status(name, &params, &Patch::Merge(&removal))
            .await;
        written(removed)
    }

    /// Changes metadata of a host by a merge patch.
    ///
    /// Errors: those of the cluster.
    pub async fn patch_host_metadata(
        &self,
        name: &str,
        record: &HostRecord,
        mut metadata: Value,
    ) -> Result<HostWrite, Error> {
        metadata["resourceVersion"] = json!(record.version);
        let patch = json!({ "metadata": metadata });
        let params = PatchParams {
            field_manager: Some(FIELD_MANAGER.to_owned()),
            ..PatchParams::default()
        };
        let api = self.api(&HOSTS);
        written(api.patch(name, &params, &Patch::Merge(&patch)).await)
    }
}

fn written(result: kube::Result<DynamicObject>) -> Result<HostWrite, Error> {
    match result {
        Ok(record) => Ok(HostWrite::Done(HostRecord::of(&record))),
        Err(error) if is_conflict(&error) => Ok(HostWrite::Superseded),
        Err(error) if is_missing(&error) => Ok(HostWrite::Removed),
        Err(error) => Err(refused(&HOSTS, error)),
    }
}

/// A merge patch that removes fields of the status; none for no field.
fn removal<'a>(version: &str, pointers: impl Iterator<Item = &'a str>) -> Option<Value> {
    let mut patch = json!({ "metadata": { "resourceVersion": version } });
    let mut is_empty = true;
    for pointer in pointers {
        let path = pointer.split('/').skip(1);
        let mut field = &mut patch["status"];
        for name in path {
            field = &mut field[name];
        }
        *field = Value::Null;
        is_empty = false;
    }
    (!is_empty).then_some(patch)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_removed_by_null() {
        assert_eq!(removal("7", [].into_iter()), None);
        let pointers = ["/errorType", "/provisioning/image"];
        let expected = json!({
            "metadata": { "resourceVersion": "7" },
            "status": { "errorType": null, "provisioning": { "image": null } },
        });
        assert_eq!(removal("7", pointers.into_iter()), Some(expected));
    }
}
