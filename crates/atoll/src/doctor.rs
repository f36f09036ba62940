//! `atoll doctor`: checks of a site, from the outside of its services.

mod clusters;
mod confinement;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use credentials::host_name;
use doctor::{CheckGroup, CheckResult, CheckStatus, ClusterNames, DoctorReport, SiteFacts};
use service::{Error, ResultExt as _};
use site::facts;
use site::pod::SETTINGS;
use url::Url;

use crate::catalog::table::table;
use crate::failure;
use crate::output_format::FormatArgs;
use crate::site_texts::report;
use crate::terminal::{notice, print};
use crate::web_address::web_address;

/// Arguments of `atoll doctor`.
#[derive(Debug, Args)]
pub(crate) struct DoctorArgs {
    /// Folder of a pod, or data directory of `atoll up`, whose site is checked. Default: only this machine's sandbox
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
    /// URL of the installer API, for its readiness and the names of its clusters. Default: the one of --dir
    #[arg(long, value_name = "URL", value_parser = web_address)]
    api: Option<Url>,
    /// Also check the names of this cluster, with its base domain; repeatable
    #[arg(long = "cluster", value_name = "NAME.DOMAIN", value_parser = host_name::domain)]
    clusters: Vec<String>,
    /// Check these mirrors, and look for releases and images at them, too: registries.conf, or ImageDigestMirrorSet,
    /// ImageTagMirrorSet or ImageContentSourcePolicy as YAML or JSON, also in a List; repeatable
    #[arg(long, value_name = "FILE")]
    mirrors: Vec<PathBuf>,
    #[command(flatten)]
    format: FormatArgs,
    /// Writable folder for probing the sandbox. Default: the temporary folder
    #[arg(long = "probe-dir", alias = "folder", value_name = "DIR")]
    folder: Option<PathBuf>,
}

/// Runs the checks and prints their results; the value is the exit code, 1 if one failed.
pub(crate) fn run(arguments: &DoctorArgs) -> ExitCode {
    // Before the runtime has threads.
    let folder = arguments.folder.clone();
    let sandbox = confinement::checks(&folder.unwrap_or_else(std::env::temp_dir));
    let report = match checked(arguments) {
        Ok(mut report) => {
            report.checks.extend(sandbox);
            report
        }
        Err(error) => {
            notice(&failure::text(&error));
            return ExitCode::FAILURE;
        }
    };
    if arguments.format.is_json() {
        match serde_json::to_string(&report) {
            Ok(text) => print(&text),
            Err(error) => {
                notice(&error.to_string());
                return ExitCode::FAILURE;
            }
        }
    } else {
        print(&text(&report));
    }
    if report.has_failures() {
        ExitCode::FAILURE
    } else {
        ExitCode::SUCCESS
    }
}

fn checked(arguments: &DoctorArgs) -> Result<DoctorReport, Error> {
    let mut site = match &arguments.dir {
        None => SiteFacts::default(),
        Some(dir) if dir.join(SETTINGS).exists() => facts::of_pod(dir, &report)?,
        Some(dir) => facts::of_up(dir)?,
    };
    if let Some(url) = &arguments.api {
        site.api = Some(url.clone());
    }
    if !arguments.mirrors.is_empty() {
        site.mirrors = facts::mirrors(&arguments.mirrors, &report)?;
    }
    let named = arguments.clusters.iter().map(|domain| ClusterNames {
        domain: domain.clone(),
        ..ClusterNames::default()
    });
    site.clusters.extend(named);
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()
        .doing("starting the runtime")?;
    Ok(runtime.block_on(async {
        let mut unknown = None;
        if let Some(url) = site.api.clone() {
            match clusters::of(&url, site.ca_pem.as_deref()).await {
                Ok(known) => site.clusters.extend(known),
                Err(finding) => unknown = Some(finding),
            }
        }
        let mut report = doctor::run(site).await;
        report.checks.extend(unknown.map(|finding| CheckResult {
            id: "clusters".to_owned(),
            group: CheckGroup::Dns,
            status: CheckStatus::Warning,
            finding,
            remedy: "name clusters with --cluster".to_owned(),
        }));
        report
    }))
}

fn text(report: &DoctorReport) -> String {
    let rows: Vec<[String; 3]> = report
        .checks
        .iter()
        .map(|one| {
            [
                one.status.name().to_owned(),
                one.id.clone(),
                one.finding.clone(),
            ]
        })
        .collect();
    let mut text = table(["STATUS", "CHECK", "FINDING"], &rows);
    let remedies = report
        .checks
        .iter()
        .filter(|one| one.status > CheckStatus::Passed)
        .map(|one| format!("\n  {}: {}", one.id, one.remedy));
    let remedies: String = remedies.collect();
    if !remedies.is_empty() {
        text.push_str("\n\nRemedies:");
        text.push_str(&remedies);
    }
    let counts = format!(
        "\n\n{} passed, {} warnings, {} failed",
        report.count(CheckStatus::Passed),
        report.count(CheckStatus::Warning),
        report.count(CheckStatus::Failed),
    );
    text.push_str(&counts);
    text
}
