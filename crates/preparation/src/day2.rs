//! Ignition configs of day-2 hosts: pointers to the configuration that their cluster serves.
//!
//! Source: openshift/assisted-service, `internal/ignition/discovery.go`, FormatSecondDayWorkerIgnitionFile.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use ignition::{HttpHeader, IgnitionConfig, IgnitionFile, Resource, SpecVersion};
use model::Error;
use model::cluster::Cluster;
use model::host::Host;
use rules::HostState;
use rules::cluster::ignition_endpoint;
use rules::steps::IgnitionAccess;

const READABLE: u32 = 0o644;
const CERTIFICATE_END: &str = "-----END CERTIFICATE-----";

/// Certificate authorities of a host's ignition endpoint, of its cluster and of the host's override, each once: base64
/// of a PEM bundle. None when there is none.
///
/// Errors: Invalid – the override or a certificate cannot be decoded.
/// Source: assisted-service, internal/host/hostutil/host_utils.go, combineCerts.
pub fn certificates(cluster: &Cluster, host: &Host) -> Result<Option<String>, Error> {
    let mut bundle: Vec<String> = Vec::new();
    let endpoint = cluster.ignition_endpoint.as_ref();
    if let Some(encoded) = endpoint.and_then(|endpoint| endpoint.ca_certificate.as_deref()) {
        let pem = STANDARD.decode(encoded.trim()).map_err(|error| {
            Error::invalid(
                "ignition_endpoint.ca_certificate",
                format!("is not base64: {error}"),
            )
        })?;
        add_certificates(&mut bundle, &pem);
    }
    let overrides = host.ignition_config_overrides.trim();
    if !overrides.is_empty() {
        let config =
            IgnitionConfig::parse(overrides.as_bytes()).map_err(|error| refuse_override(&error))?;
        for authority in &config.ignition.security.tls.certificate_authorities {
            if let Some(pem) = authority
                .inline_bytes()
                .map_err(|error| refuse_override(&error))?
            {
                add_certificates(&mut bundle, &pem);
            }
        }
    }
    let bundle = bundle.concat();
    Ok((!bundle.is_empty()).then(|| STANDARD.encode(bundle)))
}

/// Adds the certificates of a bundle that are not there yet.
fn add_certificates(bundle: &mut Vec<String>, pem: &[u8]) {
    let text = String::from_utf8_lossy(pem);
    for block in text.split_inclusive(CERTIFICATE_END) {
        let block = block.trim();
        let line = format!("{block}\n");
        if block.ends_with(CERTIFICATE_END) && !bundle.contains(&line) {
            bundle.push(line);
        }
    }
}

fn refuse_override(error: &ignition::Error) -> Error {
    Error::invalid(
        "ignition_config_overrides",
        format!("of the host cannot be used: {error}"),
    )
}

/// The ignition config of a day-2 host: a pointer to its cluster's endpoint, the host's name, and its override.
///
/// Errors: Invalid – the cluster has no API address, or the override cannot be merged.
pub fn pointer(
    cluster: &Cluster,
    host: &HostState,
    access: &IgnitionAccess,
) -> Result<IgnitionConfig, Error> {
    let is_secure = access.certificates.is_some();
    let url = ignition_endpoint::url(cluster, &host.record, is_secure).ok_or_else(|| {
        Error::invalid(
            "api_vip_dns_name",
            format!(
                "of cluster {} is not set: the host could not find it",
                cluster.id
            ),
        )
    })?;
    let mut config = IgnitionConfig::new(SpecVersion::V3_2);
    config.ignition.config.merge.push(Resource {
        source: Some(url),
        http_headers: access.request_headers().map(header).collect(),
        ..Resource::default()
    });
    if let Some(bundle) = &access.certificates {
        let authority = Resource {
            source: Some(format!("data:text/plain;base64,{bundle}")),
            ..Resource::default()
        };
        let tls = &mut config.ignition.security.tls;
        tls.certificate_authorities.push(authority);
    }
    let overrides = host.record.ignition_config_overrides.trim();
    if !overrides.is_empty() {
        let user =
            IgnitionConfig::parse(overrides.as_bytes()).map_err(|error| refuse_override(&error))?;
        config = ignition::merge(&config, &user).map_err(|error| refuse_override(&error))?;
    }
    config.put_file(IgnitionFile::text("/etc/hostname", READABLE, &host.name()));
    Ok(config)
}

