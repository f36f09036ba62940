//! Registries that are mirrors of others.

use std::sync::Arc;

use model::Error;
use oci::Reference;

use super::clients::{PROBE, registry_client};
use super::findings::{SubjectFinding, SubjectProblem, each};
use crate::CheckStatus::{Failed, Warning};
use crate::site::SiteFacts;

/// Each host of a mirror, unless it is the local registry, which has a check of its own.
pub(super) async fn mirrors(site: Arc<SiteFacts>) -> Vec<SubjectFinding> {
    let own = site.registry.as_ref().map(|it| it.address.as_str());
    let hosts = site.mirrors.mirror_hosts().into_iter();
    let hosts = hosts.filter(|(host, _)| Some(*host) != own);
    let subjects: Vec<_> = hosts
        .map(|(host, sources)| (host.to_owned(), sources.join(", ")))
        .collect();
    if subjects.is_empty() {
        return Vec::new();
    }
    let client = registry_client(&site);
    each(subjects, "check that the mirror runs", |host, sources| {
        let client = &client;
        async move {
            let answer = match client {
                Ok(client) => match format!("{host}/{PROBE}").parse::<Reference>() {
                    Ok(reference) => client.manifest_digest(&reference).await.map(drop),
                    Err(error) => Err(error),
                },
                Err(error) => Err(Error::internal("preparing a client", error.to_string())),
            };
            SubjectFinding::of(host, judged(answer, &sources))
        }
    })
    .await
}

/// Errors: the finding and its remedy.
fn judged(answer: Result<(), Error>, sources: &str) -> Result<String, SubjectProblem> {
    match answer {
        Ok(()) => Ok(format!("answers; it mirrors {sources}")),
        Err(Error::Unauthenticated { .. } | Error::Forbidden { .. }) => Err((
            Warning,
            format!("needs a login; it mirrors {sources}"),
            "check that the pull secret has a login for it".to_owned(),
        )),
        Err(error) => {
            let finding = format!("{}; it mirrors {sources}", error.chain());
            let remedy = if error.chain().contains("certificate") {
                "trust the authority of the mirror on this machine"
            } else {
                "start the mirror, and check that its name resolves"
            };
            Err((Failed, finding, remedy.to_owned()))
        }
    }
}
