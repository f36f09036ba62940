//! Facts of a site for `doctor`, read from the files of its installation.

mod catalogs;
mod installation;
mod mirrors;
mod pod;
mod settings_file;

use std::net::IpAddr;

use url::Url;

pub use installation::site as of_up;
pub use mirrors::read_named as mirrors;
pub use pod::site as of_pod;

/// Whether hosts of clusters cannot reach the host of `url`.
fn is_local(url: &str) -> bool {
    let url = Url::parse(url);
    let host = url
        .as_ref()
        .ok()
        .and_then(Url::host_str)
        .unwrap_or_default();
    let address: Option<IpAddr> = host.trim_matches(['[', ']']).parse().ok();
    address.is_some_and(|address| address.is_loopback()) || host == "localhost"
}
