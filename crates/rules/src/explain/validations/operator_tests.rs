//! Verdicts on chosen operators, for hosts and clusters.

use model::host::HostRole;
use model::inventory::{Boot, Disk, Gpu, Inventory, SecureBootState};
use model::operators::{MonitoredOperator, OperatorType};
use serde_json::Value;

use crate::InstallationPolicy;
use crate::cluster::refresh;
use crate::fixtures::{self, now};
use crate::snapshot::Snapshot;
use crate::snapshot::host_state::HostState;

/// A cluster with chosen operators, on which all that is not about operators passes.
struct ChosenCluster(Snapshot);

impl ChosenCluster {
    fn new(masters: usize, workers: usize, names: &[&str]) -> Self {
        let mut snapshot = fixtures::snapshot(masters, workers);
        for name in names {
            snapshot
                .cluster
                .monitored_operators
                .push(MonitoredOperator {
                    name: (*name).to_owned(),
                    operator_type: Some(OperatorType::Olm),
                    ..MonitoredOperator::default()
                });
        }
        Self(snapshot)
    }

    fn version(mut self, version: &str) -> Self {
        version.clone_into(&mut self.0.cluster.openshift_version);
        self
    }

    /// Changes the machines of the hosts `at`.
    fn machines(mut self, at: &[usize], change: fn(&mut Inventory)) -> Self {
        for at in at {
            let host = &mut self.0.hosts[*at];
            let mut inventory = host.inventory.as_deref().cloned().unwrap();
            change(&mut inventory);
            let mut record = host.record.clone();
            record.inventory = serde_json::to_string(&inventory).unwrap().into();
            *host = HostState::new(record);
        }
        self
    }

    fn role(mut self, at: usize, role: HostRole) -> Self {
        self.0.hosts[at].record.role = Some(role);
        self
    }

    fn refreshed(mut self) -> Snapshot {
        refresh::cluster(&mut self.0, &InstallationPolicy::default(), now());
        self.0
    }

    /// Status of an operator on a host.
    #[track_caller]
    fn expect_host(self, at: usize, name: &str, expected: &str) {
        let snapshot = self.refreshed();
        let info = &snapshot.hosts[at].record.validations_info.text();
        let entry = entry(info, &format!("{name}-requirements-satisfied"));
        assert_eq!(entry["status"], expected, "{entry}");
    }

    /// Status of an operator on the cluster.
    #[track_caller]
    fn expect_cluster(self, name: &str, expected: &str) {
        let snapshot = self.refreshed();
        let info = &snapshot.cluster.validations_info;
        let entry = entry(info, &format!("{name}-requirements-satisfied"));
        assert_eq!(entry["status"], expected, "{entry}");
    }
}

#[track_caller]
fn entry(info: &str, id: &str) -> Value {
    let info: Value = serde_json::from_str(info).unwrap();
    let mut all = info
        .as_object()
        .unwrap()
        .values()
        .flat_map(|list| list.as_array().unwrap());
    all.find(|entry| entry["id"] == id).unwrap().clone()
}

fn spare_disk(inventory: &mut Inventory, size_bytes: i64) {
    let disk = Disk {
        id: "sdb".to_owned(),
        bootable: false,
        size_bytes,
        ..inventory.disks[0].clone()
    };
    inventory.disks.push(disk);
}

fn large_disk(inventory: &mut Inventory) {
    spare_disk(inventory, 100_000_000_000);
}

fn virtualizing(inventory: &mut Inventory) {
    inventory.cpu.as_mut().unwrap().flags = vec!["svm".to_owned()];
}

fn secure_boot(inventory: &mut Inventory) {
    inventory.boot = Some(Boot {
        secure_boot_state: Some(SecureBootState::Enabled.into()),
        ..Boot::default()
    });
}

fn nvidia(inventory: &mut Inventory) {
    inventory.gpus = vec![Gpu {
        vendor_id: "10DE".to_owned(),
        ..Gpu::default()
    }];
}

