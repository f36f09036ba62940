//! `atoll host boot`: hosts boot from an image.

use clap::Args;
use net::web::shown;
use nodes::redfish::{BootJob, BootMedium};
use service::Error;
use url::Url;

use super::bmcs::{HostBmcArgs, HostResult, print_failures};
use crate::catalog::table::table;
use crate::terminal;

/// Arguments of `boot`.
#[derive(Debug, Clone, Args)]
pub(crate) struct HostBootArgs {
    /// Boot from the live image at this URL, as virtual CD: the BMCs load it
    #[arg(
        long,
        value_name = "URL",
        required_unless_present = "http_boot",
        conflicts_with = "http_boot"
    )]
    image: Option<Url>,
    /// Boot from the image or program at this URL by UEFI HTTP boot, which keeps Secure Boot: the firmware loads it
    #[arg(long, value_name = "URL")]
    http_boot: Option<Url>,
    #[command(flatten)]
    bmcs: HostBmcArgs,
}

/// Boots the hosts; returns whether all were started.
///
/// Errors: a file cannot be read, or has no such host.
pub(super) fn run(arguments: &HostBootArgs) -> Result<bool, Error> {
    let (url, medium) = match (&arguments.image, &arguments.http_boot) {
        (Some(image), _) => {
            let medium = BootMedium::VirtualMedia {
                image: image.clone(),
                size_bytes: None,
            };
            (image, medium)
        }
        (None, Some(uri)) => (uri, BootMedium::UefiHttp { uri: uri.clone() }),
        (None, None) => {
            let reason = "name the image by --image, or by --http-boot";
            return Err(Error::new("booting hosts", reason));
        }
    };
    let results = arguments.bmcs.run(BootJob(medium))?;
    let rows: Vec<_> = results
        .iter()
        .filter(|one| one.result.is_ok())
        .map(|one| [one.host.name.clone(), shown(url)])
        .collect();
    if !rows.is_empty() {
        terminal::print(&table(["NAME", "BOOTS FROM"], &rows));
    }
    Ok(print_failures(results.iter().map(HostResult::failure)))
}
