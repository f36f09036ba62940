//! Links, collections and entity tags, in the form that a family of BMCs has.

use serde_json::{Value, json};

use super::answer::BmcAnswer;
use super::simulated::SimulatedBmc;

/// The entity tag of a version.
pub(super) fn tag(bmc: &SimulatedBmc, version: u64) -> String {
    let weak = if bmc.profile.has_weak_tags { "W/" } else { "" };
    format!("{weak}\"{version}\"")
}

/// The answer with a document and its entity tag.
pub(super) fn with_tag(bmc: &SimulatedBmc, mut body: Value, version: u64) -> BmcAnswer {
    let tag = tag(bmc, version);
    body["@odata.etag"] = json!(tag);
    BmcAnswer::json(200, body).with_header("ETag", &tag)
}

/// A link to a resource.
pub(super) fn link(bmc: &SimulatedBmc, path: &str) -> Value {
    let slash = if bmc.profile.ends_with_slash { "/" } else { "" };
    json!({ "@odata.id": format!("{path}{slash}") })
}

/// A collection of resources below its path.
pub(super) fn collection(bmc: &SimulatedBmc, path: &str, names: &[String]) -> Value {
    let members: Vec<Value> = names
        .iter()
        .map(|name| link(bmc, &format!("{path}/{name}")))
        .collect();
    json!({ "@odata.id": path, "Members@odata.count": members.len(), "Members": members })
}
