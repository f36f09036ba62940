//! The steps of a preparation, in order.

use std::path::Path;

use cluster_files::{GENERATED_MANIFESTS, KEPT_BY_RESET};
use ipnet::IpNet;
use model::cluster::Cluster;
use rules::Snapshot;
use rules::manifests::SystemManifest;
use rules::snapshot::roles::{is_single_node, workers};
use tokio::time::Instant;

use crate::context::{InstallContext, PreparationInput, PreparationOutcome};
use crate::failure::{PreparationFailure, blocking};
use crate::installer::InstallerRun;
use crate::installer_cache::CachedInstaller;
use crate::outputs::{self, Outputs};
use crate::redaction::Masks;
use crate::release::ReleaseInfo;
use crate::site_catalogs::with_catalogs;
use crate::work_folder::WorkFolder;
use crate::{dummy, extract, install_config, manifests, release_image};

/// Prepares the installation of a cluster: on success, all files that its hosts boot into are in the store. Idempotent.
///
/// Errors: the reason, for the user; nothing was stored.
pub async fn prepare(
    ctx: &InstallContext,
    input: PreparationInput,
) -> Result<PreparationOutcome, PreparationFailure> {
    let deadline = Instant::now() + ctx.options().time_limit;
    let masks = Masks::of_pull_secret(&input.pull_secret);
    let (outputs, release) =
        match tokio::time::timeout_at(deadline, make(ctx, &input, deadline)).await {
            Ok(result) => {
                result.map_err(|failure| PreparationFailure::new(masks.apply(&failure.reason)))?
            }
            Err(_) => {
                return Err(PreparationFailure::new(format!(
                    "preparing the installation took longer than {} s",
                    ctx.options().time_limit.as_secs()
                )));
            }
        };
    store(ctx, &input.snapshot.cluster, &outputs).await?;
    Ok(PreparationOutcome {
        openshift_cluster_id: outputs.cluster_id,
        release,
    })
}

async fn make(
    ctx: &InstallContext,
    input: &PreparationInput,
    deadline: Instant,
) -> Result<(Outputs, ReleaseInfo), PreparationFailure> {
    let install_config = install_config::build(ctx, input)?;
    let options = ctx.options();
    let catalogs = options
        .catalogs
        .of(&input.snapshot.cluster.openshift_version);
    let policy = with_catalogs(&options.policy, &catalogs);
    let generated = rules::manifests::system(&input.snapshot, &input.infra_envs, &policy)?;
    if ctx.options().dummy_ignition {
        let mut outputs = dummy::outputs(&input.snapshot, &install_config)?;
        add_manifests(&mut outputs, &input.snapshot, generated)?;
        let release = ReleaseInfo::dummy(&input.snapshot.cluster.ocp_release_image);
        return Ok((outputs, release));
    }
    let cluster = &input.snapshot.cluster;
    let release = release_image::read(ctx, &cluster.ocp_release_image, &input.pull_secret).await?;
    // Checked before the installer is extracted and run.
    if !input.is_listed {
        check_version(&release, &cluster.openshift_version)?;
    }
    let program = extract::installer(ctx, &release, &install_config, &input.pull_secret).await?;
    let _permit = ctx.installer_permit().await;
    let files = InstallerFiles {
        install_config,
        generated: &generated,
    };
    let mut outputs = run(ctx, input, program, files, &release, deadline).await?;
    add_manifests(&mut outputs, &input.snapshot, generated)?;
    Ok((outputs, release))
}

/// Adds the manifests of the service, which the API lists as system manifests, and those that the controller in the new
/// cluster downloads.
fn add_manifests(
    outputs: &mut Outputs,
    snapshot: &Snapshot,
    generated: Vec<SystemManifest>,
) -> Result<(), PreparationFailure> {
    for SystemManifest { file_name, content } in generated {
        let name = format!("{GENERATED_MANIFESTS}/openshift/{file_name}");
        outputs.files.insert(name, content.into_bytes());
    }
    if let Some(content) = rules::manifests::custom_manifests(snapshot)? {
        let name = "custom_manifests.json".to_owned();
        outputs.files.insert(name, content.into_bytes());
    }
    Ok(())
}

/// Input files of the installer.
struct InstallerFiles<'a> {
    install_config: String,
    generated: &'a [SystemManifest],
}

/// Checks that the release has the cluster's version, for which validations and manifests were computed.
fn check_version(release: &ReleaseInfo, expected: &str) -> Result<(), PreparationFailure> {
    let (found, image) = (&release.version, &release.release_image);
    if found.trim_end_matches("-multi") == expected.trim_end_matches("-multi") {
        return Ok(());
    }
    Err(PreparationFailure::new(format!(
        "release image {image} has version {found}, the cluster has {expected}: create the cluster with \
         openshift_version {found}, or with a release image of {expected}"
    )))
}

