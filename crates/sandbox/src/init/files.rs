//! Landlock: files, TCP, abstract sockets and signals.

use std::path::{Path, PathBuf};

use landlock::{
    ABI, Access, AccessFs, AccessNet, BitFlags, CompatLevel, Compatible, Ruleset, RulesetAttr,
    RulesetCreatedAttr, RulesetError, RulesetStatus, Scope, path_beneath_rules,
};

use crate::mechanisms::{ConfinementReport, Mechanism};
use crate::spec::SandboxSpec;

/// Landlock ABI of the rules; older kernels enforce a subset.
const TARGET_ABI: ABI = ABI::V6;

/// Files that runtimes read: FIPS mode and the size of huge pages.
const HARMLESS: &[&str] = &[
    "/dev/zero",
    "/dev/random",
    "/dev/urandom",
    "/proc/sys/crypto/fips_enabled",
    "/sys/kernel/mm/transparent_hugepage/hpage_pmd_size",
];

/// Restricts this process to the files of `spec`.
pub(super) fn restrict(spec: &SandboxSpec, has_proc: bool, report: &mut ConfinementReport) {
    let status = match rules(spec, has_proc) {
        Ok(status) => status,
        Err(error) => {
            report.note(Mechanism::Landlock, Err::<(), _>(&error));
            report.note(Mechanism::LandlockScopes, Err::<(), _>(&error));
            return;
        }
    };
    let (files, scopes) = match status {
        RulesetStatus::FullyEnforced => (Ok(()), Ok(())),
        RulesetStatus::PartiallyEnforced => (Ok(()), Err("the kernel has an older Landlock")),
        RulesetStatus::NotEnforced => {
            let reason = Err("the kernel has no Landlock, or does not allow it");
            (reason, reason)
        }
    };
    report.note(Mechanism::Landlock, files);
    report.note(Mechanism::LandlockScopes, scopes);
}

fn rules(spec: &SandboxSpec, has_proc: bool) -> Result<RulesetStatus, RulesetError> {
    let execute = AccessFs::from_read(TARGET_ABI);
    let read = execute & !BitFlags::from(AccessFs::Execute);
    let denied = AccessFs::Execute
        | AccessFs::MakeChar
        | AccessFs::MakeBlock
        | AccessFs::MakeSock
        | AccessFs::IoctlDev;
    let write = AccessFs::from_all(TARGET_ABI) & !denied;
    // Only its own /proc, which hides other processes; never the machine's.
    let proc = has_proc.then(|| PathBuf::from("/proc"));
    let harmless = HARMLESS.iter().map(PathBuf::from).chain(proc);
    let status = Ruleset::default()
        .set_compatibility(CompatLevel::BestEffort)
        .handle_access(AccessFs::from_all(TARGET_ABI))?
        .handle_access(AccessNet::from_all(TARGET_ABI))?
        .scope(Scope::from_all(TARGET_ABI))?
        .create()?
        .add_rules(path_beneath_rules(&spec.readable, execute))?
        .add_rules(path_beneath_rules(harmless, read))?
        .add_rules(path_beneath_rules([&spec.work, &spec.scratch], write))?
        .add_rules(path_beneath_rules(
            [Path::new("/dev/null")],
            read | AccessFs::WriteFile,
        ))?
        .restrict_self()?;
    Ok(status.ruleset)
}
