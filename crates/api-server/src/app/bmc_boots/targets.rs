//! BMCs of a request: bounds, addresses, duplicates.

use std::collections::HashMap;

use host_records::{BmcAddress, BmcAddressError, MAX_CREDENTIAL, SUBDOMAIN};
use model::Error;
use model::bmc_boot::BmcBootTarget;
use redfish::{BmcAccess, BmcCredentials, BmcTarget, FirmwareMode, RedfishEndpoint};
use secrecy::ExposeSecret as _;

/// BMCs of one request.
pub(crate) const MAX_BMCS: usize = 1000;
/// Longest address of a BMC. Units: bytes.
pub(crate) const ADDRESS_BYTES: usize = 1024;
/// Longest name of a host. Units: bytes.
pub(crate) const NAME_BYTES: usize = SUBDOMAIN.longest;
/// Longest user name or password. Units: bytes.
pub(crate) const CREDENTIAL_BYTES: usize = MAX_CREDENTIAL;

/// A BMC that can be driven.
#[derive(Debug)]
pub(super) struct CheckedBmc {
    pub(super) target: BmcTarget,
    /// Its address, as it was given.
    pub(super) address: String,
    /// Host, port and system: equal for all spellings of an address.
    pub(super) system: String,
}

/// Checks the BMCs of a request.
///
/// Errors: Invalid – none or too many, a malformed entry, a name or an address twice.
pub(super) fn check(bmcs: Vec<BmcBootTarget>) -> Result<Vec<CheckedBmc>, Error> {
    if bmcs.is_empty() {
        return Err(Error::invalid("bmcs", "is empty: name at least one BMC"));
    }
    if bmcs.len() > MAX_BMCS {
        let reason = format!(
            "has {} entries, at most {MAX_BMCS} are possible",
            bmcs.len()
        );
        return Err(Error::invalid("bmcs", reason));
    }
    let mut seen = HashMap::new();
    let mut checked = Vec::with_capacity(bmcs.len());
    for (at, bmc) in bmcs.into_iter().enumerate() {
        let bmc = check_one(&format!("bmcs[{at}]"), bmc)?;
        for (field, value) in [("name", &bmc.target.name), ("address", &bmc.system)] {
            if let Some(other) = seen.insert((field, value.clone()), at) {
                let reason = format!("is that of bmcs[{other}], too: each host has its own");
                return Err(Error::invalid(format!("bmcs[{at}].{field}"), reason));
            }
        }
        checked.push(bmc);
    }
    Ok(checked)
}

fn check_one(place: &str, bmc: BmcBootTarget) -> Result<CheckedBmc, Error> {
    let wrong = |field: &str| {
        let field = format!("{place}.{field}");
        move |reason: String| Error::invalid(field, reason)
    };
    SUBDOMAIN.check(&bmc.name).map_err(wrong("name"))?;
    let (endpoint, system) = parse_address(&bmc.address).map_err(wrong("address"))?;
    check_credential(&bmc.username).map_err(wrong("username"))?;
    check_credential(bmc.password.expose_secret()).map_err(wrong("password"))?;
    let access = BmcAccess {
        endpoint,
        credentials: BmcCredentials {
            user: bmc.username,
            password: bmc.password,
        },
        verifies_certificate: !bmc.disable_certificate_verification,
        mode: FirmwareMode::default(),
    };
    let name = bmc.name;
    Ok(CheckedBmc {
        target: BmcTarget { name, access },
        address: bmc.address,
        system,
    })
}

/// The endpoint of an address, and its host, port and system. Errors do not repeat the address.
fn parse_address(text: &str) -> Result<(RedfishEndpoint, String), String> {
    if text.len() > ADDRESS_BYTES {
        let length = text.len();
        return Err(format!(
            "has {length} bytes, at most {ADDRESS_BYTES} are possible"
        ));
    }
    let address = match text.split_once("://") {
        Some((scheme @ ("http" | "https"), rest)) => format!("redfish+{scheme}://{rest}").parse(),
        _ => text.parse(),
    };
    let address: BmcAddress = address.map_err(|error| match error {
        BmcAddressError::Credentials => format!("{error}: write them into username and password"),
        error => format!("{error}: {}", error.remedy()),
    })?;
    if address.query().is_some() {
        return Err("has a query: remove it from the ? on".to_owned());
    }
    let origin = address
        .redfish_origin()
        .map_err(|error| error.to_string())?;
    let system = address.system_id();
    system.map_err(|error| format!("{error}: {}", error.remedy("<id>")))?;
    let endpoint = RedfishEndpoint::new(&origin, address.system_path());
    let endpoint = endpoint.map_err(|error| error.to_string())?;
    let ip = address.ip().map(|ip| ip.to_string());
    let host = ip.unwrap_or_else(|| address.host().to_owned());
    let path = address.system_path().unwrap_or_default();
    Ok((endpoint, format!("{host}:{}{path}", address.port())))
}

