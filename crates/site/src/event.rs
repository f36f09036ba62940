//! Events of the operations on a site.

use std::path::Path;

use bundle::BundleManifest;
use mirror::progress::RunProgress;
use mirror::run::RunOutcome;

/// Receives each event.
pub type SiteObserver<'a> = &'a dyn Fn(SiteEvent<'_>);

/// Something that happened, or is being done.
#[derive(Debug)]
pub enum SiteEvent<'a> {
    /// Something takes time. The next event replaces it.
    Working(SiteWork<'a>),
    /// Nothing takes time any more.
    Rested,
    /// A file was written.
    Written(&'a Path),
    /// A file that differs was left as it is.
    Kept(&'a Path),
    /// A file of another version got another name, and a new one its place.
    Renamed { path: &'a Path, old: &'a Path },
    /// A file of settings has no lines for some settings of this version.
    SettingsMissing { path: &'a Path, lines: &'a [String] },
    /// The names of the site were added to settings of an earlier version.
    NamesAdded {
        setting: &'a str,
        names: &'a str,
        path: &'a Path,
    },
    /// A certificate that was there is not for all names.
    NamesMissing {
        certificate: &'a Path,
        key: &'a Path,
        names: &'a [&'a str],
    },
    /// Settings of the proxy were moved into its own file.
    ProxySettingsMoved {
        names: &'a [&'a str],
        from: &'a Path,
        to: &'a Path,
    },
    /// A bundle was opened; its content is not verified yet.
    BundleOpened {
        path: &'a Path,
        manifest: &'a BundleManifest,
        signature: BundleSignature,
    },
    /// The program of the bundle takes over.
    ProgramChanged,
    /// The installed version is being backed up.
    BackingUp { version: &'a str, file: &'a Path },
    /// The installed version was backed up by an interrupted change.
    BackedUpBefore { version: &'a str, file: &'a Path },
    /// An older version gets its own data back; the present data is in `backup`.
    Returning {
        restored: &'a Path,
        backup: &'a Path,
    },
    /// A backup was verified.
    BackupVerified {
        file: &'a Path,
        members: usize,
        created_at: &'a str,
        /// Version of the program that saved it.
        program: &'a str,
    },
    /// The content that a restore replaced has another name now.
    PreviousKept(&'a Path),
    /// An object that names no mirrors of registries was skipped.
    KindSkipped { path: &'a Path, kind: &'a str },
    /// Archives are being published: the same counters, twice a second.
    Publishing(&'a RunProgress),
    /// Archives were published before, for this reason.
    Unchanged(&'a str),
    /// Archives were published.
    Published(&'a RunOutcome),
    /// The files for clusters are in this folder.
    ResultsWritten(&'a Path),
    /// A note.
    Noted(&'a str),
}

/// Work that takes time.
#[derive(Debug, Clone, Copy)]
pub enum SiteWork<'a> {
    /// A service becomes ready.
    Waiting(&'a str),
    /// Units: bytes.
    Verifying { read: u64, whole: u64 },
    /// An image into podman.
    Loading(&'a str),
    /// An image into the registry.
    Pushing(&'a str),
}

/// The signature of a bundle.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BundleSignature {
    Verified,
    /// No key was given.
    Unchecked,
    None,
}
