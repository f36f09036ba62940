//! Members of the API that refuse a declared value, as places in the files.

use model::Error;

use crate::declaration::Declaration;
use crate::documents::{AGENT, INSTALL};

/// Members of the API by their first name, with file and path; `{}` is the platform.
const MEMBERS: &[(&str, &str, &str)] = &[
    ("name", INSTALL, "metadata.name"),
    ("base_dns_domain", INSTALL, "baseDomain"),
    ("pull_secret", INSTALL, "pullSecret"),
    ("ssh_public_key", INSTALL, "sshKey"),
    ("ssh_authorized_key", INSTALL, "sshKey"),
    ("additional_trust_bundle", INSTALL, "additionalTrustBundle"),
    ("network_type", INSTALL, "networking.networkType"),
    ("machine_networks", INSTALL, "networking.machineNetwork"),
    ("cluster_networks", INSTALL, "networking.clusterNetwork"),
    ("service_networks", INSTALL, "networking.serviceNetwork"),
    ("api_vips", INSTALL, "platform.{}.apiVIPs"),
    ("ingress_vips", INSTALL, "platform.{}.ingressVIPs"),
    ("load_balancer", INSTALL, "platform.{}.loadBalancer"),
    ("platform", INSTALL, "platform"),
    ("user_managed_networking", INSTALL, "platform"),
    ("control_plane_count", INSTALL, "controlPlane.replicas"),
    ("hyperthreading", INSTALL, "controlPlane.hyperthreading"),
    ("http_proxy", INSTALL, "proxy.httpProxy"),
    ("https_proxy", INSTALL, "proxy.httpsProxy"),
    ("no_proxy", INSTALL, "proxy.noProxy"),
    ("install_config_overrides", INSTALL, ""),
    ("additional_ntp_source", AGENT, "additionalNTPSources"),
    ("additional_ntp_sources", AGENT, "additionalNTPSources"),
    ("image_type", AGENT, "minimalISO"),
    ("embedded_agent", AGENT, "embeddedAgent"),
];

/// Members below them that the files spell in another way.
const SPELLINGS: &[(&str, &str)] = &[
    ("host_prefix", "hostPrefix"),
    ("platform_name", "platformName"),
    ("cloud_controller_manager", "cloudControllerManager"),
    ("].ip", "]"),
];

/// File and path of a member of the API; none for one that the files do not have.
pub(crate) fn place_of(declaration: &Declaration, field: &str) -> Option<(&'static str, String)> {
    // Refusals of two lists name both.
    let field = field.split(" and ").next().unwrap_or(field);
    let end = field.find(['.', '[']).unwrap_or(field.len());
    let (first, rest) = field.split_at(end);
    let (_, file, path) = MEMBERS.iter().find(|(name, ..)| *name == first)?;
    let platform = declaration.platform.as_ref();
    let platform = platform.map_or("baremetal", |platform| platform.r#type.as_str());
    let mut path = format!("{}{rest}", path.replace("{}", platform));
    for (name, spelling) in SPELLINGS {
        path = path.replace(name, spelling);
    }
    let path = path.trim_start_matches('.');
    let path = path.strip_suffix(".type").unwrap_or(path);
    Some((file, path.to_owned()))
}

impl Declaration {
    /// An error of the API, with the place in the files of the value that it refuses.
    #[must_use]
    pub fn located(&self, error: Error) -> Error {
        let Error::Invalid { field, reason } = &error else {
            return error;
        };
        let prefixed = field.split_once(": ");
        let known = prefixed.filter(|(file, _)| [INSTALL, AGENT].contains(file));
        let place = known.map(|(file, path)| {
            let file = if file == AGENT { AGENT } else { INSTALL };
            (file, path.to_owned())
        });
        let Some((file, path)) = place.or_else(|| place_of(self, field)) else {
            return error;
        };
        match self.places.position(file, &path) {
            Some(at) => Error::invalid(format!("{file}:{at}: {path}"), reason.clone()),
            None => Error::invalid(format!("{file}: {path}"), reason.clone()),
        }
    }
}
