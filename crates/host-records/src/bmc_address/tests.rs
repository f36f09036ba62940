use proptest::prelude::*;

use super::*;

const VERDICTS: &str = include_str!("../../fixtures/bmc-addresses.tsv");

fn of(text: &str) -> BmcAddress {
    text.parse()
        .unwrap_or_else(|error| panic!("{text}: {error}"))
}

/// Scheme, origin and system as the operator names them.
fn shown(address: &BmcAddress) -> [String; 3] {
    let mut scheme = address.scheme().name.to_owned();
    if let Some(transport) = address.named_transport() {
        scheme = format!("{scheme}+{}", transport.name());
    }
    let origin = address
        .redfish_origin()
        .unwrap_or_else(|_| format!("{}:{}", address.host(), address.port()));
    let system = match address.scheme().family {
        BmcFamily::Redfish => address.system_path().unwrap_or_default(),
        BmcFamily::Ipmi => "",
    };
    [scheme, origin, system.to_owned()]
}

#[test]
fn verdicts_are_those_of_the_operator() {
    let mut counts = [0; 3];
    for line in VERDICTS.lines().filter(|line| !line.starts_with('#')) {
        let columns: Vec<&str> = line.split('\t').collect();
        match columns[..] {
            [address, "refused"] => {
                counts[0] += 1;
                assert!(address.parse::<BmcAddress>().is_err(), "{address}");
            }
            [address, .., "refused here"] => {
                counts[1] += 1;
                assert!(address.parse::<BmcAddress>().is_err(), "{address}");
            }
            [address, scheme, origin, system] => {
                counts[2] += 1;
                let expected = [
                    scheme.to_owned(),
                    origin.to_lowercase(),
                    system.trim_end_matches('/').to_owned(),
                ];
                assert_eq!(shown(&of(address)), expected, "{address}");
            }
            _ => panic!("{line:?}"),
        }
    }
    assert!(counts.iter().all(|count| *count >= 10), "{counts:?}");
}

#[test]
fn each_mistake_has_its_reason() {
    use BmcAddressError::*;
    for (text, expected) in [
        ("", Empty),
        (" redfish://10.0.0.1", Blank),
        ("redfish://10.0.0.1\n", Blank),
        ("redfish://root:x@10.0.0.1/", Credentials),
        ("root:x@10.0.0.1", Credentials),
        ("https://10.0.0.1/", WebScheme),
        (
            "redfish-virtual-media://10.0.0.1",
            UnknownScheme(Some("redfish-virtualmedia")),
        ),
        ("foo://10.0.0.1", UnknownScheme(None)),
        ("irmc://10.0.0.1", RemovedScheme("redfish-virtualmedia")),
        ("ipmi+http://10.0.0.1", Transport),
        ("redfish+ftp://10.0.0.1", Transport),
        ("bmc.example.com:623", NoScheme),
        ("[fd00::1]", NoScheme),
        ("redfish-virtualmedia//10.0.0.1/", NoSeparator),
        ("redfish+http//10.0.0.1/", NoSeparator),
        ("redfish:///redfish/v1/Systems/1", NoHost),
        ("redfish://bmc_1/", Host),
        ("redfish://10.0.0.256/", Host),
        ("redfish://[10.0.0.1]/", Host),
        ("redfish://[fd00::1/", Host),
        ("redfish://fd00::1/", Brackets),
        ("redfish://10.0.0.1:0/", Port),
        ("redfish://10.0.0.1:65536/", Port),
        ("redfish://10.0.0.1:/", Port),
        ("redfish://10.0.0.1:+5/", Port),
        ("redfish://10.0.0.1/#1", Fragment),
        ("redfish://10.0.0.1/%2", Escape),
    ] {
        let found = text.parse::<BmcAddress>();
        assert_eq!(found, Err(expected.clone()), "{text}");
        assert!(!expected.remedy().is_empty());
    }
}

#[test]
fn length_is_bounded() {
    let address = |length: usize| format!("ipmi://10.0.0.1/{}", "x".repeat(length - 16));
    assert!(address(MAX_LENGTH).parse::<BmcAddress>().is_ok());
    let longer = address(MAX_LENGTH + 1).parse::<BmcAddress>();
    assert_eq!(longer, Err(BmcAddressError::TooLong));
}

#[test]
fn ports_have_defaults() {
    for (text, port) in [
        ("redfish://10.0.0.1", 443),
        ("redfish+https://10.0.0.1", 443),
        ("redfish+http://10.0.0.1", 80),
        ("redfish+http://10.0.0.1:8000", 8000),
        ("ipmi://10.0.0.1", 623),
        ("10.0.0.1:6230", 6230),
    ] {
        assert_eq!(of(text).port(), port, "{text}");
    }
}

