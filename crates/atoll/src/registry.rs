//! `atoll registry`: users and certificate of a registry, and its administrative requests.
//!
//! The registry itself is `atoll serve registry`.

mod cert;
mod gc;
mod htpasswd;
mod password;
mod reindex;
mod remote;
mod verify;

use clap::Subcommand;
use service::Error;

/// Subcommands for a registry.
#[derive(Debug, Clone, Subcommand)]
pub(crate) enum RegistryCommand {
    /// Add, change or delete a user of a password file
    ///
    /// The password is read from standard input, or prompted for at a terminal. A running registry reloads the file
    /// at once. A container that mounts this single file, as those of the pod do, sees the change after a restart.
    Htpasswd(htpasswd::HtpasswdArgs),
    /// Create a self-signed certificate, and print how clients trust it
    Cert(cert::CertArgs),
    /// Run garbage collection in a running registry
    Gc(gc::GcArgs),
    /// Verify all content of a registry against its digests, and list damage
    ///
    /// A running registry scrubs at its own rate and quarantines damaged content: clients then push it again. In a
    /// folder, links and content referenced by manifests are verified, too.
    Verify(verify::VerifyArgs),
    /// Rebuild the derived index of a registry from its folder
    ///
    /// Needed after other programs changed the folder of a running registry; each start does the same. The index of a
    /// stopped registry is rebuilt. Nothing is removed from the folder.
    Reindex(reindex::ReindexArgs),
}

/// Runs the subcommand.
///
/// Errors: unreadable or unwritable files, an invalid password, an RSA key without openssl, a refused request,
/// damaged content.
pub(crate) fn run(command: &RegistryCommand) -> Result<(), Error> {
    match command {
        RegistryCommand::Htpasswd(arguments) => htpasswd::run(arguments),
        RegistryCommand::Cert(arguments) => cert::run(arguments),
        RegistryCommand::Gc(arguments) => gc::run(arguments),
        RegistryCommand::Verify(arguments) => verify::run(arguments),
        RegistryCommand::Reindex(arguments) => reindex::run(arguments),
    }
}