async fn run(
    ctx: &InstallContext,
    input: &PreparationInput,
    program: CachedInstaller,
    files: InstallerFiles<'_>,
    release: &ReleaseInfo,
    deadline: Instant,
) -> Result<Outputs, PreparationFailure> {
    let InstallerFiles {
        install_config,
        generated,
    } = files;
    let cluster = &input.snapshot.cluster;
    let parent = ctx.work_folders();
    let id = cluster.id;
    let now = service::clock::now().into();
    let folder = blocking(move || {
        WorkFolder::make(&parent, id, now).map_err(|error| {
            PreparationFailure::new(format!("the installer's folder cannot be created: {error}"))
        })
    })
    .await?;
    write_private(folder.path(), "install-config.yaml", &install_config).await?;
    let installer = InstallerRun {
        confinement: ctx.options().confinement.clone(),
        launch: program.launch().clone(),
        folder: folder.path().to_owned(),
        environment: environment(ctx, &input.snapshot, release),
        masks: Masks::of_pull_secret(&input.pull_secret),
        deadline,
    };
    installer.create("manifests").await?;
    let store = &ctx.options().store;
    manifests::write_all(store, cluster.id, generated, folder.path()).await?;
    if workers(&input.snapshot) == 1 {
        manifests::set_highly_available_ingress(folder.path())?;
    }
    let target = if is_single_node(cluster) {
        "single-node-ignition-config"
    } else {
        "ignition-configs"
    };
    installer.create(target).await?;
    let snapshot = input.snapshot.clone();
    let service_ca = ctx.options().service_ca.clone();
    blocking(move || {
        outputs::complete(
            folder.path(),
            &snapshot,
            &install_config,
            service_ca.as_deref(),
        )
    })
    .await
}

/// Replaces the outputs of the previous preparation; custom manifests and logs stay.
async fn store(
    ctx: &InstallContext,
    cluster: &Cluster,
    outputs: &Outputs,
) -> Result<(), PreparationFailure> {
    let store = &ctx.options().store;
    // Put before deletion: a crash in between leaves extra files, which the next preparation deletes.
    for (name, content) in &outputs.files {
        store.put(cluster.id, name, content.clone()).await?;
    }
    let keep: Vec<&str> = KEPT_BY_RESET
        .iter()
        .copied()
        .chain(outputs.files.keys().map(String::as_str))
        .collect();
    store.delete_cluster_except(cluster.id, &keep).await?;
    Ok(())
}

/// Documented environment variables of the installer. Source: openshift/assisted-service,
/// `internal/ignition/installmanifests.go`.
fn environment(
    ctx: &InstallContext,
    snapshot: &Snapshot,
    release: &ReleaseInfo,
) -> Vec<(&'static str, String)> {
    let mut environment = vec![
        (
            "OPENSHIFT_INSTALL_RELEASE_IMAGE_OVERRIDE",
            release.release_image.clone(),
        ),
        ("OPENSHIFT_INSTALL_INVOKER", ctx.options().invoker.clone()),
    ];
    if let Some(address) = bootstrap_address(snapshot) {
        environment.push(("OPENSHIFT_INSTALL_BOOTSTRAP_NODE_IP", address));
    }
    environment
}

/// The bootstrap's address in the first machine network.
fn bootstrap_address(snapshot: &Snapshot) -> Option<String> {
    let network: IpNet = snapshot
        .cluster
        .machine_networks
        .first()?
        .cidr
        .parse()
        .ok()?;
    let bootstrap = snapshot.hosts.iter().find(|host| host.record.bootstrap)?;
    let interfaces = &bootstrap.inventory.as_ref()?.interfaces;
    interfaces
        .iter()
        .flat_map(|interface| {
            interface
                .ipv4_addresses
                .iter()
                .chain(&interface.ipv6_addresses)
        })
        .filter_map(|address| address.parse::<IpNet>().ok())
        .map(|address| address.addr())
        .find(|address| network.contains(address))
        .map(|address| address.to_string())
}

async fn write_private(folder: &Path, name: &str, text: &str) -> Result<(), PreparationFailure> {
    let path = folder.join(name);
    let text = text.to_owned();
    let shown = name.to_owned();
    blocking(move || {
        cluster_files::put_file(&path, text.as_bytes())
            .map_err(|error| PreparationFailure::new(format!("{shown} cannot be written: {error}")))
    })
    .await
}
