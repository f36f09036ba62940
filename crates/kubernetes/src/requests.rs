//! Certificate signing requests: those without a decision, and their approval.

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use kube::api::{Patch, PatchParams};
use kube::core::DynamicObject;
use model::Error;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::connect::{KubernetesCluster, refused};
use super::listed::{csr, member};
use super::resources::CSRS;

/// Reason of our approvals, as the record keeps it.
const REASON: &str = "AtollNodeApprove";

/// A pending CertificateSigningRequest.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CertificateRequest {
    /// Name of the record.
    pub name: String,
    /// Signer.
    pub signer: String,
    /// Account that created it, as the API server recorded it.
    pub requestor: String,
    /// Groups of the account.
    pub groups: Vec<String>,
    /// Requested usages.
    pub usages: Vec<String>,
    /// The request, as PEM.
    pub pem: Vec<u8>,
}

/// A request without a decision.
#[derive(Debug, Clone)]
pub struct PendingRequest {
    /// Its content.
    pub request: CertificateRequest,
    /// The record that was read: one of the same name that replaced it is not approved.
    version: Value,
    /// Its other conditions.
    conditions: Vec<Value>,
}

impl KubernetesCluster {
    /// Requests without a decision.
    ///
    /// Errors: as [`Self::list`].
    pub async fn pending_requests(&self) -> Result<Vec<PendingRequest>, Error> {
        let pending = |record: &_| csr(record).is_pending.then(|| pending_request(record));
        let requests = self.list(&CSRS, pending).await?;
        Ok(requests.unwrap_or_default().into_iter().flatten().collect())
    }

    /// Approves a request; `message` says why, and stays in its record.
    ///
    /// Errors: Conflict – the record is another one by now; as [`Self::list`].
    pub async fn approve(&self, pending: &PendingRequest, message: &str) -> Result<(), Error> {
        let mut conditions = pending.conditions.clone();
        conditions.push(json!({
            "type": "Approved", "status": "True", "reason": REASON, "message": message,
        }));
        let patch = json!({
            "metadata": pending.version,
            "status": { "conditions": conditions },
        });
        let (api, name) = (self.api(&CSRS), &pending.request.name);
        let (params, patch) = (PatchParams::default(), Patch::Merge(&patch));
        let approved = api.patch_subresource("approval", name, &params, &patch);
        approved
            .await
            .map(drop)
            .map_err(|error| refused(&CSRS, error))
    }
}

fn pending_request(record: &DynamicObject) -> PendingRequest {
    let encoded: String = member(record, "/spec/request");
    PendingRequest {
        request: CertificateRequest {
            name: record.metadata.name.clone().unwrap_or_default(),
            signer: member(record, "/spec/signerName"),
            requestor: member(record, "/spec/username"),
            groups: member(record, "/spec/groups"),
            usages: member(record, "/spec/usages"),
            // Text that is no base64 is no request, either.
            pem: BASE64_STANDARD.decode(encoded).unwrap_or_default(),
        },
        version: json!({
            "uid": record.metadata.uid,
            "resourceVersion": record.metadata.resource_version,
        }),
        conditions: member(record, "/status/conditions"),
    }
}
