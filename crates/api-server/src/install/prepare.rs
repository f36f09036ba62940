//! The steps of a preparation, in order.

use std::path::Path;

use ipnet::IpNet;
use model::cluster::Cluster;
use rules::Snapshot;
use rules::manifests::Manifest;
use rules::roles::{is_single_node, workers};
use tokio::time::Instant;

use super::context::{Context, Failure, Input, Outcome};
use super::installer::Installer;
use super::installer_cache::Kept;
use super::outputs::{self, Outputs};
use super::redaction::Masks;
use super::release::ReleaseInfo;
use super::work_folder::WorkFolder;
use super::{dummy, extract, install_config, manifests, release};
use crate::files::{GENERATED_MANIFESTS, KEPT_BY_RESET};

/// Prepares the installation of a cluster: when this succeeds, everything its hosts boot into is in the store.
///
/// Errors: the reason, in words for the user. Nothing was stored then, and the same call may be made again.
pub async fn prepare(ctx: &Context, input: Input) -> Result<Outcome, Failure> {
    let deadline = Instant::now() + ctx.options().time_limit;
    let masks = Masks::of_pull_secret(&input.pull_secret);
    let (outputs, release) =
        match tokio::time::timeout_at(deadline, make(ctx, &input, deadline)).await {
            Ok(made) => made.map_err(|failure| Failure::new(masks.apply(&failure.reason)))?,
            Err(_) => {
                return Err(Failure::new(format!(
                    "preparing the installation took longer than {} s",
                    ctx.options().time_limit.as_secs()
                )));
            }
        };
    store(ctx, &input.snapshot.cluster, &outputs).await?;
    Ok(Outcome {
        openshift_cluster_id: outputs.cluster_id,
        release,
    })
}

async fn make(
    ctx: &Context,
    input: &Input,
    deadline: Instant,
) -> Result<(Outputs, ReleaseInfo), Failure> {
    let install_config = install_config::build(ctx, input)?;
    if ctx.options().dummy_ignition {
        let outputs = dummy::outputs(&input.snapshot, &install_config)?;
        return Ok((outputs, ReleaseInfo::made_up(&input.snapshot.cluster)));
    }
    let cluster = &input.snapshot.cluster;
    let release = release::read(ctx, &cluster.ocp_release_image, &input.pull_secret).await?;
    // Before anything of it is extracted, and so can run.
    if !input.is_listed {
        check_version(&release, &cluster.openshift_version)?;
    }
    let program = extract::installer(ctx, &release, &install_config, &input.pull_secret).await?;
    let _turn = ctx.turn().await;
    let outputs = run(ctx, input, program, install_config, &release, deadline).await?;
    Ok((outputs, release))
}

/// What validations and manifests were made for has to be what is installed.
fn check_version(release: &ReleaseInfo, wanted: &str) -> Result<(), Failure> {
    let (found, image) = (&release.version, &release.release_image);
    if found.trim_end_matches("-multi") == wanted {
        return Ok(());
    }
    Err(Failure::new(format!(
        "release image {image} is of version {found}, and the cluster of {wanted}: create the cluster with \
         openshift_version {found}, or with a release image of {wanted}"
    )))
}

async fn run(
    ctx: &Context,
    input: &Input,
    program: Kept,
    install_config: String,
    release: &ReleaseInfo,
    deadline: Instant,
) -> Result<Outputs, Failure> {
    let cluster = &input.snapshot.cluster;
    let parent = ctx.work_folders();
    let id = cluster.id;
    let now = service::clock::now().into();
    let folder = super::blocking(move || {
        WorkFolder::make(&parent, id, now).map_err(|error| {
            Failure::new(format!("the installer's folder cannot be made: {error}"))
        })
    })
    .await?;
    write_private(folder.path(), "install-config.yaml", &install_config).await?;
    let installer = Installer {
        confinement: ctx.options().confinement.clone(),
        launch: program.launch().clone(),
        folder: folder.path().to_owned(),
        environment: environment(ctx, &input.snapshot, release),
        masks: Masks::of_pull_secret(&input.pull_secret),
        deadline,
    };
    installer.create("manifests").await?;
    let policy = &ctx.options().policy;
    let generated = rules::manifests::system(&input.snapshot, &input.infra_envs, policy)?;
    let store = &ctx.options().store;
    manifests::lay_over(store, cluster.id, &generated, folder.path()).await?;
    if workers(&input.snapshot) == 1 {
        manifests::spread_routers(folder.path())?;
    }
    let target = if is_single_node(cluster) {
        "single-node-ignition-config"
    } else {
        "ignition-configs"
    };
    installer.create(target).await?;
    let snapshot = input.snapshot.clone();
    let service_ca = ctx.options().service_ca.clone();
    let mut outputs = super::blocking(move || {
        outputs::complete(
            folder.path(),
            &snapshot,
            &install_config,
            service_ca.as_deref(),
        )
    })
    .await?;
    for Manifest { file_name, content } in generated {
        let name = format!("{GENERATED_MANIFESTS}/openshift/{file_name}");
        outputs.files.insert(name, content.into_bytes());
    }
    Ok(outputs)
}

/// Replaces what an earlier preparation stored; what the user brought and logs stay.
async fn store(ctx: &Context, cluster: &Cluster, outputs: &Outputs) -> Result<(), Failure> {
    let store = &ctx.options().store;
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

/// Variables that the installer documents.
fn environment(
    ctx: &Context,
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

async fn write_private(folder: &Path, name: &str, text: &str) -> Result<(), Failure> {
    let path = folder.join(name);
    let text = text.to_owned();
    let shown = name.to_owned();
    super::blocking(move || {
        crate::files::put_file(&path, text.as_bytes())
            .map_err(|error| Failure::new(format!("{shown} cannot be written: {error}")))
    })
    .await
}