fn header((name, value): (String, String)) -> HttpHeader {
    HttpHeader {
        name,
        value: Some(value),
    }
}

#[cfg(test)]
mod tests {
    use model::cluster::IgnitionEndpoint;
    use serde_json::{Value, json};

    use super::*;

    fn pem(body: &str) -> String {
        format!("-----BEGIN CERTIFICATE-----\n{body}\n{CERTIFICATE_END}")
    }

    fn cluster() -> Cluster {
        Cluster {
            api_vip_dns_name: Some("api.demo.example.com".to_owned()),
            ..Cluster::default()
        }
    }

    fn host() -> HostState {
        HostState::new(Host {
            requested_hostname: "worker-7".to_owned(),
            ..Host::default()
        })
    }

    fn json_of(cluster: &Cluster, host: &HostState, access: &IgnitionAccess) -> Value {
        let config = pointer(cluster, host, access).unwrap();
        serde_json::from_slice(&config.to_json()).unwrap()
    }

    #[test]
    fn the_config_points_to_the_cluster() {
        let plain = json_of(&cluster(), &host(), &IgnitionAccess::default());
        let ignition = &plain["ignition"];
        assert_eq!(ignition["version"], "3.2.0");
        assert_eq!(
            ignition["config"]["merge"],
            json!([{ "source": "http://api.demo.example.com:22624/config/worker" }])
        );
        assert!(ignition.get("security").is_none(), "{ignition}");
        assert_eq!(plain["storage"]["files"][0]["path"], "/etc/hostname");
        let contents = plain["storage"]["files"][0]["contents"]["source"].as_str();
        assert_eq!(contents, Some("data:,worker-7"));
        assert!(pointer(&Cluster::default(), &host(), &IgnitionAccess::default()).is_err());
    }

    #[test]
    fn token_and_certificates_are_added() {
        let mut cluster = cluster();
        let known = STANDARD.encode(pem("one"));
        cluster.ignition_endpoint = Some(IgnitionEndpoint {
            url: None,
            ca_certificate: Some(known),
        });
        let mut host = host();
        let bundle = STANDARD.encode(format!("{}\n{}\n", pem("one"), pem("two")));
        let overrides = json!({ "ignition": { "version": "3.1.0", "security": { "tls": { "certificateAuthorities": [
            { "source": format!("data:text/plain;base64,{bundle}") }] } } } });
        host.record.ignition_config_overrides = overrides.to_string();
        let certificates = certificates(&cluster, &host.record).unwrap();
        let decoded = STANDARD.decode(certificates.as_ref().unwrap()).unwrap();
        let both = format!("{}\n{}\n", pem("one"), pem("two"));
        assert_eq!(String::from_utf8(decoded).unwrap(), both, "each once");
        let access = IgnitionAccess {
            token: Some("secret".to_owned()),
            headers: Vec::new(),
            certificates,
        };
        let made = json_of(&cluster, &host, &access);
        let merge = &made["ignition"]["config"]["merge"][0];
        assert_eq!(
            merge["source"],
            "https://api-int.demo.example.com:22623/config/worker"
        );
        assert_eq!(
            merge["httpHeaders"],
            json!([{ "name": "Authorization", "value": "Bearer secret" }])
        );
        let authorities = &made["ignition"]["security"]["tls"]["certificateAuthorities"];
        assert!(authorities.as_array().is_some_and(|list| !list.is_empty()));
    }
}
