//! `atoll host boot`: hosts boot from an image.

use clap::Args;
use net::web::shown;
use redfish::{BootJob, BootMedium, BootUrlError, ImageLoader, boot_url};
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
        value_parser = disc_url,
        required_unless_present = "http_boot",
        conflicts_with = "http_boot"
    )]
    image: Option<Url>,
    /// Boot from the image or program at this URL by UEFI HTTP boot, which keeps Secure Boot: the firmware loads it
    #[arg(long, value_name = "URL", value_parser = firmware_url)]
    http_boot: Option<Url>,
    #[command(flatten)]
    bmcs: HostBmcArgs,
}

/// The address of a virtual CD. Errors: no BMC can load it.
pub(crate) fn disc_url(text: &str) -> Result<Url, BootUrlError> {
    boot_url(text, ImageLoader::Bmc)
}

/// The address of UEFI HTTP boot. Errors: no firmware can load it.
pub(crate) fn firmware_url(text: &str) -> Result<Url, BootUrlError> {
    boot_url(text, ImageLoader::Firmware)
}

/// The medium that was named, with its address. Warns of an address that the BMC may not reach or take.
pub(crate) fn medium<'a>(
    image: Option<&'a Url>,
    http_boot: Option<&'a Url>,
) -> Option<(&'a Url, BootMedium)> {
    let disc = image.map(|image| {
        let medium = BootMedium::VirtualMedia {
            image: image.clone(),
            size_bytes: None,
        };
        (image, medium)
    });
    let http = || http_boot.map(|uri| (uri, BootMedium::UefiHttp { uri: uri.clone() }));
    let named = disc.or_else(http)?;
    for warning in named.1.warnings() {
        terminal::notice(&warning);
    }
    Some(named)
}

/// Boots the hosts; returns whether all were started.
///
/// Errors: a file cannot be read, or has no such host.
pub(super) fn run(arguments: &HostBootArgs) -> Result<bool, Error> {
    let medium = medium(arguments.image.as_ref(), arguments.http_boot.as_ref());
    let Some((url, medium)) = medium else {
        let reason = "name the image by --image, or by --http-boot";
        return Err(Error::new("booting hosts", reason));
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
