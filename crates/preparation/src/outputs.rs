//! Outputs of a preparation: the installer's files, completed for hosts and users.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use ignition::{IgnitionConfig, SpecVersion};
use rules::HostState;
use rules::Snapshot;
use rules::snapshot::roles::is_single_node;
use uuid::Uuid;

use crate::failure::PreparationFailure;
use crate::{bootstrap, nodes};

/// Ignition config of the control plane.
const MASTER: &str = "master.ign";

/// Outputs of a preparation.
pub(crate) struct Outputs {
    /// The cluster id that the installer generated.
    pub(crate) cluster_id: Uuid,
    /// Contents by object name.
    pub(crate) files: BTreeMap<String, Vec<u8>>,
}

/// Reads the installer's outputs in `folder` and completes them for the hosts of `snapshot`.
pub(crate) fn complete(
    folder: &Path,
    snapshot: &Snapshot,
    install_config: &str,
    service_ca: Option<&str>,
) -> Result<Outputs, PreparationFailure> {
    let is_single = is_single_node(&snapshot.cluster);
    let name = if is_single {
        "bootstrap-in-place-for-live-iso.ign"
    } else {
        "bootstrap.ign"
    };
    let mut config = read_config(folder, name)?;
    let cluster_id = bootstrap::cluster_id(&config)?;
    bootstrap::complete(&mut config, snapshot)?;
    let version = config.ignition.version;
    let mut files = BTreeMap::from([("bootstrap.ign".to_owned(), config.to_json())]);
    add_nodes(
        folder,
        snapshot,
        service_ca,
        is_single.then_some(version),
        &mut files,
    )?;
    for (stored, made) in [
        ("kubeconfig-noingress", "auth/kubeconfig"),
        ("kubeadmin-password", "auth/kubeadmin-password"),
        ("metadata.json", "metadata.json"),
    ] {
        files.insert(stored.to_owned(), read(folder, made)?);
    }
    // The installer deletes its own copy.
    files.insert("install-config.yaml".to_owned(), install_config.into());
    Ok(Outputs { cluster_id, files })
}

/// Adds the ignition configs of roles and hosts. A node installed in place has an empty one, of version `empty`.
fn add_nodes(
    folder: &Path,
    snapshot: &Snapshot,
    service_ca: Option<&str>,
    empty: Option<SpecVersion>,
    files: &mut BTreeMap<String, Vec<u8>>,
) -> Result<(), PreparationFailure> {
    let mut bases: BTreeMap<String, Vec<&HostState>> = BTreeMap::new();
    for always in [MASTER, "worker.ign"] {
        bases.insert(always.to_owned(), Vec::new());
    }
    for host in &snapshot.hosts {
        let base = bases.entry(nodes::base_name(&host.record)).or_default();
        base.push(host);
    }
    for (name, hosts) in bases {
        let mut config = match empty {
            Some(version) => IgnitionConfig::new(version),
            None => read_config(folder, &name)?,
        };
        nodes::complete(&mut config, snapshot, service_ca);
        if name == MASTER {
            nodes::add_vip_leases(&mut config, snapshot);
        }
        for host in hosts {
            let own = nodes::of_host(&config, host, snapshot)?;
            files.insert(nodes::file_name(&host.record), own.to_json());
        }
        files.insert(name, config.to_json());
    }
    Ok(())
}

fn read_config(folder: &Path, name: &str) -> Result<IgnitionConfig, PreparationFailure> {
    IgnitionConfig::parse(&read(folder, name)?).map_err(|error| {
        PreparationFailure::new(format!("the installer's {name} cannot be read: {error}"))
    })
}

fn read(folder: &Path, name: &str) -> Result<Vec<u8>, PreparationFailure> {
    let path: PathBuf = folder.join(name);
    fs::read(path).map_err(|error| {
        PreparationFailure::new(format!("the installer's {name} cannot be read: {error}"))
    })
}
