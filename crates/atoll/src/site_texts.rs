//! Texts about a site: events of its operations, and the rights of its users.

use std::path::Path;

use credentials::log_in::LINK_HOURS;
use model::size::mib;
use site::pod::SETTINGS;
use site::pod::folder::PodAccess;
use site::{BundleSignature, SiteEvent, SiteWork};

use crate::mirror::print_outcome;
use crate::terminal::{clear_progress, notice, print, progress};

/// Prints an event.
#[expect(
    clippy::needless_pass_by_value,
    reason = "the signature of `SiteObserver`"
)]
pub(crate) fn report(event: SiteEvent<'_>) {
    match event {
        SiteEvent::Working(work) => progress(&work_text(work)),
        SiteEvent::Rested => clear_progress(),
        // A printer with the earlier ticks prints it.
        SiteEvent::Publishing(_) => {}
        SiteEvent::Noted(_)
        | SiteEvent::SettingsMissing { .. }
        | SiteEvent::NamesAdded { .. }
        | SiteEvent::NamesMissing { .. }
        | SiteEvent::ProxySettingsMoved { .. }
        | SiteEvent::KindSkipped { .. } => notice(&text(&event)),
        SiteEvent::Published(outcome) => print_outcome(outcome, ""),
        _ => print(&text(&event)),
    }
}

fn work_text(work: SiteWork<'_>) -> String {
    match work {
        SiteWork::Waiting(service) => format!("waiting for {service}"),
        SiteWork::Verifying { read, whole } => {
            format!("verifying: {} of {}", mib(read), mib(whole))
        }
        SiteWork::Loading(image) => format!("loading {image}"),
        SiteWork::Pushing(image) => format!("pushing {image}"),
    }
}

/// The words of an event that is printed once.
fn text(event: &SiteEvent<'_>) -> String {
    match event {
        SiteEvent::Written(path) => format!("{} written.", path.display()),
        SiteEvent::Kept(path) => format!("{} kept.", path.display()),
        SiteEvent::Renamed { path, old } => format!(
            "{} differed and was renamed to {}.",
            path.display(),
            old.display()
        ),
        SiteEvent::SettingsMissing { path, lines } => format!(
            "{} lacks settings of this version:\n{}",
            path.display(),
            lines.join("\n")
        ),
        SiteEvent::NamesAdded {
            setting,
            names,
            path,
        } => format!(
            "{setting}={names} added to {}: add the other names that users and hosts call the services by",
            path.display()
        ),
        SiteEvent::NamesMissing {
            certificate,
            key,
            names,
        } => format!(
            "{} is kept, but is not for {}; for a new one, remove it and {}, and run this again",
            certificate.display(),
            names.join(", "),
            key.display(),
        ),
        SiteEvent::ProxySettingsMoved { names, from, to } => format!(
            "{} is in {} and has no effect in {}, where it is a comment now",
            names.join(", "),
            to.display(),
            from.display()
        ),
        SiteEvent::ResultsWritten(folder) => {
            format!("manifests for clusters written to {}", folder.display())
        }
        SiteEvent::KindSkipped { path, kind } => {
            format!(
                "{}: skipping {kind:?}, which names no mirrors",
                path.display()
            )
        }
        SiteEvent::Unchanged(text) | SiteEvent::Noted(text) => (*text).to_owned(),
        _ => installation_text(event),
    }
}

/// The words of an event of an installation or a backup.
fn installation_text(event: &SiteEvent<'_>) -> String {
    match event {
        SiteEvent::BundleOpened {
            path,
            manifest,
            signature,
        } => {
            let signature = match signature {
                BundleSignature::Verified => "signature verified",
                BundleSignature::Unchecked => "signed; --key verifies it",
                BundleSignature::None => "not signed",
            };
            format!(
                "{}: version {} for {}, {}, {} images, {signature}.",
                path.display(),
                manifest.version,
                manifest.architecture,
                mib(manifest.size),
                manifest.images.len(),
            )
        }
        SiteEvent::ProgramChanged => "Continuing with the program of the bundle.".to_owned(),
        SiteEvent::BackingUp { version, file } => {
            format!("Backing up version {version} into {}.", file.display())
        }
        SiteEvent::BackedUpBefore { version, file } => format!(
            "Continuing; {} is the backup of version {version}.",
            file.display()
        ),
        SiteEvent::Returning { restored, backup } => format!(
            "Migrations of the database are forward only: restoring {}. Later changes are in {}.",
            restored.display(),
            backup.display()
        ),
        SiteEvent::BackupVerified {
            file,
            members,
            created_at,
            program,
        } => format!(
            "{}: verified, {members} files, saved at {created_at} by version {program}.",
            file.display()
        ),
        SiteEvent::PreviousKept(path) => format!(
            "The previous content was renamed to {}: remove it when it is not needed.",
            path.display()
        ),
        _ => String::new(),
    }
}

/// Rights of the users, and how to log in.
pub(crate) fn access_text(access: &PodAccess, dir: &Path) -> String {
    let rights = access.rights;
    let Some(link) = &access.link else {
        return rights.to_owned();
    };
    format!(
        "{rights}\nLog in once, within {LINK_HOURS} hours, at {link}\n`atoll token link --config {}` prints another link.",
        dir.join(SETTINGS).display()
    )
}
