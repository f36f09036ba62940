//! Networks of BMCs, without the services of the site.

use std::net::SocketAddr;

use futures_util::future::join_all;
use net::resolve::Resolver;
use oci::Registry;
use redfish::BmcNetworks;
use url::Url;

use crate::app::remote_services;
use crate::settings::Settings;

/// BMC_NETWORKS, without the services that the settings name. A service whose name has no address now has none for a BMC,
/// either.
pub(super) async fn of_bmcs(settings: &Settings) -> BmcNetworks {
    let addresses = services(settings).into_iter().map(async |(host, port)| {
        let found = Resolver::system().lookup(&host).await.unwrap_or_default();
        let found = found.into_iter().map(|ip| SocketAddr::new(ip, port));
        found.collect::<Vec<_>>()
    });
    let services = join_all(addresses).await.concat();
    BmcNetworks::new(settings.bmc_networks.as_slice().to_vec(), services)
}

/// Host and port of each service that the settings name.
fn services(settings: &Settings) -> Vec<(String, u16)> {
    let mut services = vec![
        (settings.db_host.clone(), settings.db_port),
        ("127.0.0.1".to_owned(), settings.api_listen_port),
    ];
    let registry = match settings.archives_registry.as_ref().map(|it| &it.0.registry) {
        Some(Registry::Host(host)) => format!("https://{host}"),
        _ => String::new(),
    };
    let urls = [
        settings.base_url(),
        settings.image_service_base_url.0.clone(),
        settings
            .jwks_url
            .as_ref()
            .map(|url| url.0.clone())
            .unwrap_or_default(),
        settings.oidc_issuer.clone(),
        settings.s3_endpoint_url.clone(),
        registry,
    ];
    services.extend(urls.iter().filter_map(|url| {
        let url = Url::parse(url).ok()?;
        Some((url.host_str()?.to_owned(), url.port_or_known_default()?))
    }));
    let checked = remote_services(settings).unwrap_or_default();
    services.extend(checked.into_iter().map(|it| (it.host, it.port)));
    services
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn services_of_the_settings_are_no_bmcs() {
        let url = |text: &str| service::settings::Setting::parse(text).unwrap();
        let settings = Settings {
            db_host: "10.0.0.5".to_owned(),
            service_base_url: Some(url("https://10.0.0.6")),
            image_service_base_url: url("http://10.0.0.7:8888"),
            oidc_issuer: "https://[fd00::8]/realm".to_owned(),
            archives_registry: Some(
                service::settings::Setting::parse("10.0.0.9:5000/mirror").unwrap(),
            ),
            ..Settings::default()
        };
        let networks = of_bmcs(&settings).await;
        for (address, expected) in [
            ("10.0.0.4:443", true),
            ("172.31.0.1:443", true),
            ("192.168.0.1:8000", true),
            ("[fd00::7]:443", true),
            ("10.0.0.5:443", false),
            ("10.0.0.6:80", false),
            ("10.0.0.7:443", false),
            ("[fd00::8]:443", false),
            ("10.0.0.9:443", false),
            ("127.0.0.1:443", false),
            ("[::1]:443", false),
            ("169.254.169.254:80", false),
            ("[fe80::1]:443", false),
            ("172.32.0.1:443", false),
            ("8.8.8.8:443", false),
        ] {
            assert_eq!(
                networks.contain(address.parse().unwrap()),
                expected,
                "{address}"
            );
        }
    }
}
