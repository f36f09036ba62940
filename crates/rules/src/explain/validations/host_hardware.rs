//! Hardware validations of hosts.
//! Source: assisted-service, internal/host/validator.go, validation_id.go; blocking: conditions in statemachine.go.

use model::host::{FORBIDDEN_HOSTNAMES, HostRole};
use model::inventory::{Inventory, Type};
use model::validations::HostValidationId as Id;

use super::host_disks::{
    disk_encryption, disk_ids_unique, disk_speed, has_min_valid_disks, no_skip_installation_disk,
    no_skip_missing_disk, vsphere_disk_ids,
};
use super::subject::HostSubject;
use super::validation::{Category, HostBlock, HostValidation, Unbound};
use super::verdict::Verdict;
use super::{host_identity, host_operators};
use crate::hardware::requirements::{maker, mebibytes, usable_mib};
use crate::operators::HostResources;
use crate::operators::support::RequestedPlatform;
use crate::versions::agent_version;

/// Validations of the hardware group.
pub static VALIDATIONS: &[HostValidation] = &[
    row(
        Id::HasInventory,
        HostBlock::Hardware,
        Unbound::Shown,
        has_inventory,
        "Other validations need the inventory.",
    )
    .needs(
        "an inventory of the host",
        "Check that the agent runs on the host and reaches the service.",
    ),
    row(
        Id::InventoryNotFullyTruncated,
        HostBlock::Sufficient,
        Unbound::Shown,
        not_fully_truncated,
        "A fully truncated inventory proves nothing.",
    )
    .needs(
        "a complete inventory",
        "Raise AGENT_INVENTORY_MAX_SIZE or AGENT_INVENTORY_DISK_MIN_SIZE.",
    ),
    row(
        Id::InventoryNotPartiallyTruncated,
        HostBlock::Nothing,
        Unbound::Shown,
        not_partially_truncated,
        "Some disks or interfaces are not shown.",
    )
    .needs(
        "a complete inventory",
        "Raise AGENT_INVENTORY_MAX_SIZE or AGENT_INVENTORY_DISK_MIN_SIZE.",
    ),
    row(
        Id::HasMinCpuCores,
        HostBlock::Hardware,
        Unbound::Blocks,
        has_min_cpu_cores,
        "Fewer cores than any role needs.",
    )
    .needs(
        "CPU cores for one of the roles",
        "Add CPU cores, or leave the host out.",
    ),
    row(
        Id::HasMinMemory,
        HostBlock::Hardware,
        Unbound::Blocks,
        has_min_memory,
        "Less memory than any role needs.",
    )
    .needs(
        "memory for one of the roles",
        "Add memory, or leave the host out.",
    ),
    row(
        Id::HasMinValidDisks,
        HostBlock::Hardware,
        Unbound::Blocks,
        has_min_valid_disks,
        "There must be a disk to install to.",
    )
    .needs(
        "an eligible disk",
        "Attach a disk that is eligible for the installation.",
    ),
    row(
        Id::HasCpuCoresForRole,
        HostBlock::Sufficient,
        Unbound::Hidden,
        has_cpu_cores_for_role,
        "Cores for the role and the operators on it.",
    )
    .needs(
        "CPU cores for the role",
        "Add CPU cores, or choose another role.",
    ),
    row(
        Id::HasMemoryForRole,
        HostBlock::Sufficient,
        Unbound::Hidden,
        has_memory_for_role,
        "Memory for the role and the operators on it.",
    )
    .needs("memory for the role", "Add memory, or choose another role."),
    row(
        Id::HostnameUnique,
        HostBlock::Sufficient,
        Unbound::Hidden,
        hostname_unique,
        "Names identify nodes.",
    )
    .needs(
        "a name that no other host of the cluster has",
        "Rename one of the hosts.",
    ),
    row(
        Id::HostnameValid,
        HostBlock::Sufficient,
        Unbound::Blocks,
        hostname_valid,
        "Node names are DNS names.",
    )
    .needs(
        "a DNS name of at most 63 lower-case characters",
        "Give the host a valid name of its own.",
    ),
    row(
        Id::SufficientInstallationDiskSpeed,
        HostBlock::Sufficient,
        Unbound::Hidden,
        disk_speed,
        "etcd waits for every flush.",
    )
    .needs(
        "a disk whose speed test ends without error",
        "Choose another installation disk, or replace the disk.",
    ),
    row(
        Id::CompatibleWithClusterPlatform,
        HostBlock::Hardware,
        Unbound::Hidden,
        compatible_with_platform,
        "A platform integration needs its own machines.",
    )
    .needs(
        "a machine of the platform's maker",
        "Choose another platform, or use another machine.",
    ),
    row(
        Id::VsphereDiskUuidEnabled,
        HostBlock::DiskIds,
        Unbound::Hidden,
        vsphere_disk_ids,
        "vSphere storage finds disks by id.",
    )
    .needs(
        "an id for every disk",
        "Set disk.EnableUUID to TRUE in the settings of the virtual machine.",
    ),
    row(
        Id::CompatibleAgent,
        HostBlock::Sufficient,
        Unbound::Shown,
        compatible_agent,
        "Agent and service must speak the same protocol.",
    )
    .needs(
        "the agent of the service",
        "Wait for the upgrade of the agent, or boot the host from a new discovery image.",
    ),
    row(
        Id::NoSkipInstallationDisk,
        HostBlock::Sufficient,
        Unbound::Hidden,
        no_skip_installation_disk,
        "The installation disk is always written.",
    )
    .needs(
        "an installation disk that may be formatted",
        "Choose another installation disk, or let it be formatted.",
    ),
    row(
        Id::NoSkipMissingDisk,
        HostBlock::Sufficient,
        Unbound::Hidden,
        no_skip_missing_disk,
        "A disk to be kept must be there.",
    )
    .needs(
        "disks that exist",
        "Remove the missing disks from the list of disks to skip formatting.",
    ),
    row(
        Id::DiskEncryptionRequirementsSatisfied,
        HostBlock::Hardware,
        Unbound::Hidden,
        disk_encryption,
        "Encryption needs a TPM or reachable Tang servers.",
    )
    .needs(
        "a TPM 2.0, or reachable Tang servers",
        "Enable the TPM in the firmware, or make the Tang servers reachable.",
    ),
    row(
        Id::MatchesExpectedHost,
        HostBlock::Sufficient,
        Unbound::Shown,
        host_identity::matches_expected_host,
        "An infra-env with a list of expected hosts installs no other machines.",
    )
    .needs(
        "a machine of the list of expected hosts, with its settings",
        "Correct the host, or the list of expected hosts of its infra-env.",
    ),
    row(
        Id::HostIdUnique,
        HostBlock::Sufficient,
        Unbound::Shown,
        host_identity::host_id_unique,
        "Two machines with one id overwrite each other's reports.",
    )
    .needs(
        "one machine for each host id",
        "Give each machine a serial number and a UUID of its own, or shut one of them down.",
    ),
    row(
        Id::SerialNumberUnique,
        HostBlock::Nothing,
        Unbound::Hidden,
        host_identity::serial_number_unique,
        "Copied machines often share more than their serial number.",
    )
    .needs(
        "a serial number that no other host of the cluster has",
        "Give each machine a serial number of its own.",
    ),
    row(
        Id::DiskIdsUnique,
        HostBlock::Nothing,
        Unbound::Hidden,
        disk_ids_unique,
        "An id chooses the disk that is written.",
    )
    .needs(
        "an id that no other disk of the host has",
        "Check the path of the installation disk, or replace one of the disks.",
    ),
];