#[test]
fn systems() {
    for (path, system, id) in [
        ("", None, Ok(None)),
        ("/", None, Ok(None)),
        ("/redfish/v1/", None, Ok(None)),
        (
            "/redfish/v1/Systems/1",
            Some("/redfish/v1/Systems/1"),
            Ok(Some("1")),
        ),
        (
            "/redfish/v1/Systems/1/",
            Some("/redfish/v1/Systems/1"),
            Ok(Some("1")),
        ),
        (
            "/redfish/v1/Systems",
            Some("/redfish/v1/Systems"),
            Err(SystemPathError::Collection),
        ),
    ] {
        let address = of(&format!("redfish://10.0.0.1{path}"));
        assert_eq!(
            (address.system_path(), address.system_id()),
            (system, id),
            "{path}"
        );
    }
}

#[test]
fn only_redfish_is_driven() {
    for scheme in SCHEMES {
        let address = of(&format!("{}://10.0.0.1", scheme.name));
        let origin = address.redfish_origin();
        match scheme.family {
            BmcFamily::Redfish => assert_eq!(origin.as_deref(), Ok("https://10.0.0.1")),
            BmcFamily::Ipmi => {
                let refusal = origin.unwrap_err().to_string();
                assert!(
                    refusal.contains(scheme.name) && refusal.contains("redfish"),
                    "{refusal}"
                );
            }
        }
    }
    assert_eq!(
        of("idrac-redfish+http://[FD00::1]:8080/x")
            .redfish_origin()
            .as_deref(),
        Ok("http://[fd00::1]:8080")
    );
}

#[test]
fn same_systems() {
    let first = of("idrac-virtualmedia://bmc-1/redfish/v1/Systems/System.Embedded.1");
    for (other, is_same) in [
        (
            "idrac-redfish://BMC-1:443/redfish/v1/Systems/System.Embedded.1/",
            true,
        ),
        (
            "redfish://bmc-2/redfish/v1/Systems/System.Embedded.1",
            false,
        ),
        ("redfish://bmc-1/redfish/v1/Systems/2", false),
        (
            "redfish://bmc-1:8443/redfish/v1/Systems/System.Embedded.1",
            false,
        ),
        ("ipmi://bmc-1:443", false),
    ] {
        assert_eq!(first.is_same_system(&of(other)), is_same, "{other}");
    }
    assert!(of("10.0.0.1").is_same_system(&of("ipmi://10.0.0.1:623/x")));
    assert!(of("redfish://[fd00::1]").is_same_system(&of("redfish://[fd00:0::1]/")));
}

fn any_address() -> impl Strategy<Value = String> {
    let scheme = prop::sample::select(SCHEMES.iter().collect::<Vec<_>>());
    let host = prop::sample::select(vec!["10.0.0.1", "bmc-1.example.com", "[fd00::1]", "b"]);
    let port = prop::option::of(1..=u16::MAX);
    let path = prop::sample::select(vec!["", "/", "/redfish/v1/Systems/1", "/x%20?a=b"]);
    (scheme, any::<bool>(), host, port, path).prop_map(|(scheme, http, host, port, path)| {
        let transport = if http && scheme.family == BmcFamily::Redfish {
            "+http"
        } else {
            ""
        };
        let port = port.map(|port| format!(":{port}")).unwrap_or_default();
        format!("{}{transport}://{host}{port}{path}", scheme.name)
    })
}

proptest! {
    #[test]
    fn printed_addresses_are_read_again(text in any_address()) {
        let address = of(&text);
        prop_assert_eq!(address.to_string(), text);
    }

    #[test]
    fn any_text_is_read_or_refused(
        text in "\\PC{0,40}|(redfish|ipmi|\\+http|:|//|/|@|\\[|\\]|%|#|\\?|[0-9a-f.:-]{1,5}){0,12}"
    ) {
        if let Ok(address) = text.parse::<BmcAddress>() {
            let printed = address.to_string();
            prop_assert_eq!(printed.parse(), Ok(address), "{}", text);
        }
    }

    #[test]
    fn errors_do_not_repeat_the_address(secret in "[a-z]{12}") {
        let error = format!("redfish://root:{secret}@10.0.0.1/").parse::<BmcAddress>().unwrap_err();
        let shown = format!("{error}{error:?}{}", error.remedy());
        prop_assert!(!shown.contains(&secret));
    }
}
