//! Verification of a registry against an image set.

use ::mirror::history::MetadataStore;
use ::mirror::progress::RunProgress;
use ::mirror::publish::{MirrorTarget, TransferLimits};
use ::mirror::run::RunContext;
use ::mirror::target_name::TargetName;
use ::mirror::verify_target::{self, Expected, TargetReport};
use ::mirror::workspace::Workspace;
use model::size::mib;
use serde_json::{Value, json};
use service::Error;

use super::arguments::MirrorVerifyArgs;
use crate::mirror::run::{ProgressFormat, configuration, with_progress};
use crate::terminal;

/// Looks up all images and prints missing or damaged ones.
///
/// Errors: faults, or neither configuration nor metadata.
pub(super) fn run(arguments: &MirrorVerifyArgs, target: &TargetName) -> Result<(), Error> {
    with_progress("verifying", ProgressFormat::Lines, |progress| async move {
        let target = arguments.registries.target(target)?;
        let expected = arguments.expected(&target, &progress).await?;
        let report = verify_target::check(
            &target,
            &expected,
            arguments.deep,
            TransferLimits::default().parallel,
            &progress,
        )
        .await;
        print_report(&report, arguments.format.is_json());
        match report.faults.len() {
            0 => Ok(()),
            count => {
                let reason = format!("{count} faults were found");
                Err(model::Error::invalid(arguments.target.clone(), reason))
            }
        }
    })
}

impl MirrorVerifyArgs {
    async fn expected(
        &self,
        target: &MirrorTarget,
        progress: &RunProgress,
    ) -> Result<Vec<Expected>, model::Error> {
        if let Some(config) = &self.config {
            return self.configured(config, target, progress).await;
        }
        let mut expected = Vec::new();
        for metadata in MetadataStore::all_in_target(target).await? {
            expected.extend(verify_target::remembered(&metadata, target).await?);
        }
        if expected.is_empty() {
            let reason = "no metadata of an image set: specify one with --config";
            return Err(model::Error::invalid(self.target.clone(), reason));
        }
        Ok(expected)
    }

    async fn configured(
        &self,
        config: &std::path::Path,
        target: &MirrorTarget,
        progress: &RunProgress,
    ) -> Result<Vec<Expected>, model::Error> {
        let set = configuration(config)?;
        let _workspace = Workspace::enter(&self.dir)?;
        let client = self.registries.source()?;
        let ca_pem = self.registries.ca_pem()?;
        let platform = self.releases.sources(ca_pem.as_deref())?;
        let context = RunContext::new(&self.dir, service::clock::now().timestamp(), progress);
        verify_target::configured(&client, &platform, context, &set.mirror, target).await
    }
}

fn print_report(report: &TargetReport, as_json: bool) {
    if as_json {
        terminal::print(&document(report).to_string());
        return;
    }
    for (image, error) in &report.faults {
        terminal::print(&format!("{image}: {}", error.chain()));
    }
    for image in &report.absent {
        terminal::print(&format!(
            "{image} is missing; a chart references it, and its source may lack it as well"
        ));
    }
    if report.faults.is_empty() {
        let TargetReport {
            images,
            manifests,
            blobs,
            hashed_bytes,
            absent,
            ..
        } = report;
        let images = images - absent.len();
        let how = match hashed_bytes {
            0 => "match their sizes".to_owned(),
            bytes => format!("found, {} match their digests", mib(*bytes)),
        };
        terminal::print(&format!(
            "verified: {images} images, {manifests} manifests match their digests, {blobs} blobs {how}"
        ));
    }
}

fn document(report: &TargetReport) -> Value {
    let faults = report.faults.iter();
    let faults: Vec<_> = faults
        .map(|(image, error)| json!({ "image": image.to_string(), "fault": error.chain() }))
        .collect();
    json!({
        "images": report.images,
        "manifests": report.manifests,
        "blobs": report.blobs,
        "hashedBytes": report.hashed_bytes,
        "absent": report.absent.iter().map(ToString::to_string).collect::<Vec<_>>(),
        "faults": faults,
    })
}