const fn row(
    id: Id,
    blocks: HostBlock,
    unbound: Unbound,
    check: fn(&HostSubject<'_>) -> Verdict,
    doc: &'static str,
) -> HostValidation {
    HostValidation {
        id,
        category: Category::Hardware,
        blocks,
        unbound,
        check,
        doc,
        required: "",
        fix: "",
    }
}

/// Fails without an inventory, for which others wait: a metric counts hosts that never sent one, and an event records its
/// arrival.
/// Source: assisted-service, internal/host/validator.go, hasInventory.
fn has_inventory(subject: &HostSubject<'_>) -> Verdict {
    let error = &subject.host.record.inventory_error;
    match (subject.inventory().is_ok(), error.is_empty()) {
        (true, true) => Verdict::ok("The inventory has been received"),
        (true, false) => Verdict::ok(format!(
            "An inventory has been received, but no later one, so that changes of the hardware are not seen: {error}"
        )),
        (false, true) => Verdict::fail(
            "inventory: none has been received; wait for the agent, or check that it runs and reaches the service",
        )
        .observed("no inventory"),
        (false, false) => Verdict::fail(format!(
            "inventory: {error}; check the device that reports this value, and the agent's log on the host"
        ))
        .observed(error)
        .fix("Check the device that reports this value, and the agent's log on the host."),
    }
}

/// Source: assisted-service, internal/host/validator.go, inventoryNotFullyTruncated.
fn not_fully_truncated(subject: &HostSubject<'_>) -> Verdict {
    truncation(subject, Type::Full)
}

/// Source: assisted-service, internal/host/validator.go, inventoryNotPartiallyTruncated.
fn not_partially_truncated(subject: &HostSubject<'_>) -> Verdict {
    truncation(subject, Type::Partial)
}

fn truncation(subject: &HostSubject<'_>, kind: Type) -> Verdict {
    let inventory = match subject.inventory() {
        Ok(inventory) => inventory,
        Err(pending) => return pending,
    };
    match &inventory.truncation {
        Some(cut) if cut.r#type == kind.into() => Verdict::fail(format!(
            "The inventory was too large and the agent truncated it ({kind}): {}; raise AGENT_INVENTORY_MAX_SIZE or AGENT_INVENTORY_DISK_MIN_SIZE",
            cut.reasons.join(", ")
        ))
        .observed(format_args!("a truncated inventory ({kind})")),
        _ => Verdict::ok("The inventory is complete"),
    }
}