fn check_credential(text: &str) -> Result<(), String> {
    if text.is_empty() {
        return Err("is empty: set it".to_owned());
    }
    if text.len() > CREDENTIAL_BYTES {
        let length = text.len();
        return Err(format!(
            "has {length} bytes, at most {CREDENTIAL_BYTES} are possible"
        ));
    }
    // A line end of a file is the usual reason of refused logins.
    if text.chars().any(char::is_control) {
        return Err("has a line end or another control character: remove it".to_owned());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bmc(name: &str, address: &str) -> BmcBootTarget {
        BmcBootTarget {
            name: name.to_owned(),
            address: address.to_owned(),
            username: "root".to_owned(),
            password: "s3cret-s3cret".into(),
            disable_certificate_verification: false,
        }
    }

    fn refusal(bmcs: Vec<BmcBootTarget>) -> String {
        let text = check(bmcs).unwrap_err().to_string();
        assert!(!text.contains("s3cret"), "{text}");
        text
    }

    #[test]
    fn addresses_of_redfish_are_accepted() {
        for (address, system) in [
            ("redfish://10.0.0.1", "10.0.0.1:443"),
            (
                "redfish-virtualmedia://BMC.example/redfish/v1/Systems/1/",
                "bmc.example:443/redfish/v1/Systems/1",
            ),
            (
                "idrac-virtualmedia+https://[fd00::0001]/redfish/v1/Systems/System.Embedded.1",
                "fd00::1:443/redfish/v1/Systems/System.Embedded.1",
            ),
            ("https://10.0.0.1", "10.0.0.1:443"),
            ("http://10.0.0.1:8000/redfish/v1", "10.0.0.1:8000"),
        ] {
            let checked = check(vec![bmc("cp-0", address)]).unwrap().remove(0);
            assert_eq!(checked.system, system, "{address}");
            assert_eq!(checked.address, address);
            assert!(checked.target.access.verifies_certificate);
        }
    }

    #[test]
    fn other_addresses_are_refused_with_a_remedy() {
        for (address, part) in [
            ("", "is empty"),
            ("10.0.0.1", "IPMI"),
            ("ipmi://10.0.0.1", "IPMI"),
            ("redfish://root:s3cret@10.0.0.1", "username and password"),
            ("https://root:s3cret@10.0.0.1", "username and password"),
            ("https://10.0.0.1?token=s3cret", "has a query"),
            ("https://10.0.0.1/api", "/redfish/v1/Systems/<id>"),
            (
                "https://10.0.0.1/redfish/v1/../../api",
                "/redfish/v1/Systems/<id>",
            ),
            (
                "redfish-virtualmedia://10.0.0.1/redfish/v1/Managers/1/VirtualMedia/Cd",
                "has the path of managers, not of a system: write /redfish/v1/Systems/<id>",
            ),
            (
                "https://10.0.0.1/redfish/v1/Chassis/1",
                "has the path of chassis",
            ),
            (
                "https://10.0.0.1/redfish/v1/Systems",
                "all systems, not of one",
            ),
            ("file:///etc/passwd", "scheme"),
            ("gopher://10.0.0.1", "scheme"),
        ] {
            let text = refusal(vec![bmc("cp-0", address)]);
            assert!(text.contains("bmcs[0].address"), "{text}");
            assert!(text.contains(part), "{address}: {text}");
        }
    }

    #[test]
    fn a_host_is_listed_once() {
        let text = refusal(vec![
            bmc("a", "redfish://10.0.0.1"),
            bmc("a", "redfish://10.0.0.2"),
        ]);
        assert!(text.contains("bmcs[1].name: is that of bmcs[0]"), "{text}");
        let text = refusal(vec![
            bmc("a", "redfish://[fd00::1]"),
            bmc("b", "https://[fd00:0::1]:443/redfish/v1/"),
        ]);
        assert!(
            text.contains("bmcs[1].address: is that of bmcs[0]"),
            "{text}"
        );
    }

    // limit: BMCs of a request
    // limit: address of a BMC
    // limit: name of a host with a BMC
    // limit: user name or password of a BMC
    #[test]
    fn bounds() {
        let many = |count: usize| -> Vec<_> {
            let of = |at| bmc(&format!("h{at}"), &format!("redfish://bmc-{at}"));
            (0..count).map(of).collect()
        };
        assert_eq!(check(many(MAX_BMCS)).unwrap().len(), MAX_BMCS);
        assert!(refusal(many(MAX_BMCS + 1)).contains("at most 1000"));
        assert!(refusal(Vec::new()).contains("is empty"));

        let address = |length: usize| {
            let start = "https://bmc/redfish/v1/Systems/";
            format!("{start}{}", "1".repeat(length - start.len()))
        };
        assert!(check(vec![bmc("a", &address(ADDRESS_BYTES))]).is_ok());
        assert!(refusal(vec![bmc("a", &address(ADDRESS_BYTES + 1))]).contains("at most 1024"));

        let name = |length: usize| vec![bmc(&"a".repeat(length), "https://bmc")];
        let dotted = format!("{}.{}", "a".repeat(63), "b.".repeat(94) + "c");
        assert_eq!(dotted.len(), NAME_BYTES);
        assert!(check(vec![bmc(&dotted, "https://bmc")]).is_ok());
        assert!(refusal(name(NAME_BYTES + 1)).contains("more than 253"));

        let with = |username: &str, password: &str| {
            let mut bmc = bmc("a", "https://bmc");
            bmc.username = username.to_owned();
            bmc.password = password.into();
            vec![bmc]
        };
        let (longest, longer) = (
            "s".repeat(CREDENTIAL_BYTES),
            "s".repeat(CREDENTIAL_BYTES + 1),
        );
        assert!(check(with(&longest, &longest)).is_ok());
        for (wrong, part) in [
            (with(&longer, "s3cret"), "username: has 4097 bytes"),
            (with("root", &longer), "password: has 4097 bytes"),
            (with("", "s3cret"), "username: is empty"),
            (with("root", ""), "password: is empty"),
            (with("root\n", "s3cret"), "username: has a line end"),
            (with("root", "s3cret\n"), "password: has a line end"),
        ] {
            let text = refusal(wrong);
            assert!(text.contains(part), "{text}");
        }
    }
}
