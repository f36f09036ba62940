//! Time servers.

use std::net::IpAddr;

use model::Error;

use super::refusal::refuse;

/// Checks `additional_ntp_source(s)`, a comma list; empty is allowed.
/// Source: assisted-service, pkg/validations/validations.go, ValidateAdditionalNTPSource.
pub fn additional_ntp_source(field: &str, list: &str) -> Result<(), Error> {
    servers(field, list)
}

/// Checks `ntp_sources`, the form that replaces the default servers and excludes the additional ones.
/// Source: assisted-service, pkg/validations/validations.go, ValidateNTPSource.
pub fn ntp_sources(sources: &str, additional_field: &str, additional: &str) -> Result<(), Error> {
    servers("ntp_sources", sources)?;
    if !sources.is_empty() && !additional.is_empty() {
        return Err(refuse(
            "ntp_sources",
            sources,
            &format!(
                "cannot be combined with {additional_field} \"{additional}\": leave one of them empty"
            ),
        ));
    }
    Ok(())
}

fn servers(field: &str, list: &str) -> Result<(), Error> {
    if list.is_empty() {
        return Ok(());
    }
    for server in list.split(',') {
        if server.parse::<IpAddr>().is_err() && !is_server_name(server) {
            return Err(refuse(
                field,
                server,
                "is not a time server: give addresses or lower-case host names, separated by commas without blanks",
            ));
        }
    }
    Ok(())
}

fn is_server_name(name: &str) -> bool {
    let is_edge = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let bytes = name.as_bytes();
    (2..=63).contains(&bytes.len())
        && bytes
            .iter()
            .all(|byte| is_edge(*byte) || matches!(byte, b'-' | b'.'))
        && bytes.first().is_some_and(|byte| is_edge(*byte))
        && bytes.last().is_some_and(|byte| is_edge(*byte))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_of_servers() {
        for good in ["", "10.0.0.1", "ntp.example.com", "a1,fd00::1,10.0.0.1"] {
            assert!(
                additional_ntp_source("additional_ntp_source", good).is_ok(),
                "{good}"
            );
        }
        for bad in [
            "a",
            "NTP.example.com",
            "a1, b1",
            "a1,",
            ",",
            "-a1",
            "a1-",
            "a_b",
        ] {
            let error = additional_ntp_source("additional_ntp_source", bad).unwrap_err();
            assert!(
                error.to_string().starts_with("additional_ntp_source"),
                "{error}"
            );
        }
    }

    #[test]
    fn the_two_forms_exclude_each_other() {
        assert!(ntp_sources("a1", "additional_ntp_source", "").is_ok());
        assert!(ntp_sources("", "additional_ntp_source", "a1").is_ok());
        assert!(ntp_sources("a1", "additional_ntp_source", "b1").is_err());
    }
}