fn cores(inventory: &Inventory) -> i64 {
    inventory.cpu.as_ref().map_or(0, |cpu| cpu.count)
}

fn memory_mib(inventory: &Inventory) -> i64 {
    inventory
        .memory
        .as_ref()
        .map_or(0, |memory| mebibytes(memory.usable_bytes))
}

/// Source: assisted-service, internal/host/validator.go, hasMinCpuCores.
fn has_min_cpu_cores(subject: &HostSubject<'_>) -> Verdict {
    let inventory = match subject.inventory() {
        Ok(inventory) => inventory,
        Err(pending) => return pending,
    };
    let needs = subject.requirements;
    let has = cores(inventory);
    Verdict::of(
        has >= needs.least().cpu_cores,
        format!("The host has {has} CPU cores"),
        format_args!(
            "CPU: the host has {has} cores, needs {} for worker and {} for master; add cores or leave the host out",
            needs.worker.cpu_cores, needs.master.cpu_cores
        ),
    )
    .observed(format_args!("{has} CPU cores"))
    .required(format_args!("{} CPU cores", needs.least().cpu_cores))
}

/// Source: assisted-service, internal/host/validator.go, hasMinMemory.
fn has_min_memory(subject: &HostSubject<'_>) -> Verdict {
    let inventory = match subject.inventory() {
        Ok(inventory) => inventory,
        Err(pending) => return pending,
    };
    let needs = subject.requirements;
    let has = memory_mib(inventory);
    Verdict::of(
        usable_mib(inventory) >= needs.least().ram_mib,
        format!("The host has {has} MiB of memory"),
        format_args!(
            "Memory: the host has {has} MiB, needs {} MiB for worker and {} MiB for master; add memory or leave the host out",
            needs.worker.ram_mib, needs.master.ram_mib
        ),
    )
    .observed(format_args!("{has} MiB of memory"))
    .required(format_args!("{} MiB of memory", needs.least().ram_mib))
}

/// Inventory and role, or a pending verdict.
fn role_needs<'a>(
    subject: &HostSubject<'a>,
) -> Result<(&'a Inventory, HostRole, RoleRequirements), Verdict> {
    let inventory = subject.inventory()?;
    let cluster = subject.cluster()?;
    let role = subject
        .role()
        .ok_or_else(|| Verdict::wait("a role for the host"))?;
    let base = subject
        .requirements
        .host(role, cluster.single_node, inventory);
    let more = host_operators::overhead(cluster, &subject.host.record, inventory);
    Ok((
        inventory,
        role,
        RoleRequirements {
            cores: base.cpu_cores.saturating_add(more.cores),
            mib: base.ram_mib.saturating_add(more.mib),
            operators: if more == HostResources::default() {
                ""
            } else {
                " and its operators"
            },
        },
    ))
}

struct RoleRequirements {
    cores: i64,
    mib: i64,
    operators: &'static str,
}

/// Source: assisted-service, internal/host/validator.go, hasCPUCoresForRole.
fn has_cpu_cores_for_role(subject: &HostSubject<'_>) -> Verdict {
    let (inventory, role, needs) = match role_needs(subject) {
        Ok(all) => all,
        Err(verdict) => return verdict,
    };
    let has = cores(inventory);
    Verdict::of(
        has >= needs.cores,
        format!(
            "The host has {has} CPU cores, enough for role {role}{}",
            needs.operators
        ),
        format_args!(
            "CPU: the host has {has} cores, needs {} for role {role}{}; add cores or choose another role",
            needs.cores, needs.operators
        ),
    )
    .observed(format_args!("{has} CPU cores"))
    .required(format_args!(
        "{} CPU cores for role {role}{}",
        needs.cores, needs.operators
    ))
}

/// Source: assisted-service, internal/host/validator.go, hasMemoryForRole.
fn has_memory_for_role(subject: &HostSubject<'_>) -> Verdict {
    let (inventory, role, needs) = match role_needs(subject) {
        Ok(all) => all,
        Err(verdict) => return verdict,
    };
    let has = memory_mib(inventory);
    Verdict::of(
        usable_mib(inventory) >= needs.mib,
        format!(
            "The host has {has} MiB of memory, enough for role {role}{}",
            needs.operators
        ),
        format_args!(
            "Memory: the host has {has} MiB, needs {} MiB for role {role}{}; add memory or choose another role",
            needs.mib, needs.operators
        ),
    )
    .observed(format_args!("{has} MiB of memory"))
    .required(format_args!(
        "{} MiB of memory for role {role}{}",
        needs.mib, needs.operators
    ))
}

