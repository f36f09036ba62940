//! `atoll certs`: the certificate authority of a site, and the wildcard certificate of its network domain.

mod trust;

use std::path::PathBuf;
use std::time::SystemTime;

use clap::Args;
use credentials::certificate::SiteAuthority;
use credentials::host_name::{self, certificate_name};
use credentials::site_certificate::{LEAF_DAYS, SiteCertificate, SiteFiles};
use service::Error;
use service::file::folder;

use crate::terminal;

/// Units: days. Ten years, as the authority.
const MAX_DAYS: i64 = 3653;
/// Mode of new files with a private key.
const OWNER_ONLY: u32 = 0o600;
const OPEN: u32 = 0o755;

/// Arguments of `atoll certs`.
#[derive(Debug, Clone, Args)]
pub(crate) struct CertsArgs {
    /// Network domain, as in NETWORK_DOMAIN: the certificate is for it and all names directly below it
    #[arg(long, value_name = "DOMAIN", value_parser = host_name::domain)]
    domain: String,
    /// Folder for ca.crt, ca.key, DOMAIN.pem and crt-list.txt; ca.key may also be in the folder `ca` beside it
    #[arg(long, value_name = "DIR", default_value = ".")]
    dir: PathBuf,
    /// Further names and IP addresses of the certificate; repeatable
    #[arg(long = "name", value_name = "NAME", num_args = 1.., value_parser = certificate_name)]
    names: Vec<String>,
    /// Validity of the certificate in days
    #[arg(long, default_value_t = LEAF_DAYS, value_parser = clap::value_parser!(u32).range(2..=MAX_DAYS))]
    days: u32,
    /// Replace the certificate, even if it has more than a third of its lifetime left
    #[arg(long)]
    renew: bool,
    /// Only print how clients trust the existing ca.crt
    #[arg(long, conflicts_with_all = ["names", "days", "renew"])]
    print_trust: bool,
}

/// Makes missing and old certificates, and prints how clients trust them.
///
/// Errors: files that cannot be read or written; names that an existing authority may not sign for.
pub(crate) fn run(arguments: &CertsArgs) -> Result<(), Error> {
    let CertsArgs { domain, dir, .. } = arguments;
    if arguments.print_trust {
        let authority = SiteAuthority::open(dir)?;
        terminal::print(&trust::instructions(&authority, domain));
        return Ok(());
    }
    folder(dir, OPEN)?;
    let authority = SiteAuthority::ensure(dir, domain, &arguments.names)?;
    let files = SiteFiles::in_folder(dir, domain);
    let certificate = files.ensure(
        &authority,
        &SiteCertificate {
            domain,
            names: &arguments.names,
            days: arguments.days,
            renew: arguments.renew,
            mode: OWNER_ONLY,
        },
    )?;
    let state = if authority.is_new() {
        "created"
    } else {
        "kept"
    };
    terminal::print(&format!(
        "{}: {state}\n{}: {certificate}\n{}: names it for the proxy\n",
        authority.certificate().display(),
        files.bundle.display(),
        files.list.display(),
    ));
    if arguments.days > LEAF_DAYS {
        terminal::notice(&format!(
            "browsers may refuse certificates that are valid for more than {LEAF_DAYS} days"
        ));
    }
    if let Some(days) = expires_before(authority.not_after(), arguments.days) {
        terminal::notice(&format!(
            "the authority itself expires in {days} days: make a new one in another folder, and have clients trust both"
        ));
    }
    terminal::print(&trust::instructions(&authority, domain));
    Ok(())
}

/// Days until `end`, if these are fewer than `days`.
fn expires_before(end: SystemTime, days: u32) -> Option<u64> {
    let left = end.duration_since(SystemTime::now()).unwrap_or_default();
    let left = left.as_secs() / (24 * 60 * 60);
    (left < u64::from(days)).then_some(left)
}
