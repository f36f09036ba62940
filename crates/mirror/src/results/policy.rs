//! Objects and settings that lead a cluster to the target.

use model::Error;
use model::mirror_metadata::ImageType;
use oci::Reference;
use serde_json::{Value, json};

use super::file::ResultFile;
use super::mirrors::{MirrorEntry, Scopes};
use super::outcome::MirrorResults;
use super::yaml;
use crate::section::Section;

/// Units: bytes. Largest policy; a cluster takes some more. Source: the peer.
const LIMIT_BYTES: usize = 250_000;
/// Label that distinguishes policies of catalogs.
const CATALOG_LABEL: &str = "operators.openshift.org/catalog";
/// Source: the peer, whose name clusters have already.
const UPDATE_SERVICE: &str = "update-service-oc-mirror";

/// A kind of policy.
struct PolicyForm {
    api_version: &'static str,
    kind: &'static str,
    /// The member of `spec` with the names.
    list: &'static str,
    /// Prefix of names.
    prefix: &'static str,
    is_labelled: bool,
}

const CONTENT_POLICY: PolicyForm = PolicyForm {
    api_version: "operator.openshift.io/v1alpha1",
    kind: "ImageContentSourcePolicy",
    list: "repositoryDigestMirrors",
    prefix: "",
    is_labelled: true,
};
const DIGEST_SET: PolicyForm = PolicyForm {
    api_version: "config.openshift.io/v1",
    kind: "ImageDigestMirrorSet",
    list: "imageDigestMirrors",
    prefix: "idms-",
    is_labelled: false,
};
const TAG_SET: PolicyForm = PolicyForm {
    api_version: "config.openshift.io/v1",
    kind: "ImageTagMirrorSet",
    list: "imageTagMirrors",
    prefix: "itms-",
    is_labelled: false,
};

/// Policies for images by digest, as all clusters know them.
pub(super) fn content_policies(outcome: &MirrorResults) -> Result<Option<ResultFile>, Error> {
    let scopes = Scopes::new(outcome);
    let mut text = String::new();
    for section in Section::ALL {
        let names = scopes.of(|own, _| own == section);
        text.push_str(&CONTENT_POLICY.documents(section, &names)?);
    }
    Ok(file("imageContentSourcePolicy.yaml", text))
}

/// Policies for images by digest and by tag, as later clusters know them.
pub(super) fn mirror_sets(outcome: &MirrorResults) -> Result<Vec<ResultFile>, Error> {
    let scopes = Scopes::new(outcome);
    let (mut digests, mut tags) = (String::new(), String::new());
    for section in Section::ALL {
        let names = scopes.of(|own, _| own == section);
        digests.push_str(&DIGEST_SET.documents(section, &names)?);
        let names = scopes.of(|own, image| own == section && image.is_tagged);
        tags.push_str(&TAG_SET.documents(section, &names)?);
    }
    let files = [
        file("idms-oc-mirror.yaml", digests),
        file("itms-oc-mirror.yaml", tags),
    ];
    Ok(files.into_iter().flatten().collect())
}

/// The part of `install-config.yaml` that replaces policies: a cluster that is being installed has none yet.
pub(super) fn install_config(outcome: &MirrorResults) -> Result<Option<ResultFile>, Error> {
    let names = Scopes::new(outcome).of(|_, _| true);
    if names.is_empty() {
        return Ok(None);
    }
    let text = yaml::text(&json!({ "imageContentSources": names }))?;
    Ok(file("install-config/imageContentSources.yaml", text))
}

/// The update service of clusters; none without the graph, or without releases.
pub(super) fn update_service(outcome: &MirrorResults) -> Result<Option<ResultFile>, Error> {
    let mut images = outcome.all_images();
    let release = images.find(|image| image.kind == ImageType::OcpRelease);
    let (Some(graph), Some(release)) = (&outcome.graph, release) else {
        return Ok(None);
    };
    let Reference {
        registry,
        repository,
        ..
    } = &release.destination;
    let service = json!({
        "apiVersion": "updateservice.operator.openshift.io/v1",
        "kind": "UpdateService",
        "metadata": { "name": UPDATE_SERVICE },
        "spec": {
            "graphDataImage": graph,
            "releases": format!("{registry}/{repository}"),
            "replicas": 2,
        },
    });
    Ok(file("updateService.yaml", yaml::document(&service)?))
}

fn file(path: &str, text: String) -> Option<ResultFile> {
    (!text.is_empty()).then(|| ResultFile::new(path, text))
}

impl PolicyForm {
    /// As many policies as the names need, with the numbers 0, 1, 2, …
    fn documents(&self, section: Section, names: &[MirrorEntry]) -> Result<String, Error> {
        let mut documents = String::new();
        let (mut number, mut rest) = (0, names);
        while !rest.is_empty() {
            let name = format!("{}{section}-{number}", self.prefix);
            let room =
                LIMIT_BYTES.saturating_sub(yaml::text(&self.policy(&name, section, &[]))?.len());
            let (own, others) = rest.split_at(fitting(rest, room)?);
            documents.push_str(&yaml::document(&self.policy(&name, section, own))?);
            (number, rest) = (number + 1, others);
        }
        Ok(documents)
    }

    fn policy(&self, name: &str, section: Section, names: &[MirrorEntry]) -> Value {
        let mut policy = json!({
            "apiVersion": self.api_version,
            "kind": self.kind,
            "metadata": { "name": name },
            "spec": { (self.list): names },
        });
        if self.is_labelled && section == Section::Operator {
            policy["metadata"]["labels"] = json!({ (CATALOG_LABEL): "true" });
        }
        policy
    }
}

/// Number of names that fit; one at least. Units of `room`: bytes.
fn fitting(names: &[MirrorEntry], room: usize) -> Result<usize, Error> {
    /// Units: bytes. Each line of an entry is indented by the list's place.
    const INDENT: usize = 2;
    let mut used = 0;
    for (count, name) in names.iter().enumerate() {
        let text = yaml::text(&[name])?;
        used += text.len() + INDENT * text.lines().count();
        if used > room {
            return Ok(count.max(1));
        }
    }
    Ok(names.len())
}
