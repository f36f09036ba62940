//! `atoll registry`: what a registry is given beforehand, its users and its certificate, and what it is asked to do.
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

/// What can be made for the registry.
#[derive(Debug, Clone, Subcommand)]
pub(crate) enum RegistryCommand {
    /// Add a user to a password file, give one another password, or delete one
    ///
    /// The password is read from standard input, or asked for at a terminal. A running registry takes the changed
    /// file over at once. A container that was given this single file, as those of the pod are, sees the change
    /// after a restart.
    Htpasswd(htpasswd::HtpasswdArgs),
    /// Make a self-signed certificate, and tell how clients come to trust it
    Cert(cert::CertArgs),
    /// Let a running registry remove what nothing needs any more, now
    Gc(gc::GcArgs),
    /// Compare everything that a registry holds with its digests, and tell what is damaged
    ///
    /// A running registry reads at its own pace, and takes damaged content away: clients then push it again. Of a
    /// folder, links and what manifests need are compared, too.
    Verify(verify::VerifyArgs),
    /// Make the index of a registry agree with its folder
    ///
    /// Needed after others changed the folder of a running registry; each start does the same. The index of a folder
    /// is made anew. Nothing is removed from the folder.
    Reindex(reindex::ReindexArgs),
}

/// Does what the command line says.
///
/// Errors: files that cannot be read or written, a password that cannot be used, an RSA key without openssl, a
/// registry that refuses, content that is damaged.
pub(crate) fn run(command: &RegistryCommand) -> Result<(), Error> {
    match command {
        RegistryCommand::Htpasswd(arguments) => htpasswd::run(arguments),
        RegistryCommand::Cert(arguments) => cert::run(arguments),
        RegistryCommand::Gc(arguments) => gc::run(arguments),
        RegistryCommand::Verify(arguments) => verify::run(arguments),
        RegistryCommand::Reindex(arguments) => reindex::run(arguments),
    }
}
