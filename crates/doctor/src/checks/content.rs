//! The releases and the operator catalogs that the registry holds.

use std::collections::BTreeSet;

use super::findings::SubjectFinding;
use crate::site::{ContentReport, SiteFacts};

/// Names of missing images that a finding has.
const NAMED: usize = 3;

/// The last reading, and one finding for each release and catalog that lacks images, and each image that is left out.
pub(super) fn releases(site: &SiteFacts) -> Vec<SubjectFinding> {
    let Some(report) = &site.content else {
        return Vec::new();
    };
    let registry = &report.registry;
    let mut found = vec![match (&report.failure, &report.read_at) {
        (Some(failure), read_at) => {
            let last = read_at.as_deref().unwrap_or("never");
            let finding = format!("{registry} cannot be read, last read {last}: {failure}");
            let remedy = "start the registry, or correct CONTENT_REGISTRY and its login";
            SubjectFinding::failed("", finding, remedy)
        }
        (None, Some(read_at)) => {
            let (releases, catalogs) = (&report.content.releases, &report.content.catalogs);
            let finding = format!(
                "{registry} holds {} releases and {} operator catalogs, last read {read_at}",
                releases.len(),
                catalogs.len()
            );
            SubjectFinding::passed("", finding)
        }
        (None, None) => {
            let finding = format!("{registry} was not read yet");
            SubjectFinding::warning("", finding, "run it again in a minute")
        }
    }];
    found.extend(unlisted(site, report));
    for release in &report.content.releases {
        if release.missing.is_empty() {
            continue;
        }
        let names = release.missing.iter().take(NAMED);
        let names: Vec<_> = names.map(|it| it.component.as_str()).collect();
        let more = match release.missing.len().saturating_sub(NAMED) {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        let finding = format!(
            "{} lacks {} of {} images: {}{more}",
            release.image,
            release.missing.len(),
            release.images,
            names.join(", ")
        );
        let remedy = "mirror the release again: until then it cannot be installed";
        found.push(SubjectFinding::failed(&release.version, finding, remedy));
    }
    for catalog in &report.content.catalogs {
        let Some(first) = catalog.missing.first() else {
            continue;
        };
        let finding = format!(
            "{}: its operators name {} repositories that are not in the registry, as that of {first}",
            catalog.image,
            catalog.missing.len()
        );
        let remedy =
            "mirror the catalog again: operators that need these images cannot be installed";
        found.push(SubjectFinding::warning(&catalog.image, finding, remedy));
    }
    for rejected in &report.content.rejected {
        let finding = format!("{} is left out: {}", rejected.image, rejected.reason);
        let remedy = "push the image again, or remove the tag";
        found.push(SubjectFinding::warning(&rejected.image, finding, remedy));
    }
    found
}

/// Complete releases that are not on offer, since `RELEASE_IMAGES` lists others.
fn unlisted(site: &SiteFacts, report: &ContentReport) -> Option<SubjectFinding> {
    let listed = site.releases.as_ref()?;
    let is_listed = |version: &String| {
        let mut listed = listed.iter();
        listed.any(|it| it.version.trim_end_matches("-multi") == version)
    };
    let releases = report.content.releases.iter();
    let complete = releases.filter(|release| release.missing.is_empty());
    let others: BTreeSet<_> = complete
        .map(|release| &release.version)
        .filter(|version| !is_listed(version))
        .collect();
    let named: Vec<_> = others.iter().take(NAMED).map(|it| it.as_str()).collect();
    if named.is_empty() {
        return None;
    }
    let finding = format!(
        "{} holds {} releases that RELEASE_IMAGES does not list, as {}",
        report.registry,
        others.len(),
        named.join(", ")
    );
    let remedy = "empty RELEASE_IMAGES to offer all of them, or add them to it";
    Some(SubjectFinding::warning("RELEASE_IMAGES", finding, remedy))
}

#[cfg(test)]
mod tests {
    use model::versions::ReleaseImage;
    use registry_content::{
        HeldCatalog, HeldRelease, MissingImage, RegistryContent, RejectedImage,
    };

    use super::*;
    use crate::CheckStatus;

    #[test]
    fn incomplete_releases_and_failures_are_found() {
        let missing = |component: &str| MissingImage {
            component: component.to_owned(),
            ..MissingImage::default()
        };
        let mut report = ContentReport {
            registry: "r:5000".to_owned(),
            read_at: Some("noon".to_owned()),
            failure: None,
            content: RegistryContent {
                releases: vec![
                    HeldRelease::default(),
                    HeldRelease {
                        image: "r:5000/release:4.18.7-x86_64".to_owned(),
                        version: "4.18.7".to_owned(),
                        images: 190,
                        missing: ["a", "b", "c", "d"].map(missing).into(),
                        ..HeldRelease::default()
                    },
                ],
                catalogs: vec![
                    HeldCatalog::default(),
                    HeldCatalog {
                        image: "r:5000/index:v4.18".to_owned(),
                        missing: vec!["q.example/a@sha256:1".to_owned()],
                        ..HeldCatalog::default()
                    },
                ],
                rejected: vec![RejectedImage {
                    image: "r:5000/other:4.18.7-x86_64".to_owned(),
                    reason: "no label".to_owned(),
                    ..RejectedImage::default()
                }],
                ..RegistryContent::default()
            },
        };
        let found = |report: &ContentReport| {
            releases(&SiteFacts {
                content: Some(report.clone()),
                ..SiteFacts::default()
            })
        };
        let all = found(&report);
        let status: Vec<_> = all.iter().map(|one| one.status).collect();
        let expected = [
            CheckStatus::Passed,
            CheckStatus::Failed,
            CheckStatus::Warning,
            CheckStatus::Warning,
        ];
        assert_eq!(status, expected);
        assert!(
            all[1]
                .finding
                .contains("4 of 190 images: a, b, c and 1 more")
        );
        report.failure = Some("no connection".to_owned());
        let all = found(&report);
        assert_eq!(all[0].status, CheckStatus::Failed);
        assert!(all[0].finding.contains("last read noon: no connection"));
        assert!(releases(&SiteFacts::default()).is_empty());
    }

    #[test]
    fn releases_beside_the_list_are_named() {
        let release = |version: &str, missing: &[MissingImage]| HeldRelease {
            version: version.to_owned(),
            missing: missing.to_vec(),
            ..HeldRelease::default()
        };
        let content = RegistryContent {
            releases: vec![
                release("4.18.7", &[]),
                release("4.18.8", &[MissingImage::default()]),
                release("4.19.1", &[]),
                release("4.19.1", &[]),
            ],
            ..RegistryContent::default()
        };
        let found = |listed: &[&str]| {
            let listed = listed.iter().map(|version| ReleaseImage {
                version: (*version).to_owned(),
                ..ReleaseImage::default()
            });
            let report = ContentReport {
                registry: "r:5000".to_owned(),
                content: content.clone(),
                ..ContentReport::default()
            };
            let site = SiteFacts {
                releases: Some(listed.collect()),
                ..SiteFacts::default()
            };
            unlisted(&site, &report).map(|it| it.finding)
        };
        assert_eq!(found(&["4.18.7", "4.19.1-multi"]), None);
        assert_eq!(
            found(&["4.18.7"]).unwrap(),
            "r:5000 holds 1 releases that RELEASE_IMAGES does not list, as 4.19.1"
        );
    }
}
