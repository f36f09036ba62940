//! Verification of archive sets and registries.

mod archive;
mod arguments;
mod registry;

use service::Error;

use super::run::Destination;
pub(crate) use arguments::MirrorVerifyArgs;

/// Verifies the set or registry and prints all faults.
///
/// Errors: faults, or no archive set or metadata.
pub(crate) fn run(arguments: &MirrorVerifyArgs) -> Result<(), Error> {
    match arguments.target.parse() {
        Ok(Destination::Target(target)) => registry::run(arguments, &target),
        Ok(Destination::ArchiveSet(folder)) => archive::run(arguments, folder.as_os_str()),
        Err(_) => archive::run(arguments, arguments.target.as_ref()),
    }
}
