//! Volumes: local disks, volume groups, the storage cluster, and services that need a volume.

use serde_json::{Value, json};

use crate::Snapshot;
use crate::manifests::machine_config::resource;
use crate::operators::support::MinorVersion;
use crate::operators::{ODF_DISK_GB, OdfMode, spare_disks_of};
use crate::snapshot::roles::effective_role;

/// Storage class of the volumes on local disks.
const LOCAL_BLOCK: &str = "localblock-sc";

/// Storage class of each operator that provides volumes, the preferred one first.
const VOLUME_CLASSES: [(&str, &str); 2] =
    [("odf", "ocs-storagecluster-cephfs"), ("lvm", "lvms-vg1")];

pub(super) fn local_volumes() -> Value {
    let kind = ("local.storage.openshift.io/v1alpha1", "LocalVolumeSet");
    let metadata = json!({ "name": "local-disks", "namespace": "openshift-local-storage" });
    let spec = json!({
        "storageClassName": LOCAL_BLOCK,
        "volumeMode": "Block",
        "deviceInclusionSpec": { "deviceTypes": ["disk"] },
    });
    resource(kind, &metadata, &spec)
}

pub(super) fn volume_group() -> Value {
    let kind = ("lvm.topolvm.io/v1alpha1", "LVMCluster");
    let metadata = json!({ "name": "lvmcluster-sample", "namespace": "openshift-storage" });
    let pool = json!({ "name": "thin-pool-1", "sizePercent": 90, "overprovisionRatio": 10 });
    let spec =
        json!({ "storage": { "deviceClasses": [{ "name": "vg1", "thinPoolConfig": pool }] } });
    resource(kind, &metadata, &spec)
}

/// The storage cluster on the data disks of its hosts. A compact cluster limits the services that share its hosts.
pub(super) fn storage_cluster(all: &Snapshot) -> Value {
    let mode = OdfMode::of(all);
    let workers =
        json!({ "key": "node-role.kubernetes.io/worker", "operator": "In", "values": [""] });
    let mut devices = json!({
        "name": "ocs-deviceset",
        "count": data_disks(all, mode),
        "replica": 1,
        "portable": false,
        "placement": placement("rook-ceph-osd"),
        "preparePlacement": placement("rook-ceph-osd-prepare"),
        "dataPVCTemplate": { "spec": {
            "accessModes": ["ReadWriteOnce"],
            "resources": { "requests": { "storage": "1" } },
            "storageClassName": LOCAL_BLOCK,
            "volumeMode": "Block",
        } },
    });
    let mut spec = json!({
        "labelSelector": { "matchExpressions": [workers] },
        "manageNodes": false,
        "flexibleScaling": true,
        "monDataDirHostPath": "/var/lib/rook",
    });
    if mode == Some(OdfMode::Compact) {
        spec["resources"] = json!({
            "mds": limits(("3", "8Gi"), ("1", "8Gi")),
            "rgw": limits(("2", "4Gi"), ("1", "4Gi")),
        });
        devices["resources"] = limits(("2", "5Gi"), ("1", "5Gi"));
    }
    spec["storageDeviceSets"] = json!([devices]);
    let kind = ("ocs.openshift.io/v1", "StorageCluster");
    let metadata = json!({ "name": "ocs-storagecluster", "namespace": "openshift-storage" });
    resource(kind, &metadata, &spec)
}

/// The system that the storage cluster belongs to; later releases make it themselves.
pub(super) fn storage_system(all: &Snapshot) -> Option<Value> {
    let version: Option<MinorVersion> = all.cluster.openshift_version.parse().ok();
    version.filter(|version| *version < MinorVersion::four(19))?;
    let kind = ("odf.openshift.io/v1alpha1", "StorageSystem");
    let metadata = json!({
        "name": "ocs-storagecluster-storagesystem",
        "namespace": "openshift-storage",
    });
    let spec = json!({
        "kind": "storagecluster.ocs.openshift.io/v1",
        "name": "ocs-storagecluster",
        "namespace": "openshift-storage",
    });
    Some(resource(kind, &metadata, &spec))
}

/// Cores and memory of a service: at most, and at least.
fn limits(most: (&str, &str), least: (&str, &str)) -> Value {
    json!({
        "limits": { "cpu": most.0, "memory": most.1 },
        "requests": { "cpu": least.0, "memory": least.1 },
    })
}

/// On workers, and rather not on a host that has a pod of that app.
fn placement(app: &str) -> Value {
    let worker = json!({ "key": "node-role.kubernetes.io/worker", "operator": "Exists" });
    let same = json!({ "key": "app", "operator": "In", "values": [app] });
    json!({
        "nodeAffinity": { "requiredDuringSchedulingIgnoredDuringExecution": {
            "nodeSelectorTerms": [{ "matchExpressions": [worker] }],
        } },
        "podAntiAffinity": { "preferredDuringSchedulingIgnoredDuringExecution": [{
            "weight": 100,
            "podAffinityTerm": {
                "labelSelector": { "matchExpressions": [same] },
                "topologyKey": "kubernetes.io/hostname",
            },
        }] },
    })
}

/// Number of disks for the data.
fn data_disks(all: &Snapshot, mode: Option<OdfMode>) -> usize {
    let hosts = all.hosts.iter().filter(|host| {
        let role = effective_role(&host.record);
        mode.is_some_and(|mode| mode.uses(role))
    });
    let disks = hosts.filter_map(|host| {
        let inventory = host.inventory.as_ref()?;
        Some(spare_disks_of(&host.record, inventory, ODF_DISK_GB))
    });
    disks.sum()
}

/// The services of multicluster engine on volumes of another operator: of the preferred one that is chosen.
pub(super) fn agent_services(all: &Snapshot, operator: &str) -> Option<Value> {
    let chosen = |name: &str| {
        let mut operators = all.cluster.monitored_operators.iter();
        operators.any(|one| one.name == name)
    };
    let mut classes = VOLUME_CLASSES.iter();
    let (provider, class) = classes.find(|(name, _)| chosen(name))?;
    if *provider != operator || !chosen("mce") {
        return None;
    }
    let volume = |size| {
        json!({
            "storageClassName": class,
            "accessModes": ["ReadWriteOnce"],
            "resources": { "requests": { "storage": size } },
        })
    };
    let kind = ("agent-install.openshift.io/v1beta1", "AgentServiceConfig");
    let spec = json!({
        "databaseStorage": volume("10Gi"),
        "filesystemStorage": volume("10Gi"),
        "imageStorage": volume("50Gi"),
    });
    Some(resource(kind, &json!({ "name": "agent" }), &spec))
}