/// Source: assisted-service, internal/host/validator.go, isHostnameUnique.
fn hostname_unique(subject: &HostSubject<'_>) -> Verdict {
    let cluster = match subject.cluster() {
        Ok(cluster) => cluster,
        Err(verdict) => return verdict,
    };
    if let Err(pending) = subject.inventory_or_name() {
        return pending;
    }
    let Some(name) = subject.name() else {
        return Verdict::ok("A host without a name shares none");
    };
    let holders = cluster
        .names
        .get(&name.to_lowercase())
        .copied()
        .unwrap_or_default();
    Verdict::of(
        holders <= 1,
        format!("Hostname {name} is unique in the cluster"),
        format_args!("Hostname {name} is used by {holders} hosts of the cluster; rename this host"),
    )
    .observed(format_args!("{holders} hosts named {name}"))
}

/// Longest name that the kernel takes. Units: characters.
const HOSTNAME_LIMIT: usize = 63;

/// Source: assisted-service, internal/host/validator.go, isHostnameValid.
fn hostname_valid(subject: &HostSubject<'_>) -> Verdict {
    if let Err(pending) = subject.inventory_or_name() {
        return pending;
    }
    let Some(name) = subject.name() else {
        return Verdict::fail("Hostname: the host reports no name; set one").observed("no name");
    };
    if FORBIDDEN_HOSTNAMES.contains(&name) {
        return Verdict::fail(format!(
            "Hostname {name} is not allowed; give the host a name of its own"
        ))
        .observed(name);
    }
    Verdict::of(
        is_hostname(name),
        format!("Hostname {name} is allowed"),
        format_args!(
            "Hostname {name} is not valid; it needs lower-case letters, digits, hyphens and dots, must start with a letter or digit, and be at most {HOSTNAME_LIMIT} characters long"
        ),
    )
    .observed(name)
}

/// Source: assisted-service, internal/host/hostutil/host_utils.go, ValidateHostname.
fn is_hostname(name: &str) -> bool {
    let fits = |label: &str| {
        (1..=HOSTNAME_LIMIT).contains(&label.len())
            && label
                .bytes()
                .all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-')
    };
    name.len() <= HOSTNAME_LIMIT && !name.starts_with('-') && name.split('.').all(fits)
}

/// Source: assisted-service, internal/host/validator.go, compatibleWithClusterPlatform.
fn compatible_with_platform(subject: &HostSubject<'_>) -> Verdict {
    let cluster = match subject.cluster() {
        Ok(cluster) => cluster,
        Err(verdict) => return verdict,
    };
    let inventory = match subject.inventory() {
        Ok(inventory) => inventory,
        Err(pending) => return pending,
    };
    let kind = cluster.cluster.platform_type();
    let Some(needed) = RequestedPlatform::of(cluster.cluster).maker() else {
        return Verdict::ok(format!("Platform {kind} supports every machine"));
    };
    let maker = maker(inventory);
    Verdict::of(
        maker == needed,
        format!("The machine fits platform {kind}"),
        format_args!(
            "Platform {kind} needs machines of {needed}, this one is of {maker:?}; choose another platform or another machine"
        ),
    )
    .observed(format_args!("a machine of {maker:?}"))
    .required(format_args!("a machine of {needed}"))
}

/// Source: assisted-service, internal/host/validator.go, compatibleAgent.
fn compatible_agent(subject: &HostSubject<'_>) -> Verdict {
    let wanted = subject.agent_image;
    let has = &subject.host.record.discovery_agent_version;
    if !subject.policy.upgrade_agent || wanted.is_empty() || is_installing(subject) {
        return Verdict::Hidden;
    }
    Verdict::of(
        agent_version::is_compatible(has, wanted),
        "The agent has the service's version",
        format_args!("The agent is {has}, the service works with {wanted}; it will be upgraded"),
    )
    .observed(format_args!("agent {has}"))
    .required(format_args!("agent {wanted}"))
}

fn is_installing(subject: &HostSubject<'_>) -> bool {
    use model::host::HostStatus as S;
    matches!(
        subject.host.record.status,
        S::PreparingForInstallation
            | S::PreparingSuccessful
            | S::PreparingFailed
            | S::Installing
            | S::InstallingInProgress
            | S::InstallingPendingUserAction
            | S::Installed
            | S::AddedToExistingCluster
    )
}
