//! Step `container-image-availability`: whether the registry has the images of the installation, and how fast it is.
//!
//! The peer pulls each image by podman. This asks the registry for all parts, and downloads a sample: nothing is stored
//! in the memory of a live system.

use std::time::{Duration, Instant};

use futures_util::StreamExt as _;
use model::steps::{
    ContainerImageAvailability, ContainerImageAvailabilityRequest,
    ContainerImageAvailabilityResponse, ContainerImageAvailabilityResult,
};
use oci::{Kind, Manifest, Platform, Reference};
use oci_client::{Client, ClientOptions, Credentials, Mirrors};

use super::context::{StepContext, StepOutcome, only};

/// Configuration of podman, which the installation uses.
const AUTH_FILE: &str = "/root/.docker/config.json";
const REGISTRIES: &str = "/etc/containers/registries.conf";
/// Longest time for all images; the peer's service gives them 16 minutes.
const MAX_TIMEOUT: Duration = Duration::from_hours(1);
/// The part of a layer that is downloaded. Units: bytes.
const SAMPLE: usize = 16 << 20;
/// Exit code when an image is missing, with the whole output. Source: assisted-installer-agent.
const MISSING: i64 = 2;

pub(super) async fn run(
    context: &StepContext,
    arguments: &[String],
) -> Result<StepOutcome, String> {
    let request: ContainerImageAvailabilityRequest = only(arguments)?;
    let client = client(context)?;
    let timeout = Duration::from_secs(u64::try_from(request.timeout).unwrap_or(0));
    let deadline = tokio::time::Instant::now() + timeout.min(MAX_TIMEOUT);
    let mut images = Vec::new();
    let mut problems = Vec::new();
    for name in request.images {
        let measured = match tokio::time::timeout_at(deadline, measure(&client, &name)).await {
            Ok(measured) => measured,
            Err(_) => Err("no time was left".to_owned()),
        };
        images.push(match measured {
            Ok(measured) => measured,
            Err(error) => {
                problems.push(format!("{name}: {error}"));
                ContainerImageAvailability {
                    name,
                    result: Some(ContainerImageAvailabilityResult::Failure),
                    ..ContainerImageAvailability::default()
                }
            }
        });
    }
    context.status.check("Registry", problems.first().cloned());
    let mut outcome = StepOutcome::json(&ContainerImageAvailabilityResponse { images })?;
    if !problems.is_empty() {
        (outcome.exit_code, outcome.error) = (MISSING, problems.join("; "));
    }
    Ok(outcome)
}

/// A client with the host's logins and mirrors.
fn client(context: &StepContext) -> Result<Client, String> {
    let text = |error: model::Error| model::error::chain(&error);
    let credentials = match context.files.text(AUTH_FILE) {
        Some(file) => Credentials::from_auth_file(&file).map_err(text)?,
        None => Credentials::anonymous(),
    };
    let mirrors = match context.files.text(REGISTRIES) {
        Some(file) => Mirrors::parse(&file).map_err(text)?,
        None => Mirrors::default(),
    };
    Client::new(ClientOptions {
        credentials,
        insecure_registries: mirrors.insecure().map(str::to_owned).collect(),
        mirrors,
        ..ClientOptions::default()
    })
    .map_err(text)
}

async fn measure(client: &Client, name: &str) -> Result<ContainerImageAvailability, String> {
    let text = |error: model::Error| model::error::chain(&error);
    let reference: Reference = name.parse().map_err(text)?;
    let platform = Platform::linux(oci_architecture());
    let manifest = oci_client::image::resolve(client, &reference, &platform)
        .await
        .map_err(text)?;
    let layers = layers(&manifest)?;
    for layer in layers {
        if !client
            .has_blob(&reference, &layer.digest)
            .await
            .map_err(text)?
        {
            return Err(format!("layer {} is missing", layer.digest));
        }
    }
    let size: u64 = layers.iter().map(|layer| layer.size).sum();
    let begin = Instant::now();
    let mut received = 0;
    if let Some(largest) = layers.iter().max_by_key(|layer| layer.size) {
        let mut stream = Box::pin(
            client
                .blob_stream(&reference, largest)
                .await
                .map_err(text)?,
        );
        while received < SAMPLE
            && let Some(chunk) = stream.next().await
        {
            received += chunk.map_err(text)?.len();
        }
    }
    Ok(report(name, size, received, begin.elapsed()))
}

/// Rates are megabytes a second, times seconds.
#[expect(
    clippy::cast_precision_loss,
    reason = "the API has floating-point numbers"
)]
fn report(name: &str, size: u64, sample: usize, took: Duration) -> ContainerImageAvailability {
    let rate = sample as f64 / took.as_secs_f64().max(1e-6);
    ContainerImageAvailability {
        name: name.to_owned(),
        size_bytes: size as f64,
        time: if rate > 0.0 { size as f64 / rate } else { 0.0 },
        download_rate: rate / 1e6,
        result: Some(ContainerImageAvailabilityResult::Success),
    }
}

fn layers(manifest: &Manifest) -> Result<&[oci::Descriptor], String> {
    match &manifest.kind {
        Kind::Image { layers, .. } => Ok(layers),
        _ => Err("the reference is no image".to_owned()),
    }
}

/// The name of this architecture in images.
fn oci_architecture() -> &'static str {
    match std::env::consts::ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        "powerpc64" => "ppc64le",
        other => other,
    }
}