#[test]
fn simple_operators_need_their_version_alone() {
    ChosenCluster::new(3, 2, &["lso"]).expect_host(0, "lso", "success");
    ChosenCluster::new(3, 2, &["nmstate"])
        .version("4.11.3")
        .expect_cluster("nmstate", "failure");
    ChosenCluster::new(3, 2, &["nmstate"])
        .version("4.12.3")
        .expect_cluster("nmstate", "success");
    ChosenCluster::new(3, 2, &["loki"])
        .version("4.16.3")
        .expect_cluster("loki", "failure");
    ChosenCluster::new(3, 2, &[])
        .version("4.16.3")
        .expect_cluster("loki", "success");
}

#[test]
fn logical_volumes_need_a_spare_disk_where_workloads_run() {
    ChosenCluster::new(3, 2, &["lvm"]).expect_host(0, "lvm", "success");
    ChosenCluster::new(3, 2, &["lvm"]).expect_host(3, "lvm", "failure");
    ChosenCluster::new(3, 2, &["lvm"])
        .machines(&[3], large_disk)
        .expect_host(3, "lvm", "success");
    ChosenCluster::new(3, 0, &["lvm"]).expect_host(0, "lvm", "failure");
    let with_mce = || ChosenCluster::new(3, 2, &["lvm", "mce"]);
    let small = |one: &mut Inventory| spare_disk(one, 49_000_000_000);
    with_mce()
        .machines(&[3], small)
        .expect_host(3, "lvm", "failure");
    with_mce()
        .machines(&[3], large_disk)
        .expect_host(3, "lvm", "success");
    ChosenCluster::new(3, 2, &["lvm"])
        .version("4.14.3")
        .expect_cluster("lvm", "failure");
    ChosenCluster::new(3, 2, &["lvm"])
        .version("4.15.3")
        .expect_cluster("lvm", "success");
}

#[test]
fn odf_needs_disks_on_three_hosts_of_the_same_role() {
    ChosenCluster::new(3, 2, &["odf"]).expect_cluster("odf", "failure");
    let compact = || ChosenCluster::new(3, 0, &["odf"]);
    compact()
        .machines(&[0, 1], large_disk)
        .expect_cluster("odf", "failure");
    compact()
        .machines(&[0, 1, 2], large_disk)
        .expect_cluster("odf", "success");
    compact()
        .machines(&[0], large_disk)
        .expect_host(0, "odf", "success");
    compact()
        .machines(&[0], large_disk)
        .expect_host(1, "odf", "failure");
    let standard = || ChosenCluster::new(3, 3, &["odf"]);
    standard().expect_host(0, "odf", "success");
    standard().expect_host(3, "odf", "failure");
    standard()
        .machines(&[3, 4, 5], large_disk)
        .expect_cluster("odf", "success");
    standard()
        .role(5, HostRole::AutoAssign)
        .expect_host(5, "odf", "pending");
}

#[test]
fn virtual_machines_need_the_cpu_and_a_role() {
    ChosenCluster::new(3, 2, &["cnv"]).expect_host(0, "cnv", "failure");
    ChosenCluster::new(3, 2, &["cnv"])
        .machines(&[0], virtualizing)
        .expect_host(0, "cnv", "success");
    let single = || ChosenCluster::new(1, 0, &["cnv"]).machines(&[0], virtualizing);
    single().version("4.16.3").expect_host(0, "cnv", "success");
    single().version("4.11.3").expect_host(0, "cnv", "failure");
    single()
        .version("4.11.3")
        .machines(&[0], large_disk)
        .expect_host(0, "cnv", "success");
}

#[test]
fn drivers_need_secure_boot_off_and_a_gpu_in_the_cluster() {
    ChosenCluster::new(3, 2, &["kmm"])
        .machines(&[0], secure_boot)
        .expect_host(0, "kmm", "failure");
    let gpu = || ChosenCluster::new(3, 2, &["nvidia-gpu", "amd-gpu"]);
    gpu()
        .machines(&[3], nvidia)
        .expect_host(3, "nvidia-gpu", "success");
    gpu()
        .machines(&[3], secure_boot)
        .expect_host(3, "nvidia-gpu", "success");
    gpu()
        .machines(&[3], secure_boot)
        .machines(&[3], nvidia)
        .expect_host(3, "nvidia-gpu", "failure");
    gpu()
        .machines(&[3], nvidia)
        .expect_cluster("nvidia-gpu", "success");
    gpu()
        .machines(&[3], nvidia)
        .expect_cluster("amd-gpu", "failure");
    // Masters run no workloads here.
    gpu()
        .machines(&[0], nvidia)
        .expect_cluster("nvidia-gpu", "failure");
}

