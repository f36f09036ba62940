//! Containers keep their data in volumes, and without them no partial data is written.

use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use oci::Reference;
use reqwest::{Method, StatusCode};
use serde_json::json;
use system_tests::pod::{Engine, POSTGRES_IMAGE, Pod, SERVICES, Volumes};
use system_tests::{ApiSnapshot, DownloadedImage, ImageDownload, image_url, until};
use testcontainers::bollard::models::ContainerConfig;
use testcontainers::bollard::query_parameters::{
    CommitContainerOptionsBuilder, RemoveImageOptionsBuilder,
};

use crate::{Trials, say};

/// Deadline of events that need no action.
const LIMIT: Duration = Duration::from_mins(1);
/// Services that cannot run without a writable volume.
const KEEPERS: [&str; 3] = ["db", "registry", "api-server"];

pub(crate) fn add(trials: &mut Trials) {
    trials.add(
        "volumes::without_a_place_to_write_nothing_is_started",
        nowhere,
    );
    trials.add(
        "volumes::an_unwritable_image_folder_is_reported",
        unwritable_image,
    );
    trials.add("volumes::everything_survives_new_containers", survives);
}

async fn nowhere(engine: Engine) -> Result<()> {
    let everywhere = async |pod: &mut Pod| {
        for volumes in [Volumes::Missing, Volumes::ReadOnly] {
            for service in KEEPERS {
                is_refused(pod, service, volumes).await?;
            }
        }
        Ok(())
    };
    Pod::new(&engine).await?.used(everywhere).await
}

async fn is_refused(pod: &Pod, service: &str, volumes: Volumes) -> Result<()> {
    let (code, log) = pod.fails(service, volumes).await?;
    let last = log.lines().last().unwrap_or_default();
    say(&format!(
        "{service}, volume {volumes:?}: code {code}: {last}"
    ));
    ensure!(code != 0, "{service} calls that a success: {log}");
    let compose = pod.folder().compose()?;
    let volume = compose.service(service)?.volumes()?.into_iter().next();
    let target = volume.context("it has no volume")?.target;
    ensure!(
        log.contains(&target),
        "{service} does not name {target}: {log}"
    );
    Ok(())
}

async fn unwritable_image(engine: Engine) -> Result<()> {
    Pod::new(&engine).await?.used(reports_unwritable).await
}

/// The image service keeps running, and reports the images that it cannot write.
async fn reports_unwritable(pod: &mut Pod) -> Result<()> {
    // Only downloads are written: images of files are used in place.
    let os_images = json!([{
        "openshift_version": "4.18", "version": "418.94", "cpu_architecture": "x86_64",
        "url": "http://127.0.0.1:9/live.iso",
    }]);
    let os_images = [("OS_IMAGES", os_images.to_string())];
    pod.folder().set(os_images)?;
    let container = pod
        .start_with("image-service", 1, Volumes::ReadOnly)
        .await?;
    container
        .answers("/ready", StatusCode::SERVICE_UNAVAILABLE, "not there yet")
        .await?;
    until("the log has the cause", LIMIT, async || {
        let log = container.logs().await?;
        let line = log
            .lines()
            .find(|line| line.contains("/data") && line.contains("Read-only"));
        Ok(line.map(say))
    })
    .await
}

async fn survives(engine: Engine) -> Result<()> {
    let pod = Pod::up(&engine).await?;
    pod.used(async |pod| replaced(&engine, pod).await).await
}

async fn replaced(engine: &Engine, pod: &mut Pod) -> Result<()> {
    let api = pod.api()?;
    let secret = pod.registry().pull_secret()?;
    let version = pod.content()?.version().to_owned();
    let cluster = json!({
        "name": "kept", "base_dns_domain": "example.org", "openshift_version": version,
        "control_plane_count": 3, "pull_secret": secret,
    });
    let cluster = api.succeed(Method::POST, "/v2/clusters", &cluster).await?;
    let infra_env = json!({
        "name": "kept", "pull_secret": secret, "cpu_architecture": "x86_64", "cluster_id": cluster["id"],
    });
    api.succeed(Method::POST, "/v2/infra-envs", &infra_env)
        .await?;
    let before = ApiSnapshot::take(&api).await?;
    let image = image(pod).await?;
    let release = pod.content()?.releases.first().context("no release")?;
    let release: Reference = release.image.parse()?;

    for service in SERVICES {
        pod.remove(service).await?;
    }
    pod.start_all(&[]).await?;
    before.holds(&api).await.context("new containers")?;
    ensure!(
        self::image(pod).await? == image,
        "new containers: another image"
    );
    // By its digest: pulled content equals pushed content.
    pod.registry().client()?.pull_manifest(&release).await?;

    let other = OtherImage::of(engine, pod.container("db")?.name()).await?;
    let held = holds_with(&other, pod, &before).await;
    // Images do not belong to the pod: it would remain.
    held.and(other.remove(engine).await)
}

async fn holds_with(database: &OtherImage, pod: &mut Pod, before: &ApiSnapshot) -> Result<()> {
    pod.remove("db").await?;
    pod.folder()
        .set([(POSTGRES_IMAGE, database.reference.clone())])?;
    pod.start_all(&[]).await?;
    let held = before.holds(&pod.api()?).await;
    held.context("another database image")?;
    pod.remove("db").await
}

async fn image(pod: &Pod) -> Result<DownloadedImage> {
    let url = image_url(&pod.api()?).await?;
    ImageDownload::begin(&url).await?.whole().await
}

/// An image with another digest that serves the same data.
struct OtherImage {
    reference: String,
}

impl OtherImage {
    /// Commits a running container.
    async fn of(engine: &Engine, container: &str) -> Result<Self> {
        let name = format!("localhost/{container}");
        let options = CommitContainerOptionsBuilder::new()
            .container(container)
            .repo(&name)
            .tag("other")
            .pause(false);
        engine
            .docker()
            .commit_container(options.build(), ContainerConfig::default())
            .await
            .context("making another image of the database")?;
        Ok(Self {
            reference: format!("{name}:other"),
        })
    }

    async fn remove(&self, engine: &Engine) -> Result<()> {
        let options = RemoveImageOptionsBuilder::new().force(true).build();
        let docker = engine.docker();
        let removed = docker.remove_image(&self.reference, Some(options), None);
        removed
            .await
            .map(drop)
            .with_context(|| format!("removing {}", self.reference))
    }
}
