//! Landlock: files, TCP, abstract sockets and signals.

use std::path::{Path, PathBuf};

use landlock::{
    ABI, Access, AccessFs, AccessNet, BitFlags, CompatLevel, Compatible, Ruleset, RulesetAttr,
    RulesetCreatedAttr, RulesetError, RulesetStatus, Scope, path_beneath_rules,
};

use crate::mechanisms::{ConfinementReport, Mechanism};
use crate::spec::Spec;

/// What rules are written for; older kernels do what they can.
const WANTED: ABI = ABI::V6;

/// Files that runtimes look at: whether the machine is in FIPS mode, and how large huge pages are.
const HARMLESS: &[&str] = &[
    "/dev/zero",
    "/dev/random",
    "/dev/urandom",
    "/proc/sys/crypto/fips_enabled",
    "/sys/kernel/mm/transparent_hugepage/hpage_pmd_size",
];

/// Restricts this process to what `spec` names.
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
    let read = AccessFs::from_read(WANTED);
    let look = read & !BitFlags::from(AccessFs::Execute);
    let denied = AccessFs::Execute
        | AccessFs::MakeChar
        | AccessFs::MakeBlock
        | AccessFs::MakeSock
        | AccessFs::IoctlDev;
    let write = AccessFs::from_all(WANTED) & !denied;
    // Its own root shows its own processes alone; the machine's shows others'.
    let proc = has_proc.then(|| PathBuf::from("/proc"));
    let harmless = HARMLESS.iter().map(PathBuf::from).chain(proc);
    let status = Ruleset::default()
        .set_compatibility(CompatLevel::BestEffort)
        .handle_access(AccessFs::from_all(WANTED))?
        .handle_access(AccessNet::from_all(WANTED))?
        .scope(Scope::from_all(WANTED))?
        .create()?
        .add_rules(path_beneath_rules(&spec.readable, read))?
        .add_rules(path_beneath_rules(harmless, look))?
        .add_rules(path_beneath_rules([&spec.work, &spec.scratch], write))?
        .add_rules(path_beneath_rules(
            [Path::new("/dev/null")],
            look | AccessFs::WriteFile,
        ))?
        .restrict_self()?;
    Ok(status.ruleset)
}