#[test]
fn models_need_two_large_workers() {
    ChosenCluster::new(3, 1, &["openshift-ai"]).expect_cluster("openshift-ai", "failure");
    ChosenCluster::new(3, 2, &["openshift-ai"]).expect_cluster("openshift-ai", "success");
    ChosenCluster::new(3, 2, &["openshift-ai"]).expect_host(3, "openshift-ai", "success");
    let small = |one: &mut Inventory| one.memory.as_mut().unwrap().usable_bytes = 31 << 30;
    ChosenCluster::new(3, 2, &["openshift-ai"])
        .machines(&[3], small)
        .expect_host(3, "openshift-ai", "failure");
}

#[test]
fn hosts_become_masters_where_the_operators_run() {
    let roles = |names: &[&str]| {
        let all = [0, 1, 2, 3, 4];
        let mut cluster = ChosenCluster::new(3, 2, names).machines(&all[..3], virtualizing);
        for at in all {
            cluster = cluster.role(at, HostRole::AutoAssign);
        }
        // The lightest hosts come first.
        let cluster = cluster.machines(&all[2..], |one| one.cpu.as_mut().unwrap().count = 7);
        let snapshot = cluster.refreshed();
        let hosts = snapshot.hosts.iter();
        hosts
            .map(|host| host.record.suggested_role == Some(HostRole::Master))
            .collect::<Vec<_>>()
    };
    assert_eq!(roles(&[]), [false, false, true, true, true]);
    // The last two cannot run virtual machines; 7 cores are too few.
    assert_eq!(roles(&["cnv"]), [true, true, false, false, false]);
    assert_eq!(roles(&["lvm"]), roles(&[]));
}

/// Operators, machine, host, and the cores and memory (MiB) that its role and its operators need.
#[test]
fn operators_add_to_the_requirements_of_hosts() {
    let two_gpus = |one: &mut Inventory| {
        let gpu = Gpu {
            vendor_id: "10de".to_owned(),
            device_id: "1eb8".to_owned(),
            ..Gpu::default()
        };
        one.gpus = vec![gpu.clone(), gpu];
    };
    let rows: [(ChosenCluster, usize, i64, i64); 7] = [
        (ChosenCluster::new(3, 2, &[]), 0, 4, 16384),
        (
            ChosenCluster::new(3, 2, &["cnv", "mtv", "mce"]),
            0,
            13,
            16384 + 150 + 1024 + 16384,
        ),
        (
            ChosenCluster::new(3, 2, &["cnv"]).machines(&[3], two_gpus),
            3,
            4,
            8192 + 360 + 2048,
        ),
        (
            ChosenCluster::new(3, 2, &["lvm"]).version("4.15.1"),
            3,
            3,
            8192 + 400,
        ),
        (ChosenCluster::new(3, 2, &["lvm"]), 0, 4, 16384),
        (
            ChosenCluster::new(3, 0, &["odf"]).machines(&[0], large_disk),
            0,
            4 + 6 + 2,
            16384 + 24 * 1024,
        ),
        (
            ChosenCluster::new(3, 3, &["odf"]).machines(&[3], large_disk),
            3,
            2 + 8 + 2,
            8192 + 24 * 1024,
        ),
    ];
    for (cluster, at, cores, mib) in rows {
        let mut cluster = cluster.machines(&[at], |one| {
            one.cpu.as_mut().unwrap().count = 1;
            one.memory.as_mut().unwrap().usable_bytes = 1 << 30;
        });
        cluster.0.cluster.schedulable_masters = Some(false);
        let snapshot = cluster.refreshed();
        let info = &snapshot.hosts[at].record.validations_info.text();
        for (id, needed) in [
            ("has-cpu-cores-for-role", format!("needs {cores} for")),
            ("has-memory-for-role", format!("needs {mib} MiB for")),
        ] {
            let entry = entry(info, id);
            assert!(
                entry["message"].as_str().unwrap().contains(&needed),
                "{needed}: {entry}"
            );
        }
    }
}
