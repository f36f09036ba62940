//! Endpoint of a BMC: its origin, and the path of the system.

use std::fmt;

use net::web::shown;
use url::Url;

use super::error::BmcError;
use super::link::RedfishPath;
use crate::system_path::system_id;

/// Path of every Redfish service.
pub(super) const SERVICE_ROOT: &str = "/redfish/v1/";

/// The system of a BMC.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RedfishEndpoint {
    origin: Url,
    system: Option<RedfishPath>,
}

impl RedfishEndpoint {
    /// The system at `path` of a BMC at `origin`, as `https://10.0.0.1`; without a path, its only system.
    ///
    /// Errors: Address – another scheme, a login, or a path that is no system's.
    pub fn new(origin: &str, path: Option<&str>) -> Result<Self, BmcError> {
        // The text itself may hold a password.
        let address = Url::parse(origin).map_err(|e| BmcError::Address {
            address: "of the BMC".to_owned(),
            reason: format!("expected https://host[:port], and {e}"),
        })?;
        let wrong = |reason: &str| BmcError::Address {
            address: shown(&address),
            reason: reason.to_owned(),
        };
        if !matches!(address.scheme(), "http" | "https") || !address.has_host() {
            return Err(wrong("expected https://host[:port]"));
        }
        if !address.username().is_empty() || address.password().is_some() {
            return Err(wrong("credentials belong into the host's secret"));
        }
        if address.path() != "/" || address.query().is_some() || address.fragment().is_some() {
            return Err(wrong("expected no path behind host and port"));
        }
        let system = path.map(|path| {
            // Compared after parsing: "/redfish/v1/../x" is "/x".
            let outside = || wrong("expected the path /redfish/v1/Systems/<id>");
            let path = RedfishPath::parse(path, &address).map_err(|_| outside())?;
            match system_id(path.as_str()) {
                Ok(Some(_)) => Ok(path),
                Ok(None) => Err(outside()),
                Err(error) => Err(wrong(&format!("{error}: {}", error.remedy("<id>")))),
            }
        });
        Ok(Self {
            system: system.transpose()?,
            origin: address,
        })
    }

    /// Scheme, host and port.
    pub fn origin(&self) -> &Url {
        &self.origin
    }

    pub(super) fn system(&self) -> Option<&RedfishPath> {
        self.system.as_ref()
    }
}

impl fmt::Display for RedfishEndpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let path = self.system.as_ref().map_or("", RedfishPath::as_str);
        write!(f, "{}{path}", self.origin.as_str().trim_end_matches('/'))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn systems_of_bmcs_are_parsed() {
        for (origin, path, shown) in [
            ("https://10.0.0.1", None, "https://10.0.0.1"),
            (
                "http://bmc.example:8000",
                Some("/redfish/v1/Systems/1"),
                "http://bmc.example:8000/redfish/v1/Systems/1",
            ),
            (
                "https://[fd00::1]:8443/",
                Some("/redfish/v1/Systems/System.Embedded.1"),
                "https://[fd00::1]:8443/redfish/v1/Systems/System.Embedded.1",
            ),
        ] {
            let endpoint = RedfishEndpoint::new(origin, path).unwrap();
            assert_eq!(endpoint.to_string(), shown);
        }
    }

    #[test]
    fn other_addresses_are_refused_without_their_credentials() {
        for (origin, path) in [
            ("10.0.0.1", None),
            ("ftp://10.0.0.1", None),
            ("https://root:secret@10.0.0.1", None),
            ("https://root:secret@", None),
            ("https://10.0.0.1/redfish", None),
            ("https://10.0.0.1?password=secret", None),
            ("https://10.0.0.1", Some("/redfish/v1/")),
            ("https://10.0.0.1", Some("//other.example/redfish/v1/x")),
            ("https://10.0.0.1", Some("/api/Systems/1")),
            ("https://10.0.0.1", Some("/redfish/v1/Managers/1")),
            ("https://10.0.0.1", Some("/redfish/v1/Systems")),
            ("https://10.0.0.1", Some("/redfish/v1/Systems/1/Bios")),
            ("https://10.0.0.1", Some("/redfish/v1/../../api")),
            ("https://10.0.0.1", Some("/redfish/v1/%2e%2E/api")),
        ] {
            let error = RedfishEndpoint::new(origin, path).unwrap_err();
            let text = format!("{error} {error:?}");
            assert!(
                text.contains("expected")
                    || text.contains("secret")
                    || text.contains("write /redfish/v1/Systems/<id>"),
                "{text}"
            );
            assert!(
                !text.contains("root") && !text.contains("=secret"),
                "{text}"
            );
        }
    }
}
