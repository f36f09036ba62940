//! Addresses of images that hosts boot from: a BMC, or the firmware of a host, loads them itself. Pure.
//!
//! Source: DSP0268 VirtualMedia (TransferProtocolType), ComputerSystem (HttpBootUri); python-ilorest-library, issue 7 (an
//! image on the own machine that is accepted and never inserted).

use std::net::IpAddr;

use url::{Host, Url};

/// A protocol by which BMCs load images.
struct ImageProtocol {
    /// Schemes of addresses.
    schemes: &'static [&'static str],
    /// Its name in `TransferProtocolType`.
    name: &'static str,
    /// Whether it is tried on BMCs that do not name their protocols.
    is_usual: bool,
}

const fn usual(schemes: &'static [&'static str], name: &'static str) -> ImageProtocol {
    ImageProtocol {
        schemes,
        name,
        is_usual: true,
    }
}

const fn named(schemes: &'static [&'static str], name: &'static str) -> ImageProtocol {
    ImageProtocol {
        is_usual: false,
        ..usual(schemes, name)
    }
}

static PROTOCOLS: &[ImageProtocol] = &[
    usual(&["http"], "HTTP"),
    usual(&["https"], "HTTPS"),
    usual(&["nfs"], "NFS"),
    usual(&["cifs", "smb"], "CIFS"),
    named(&["ftp"], "FTP"),
    named(&["sftp"], "SFTP"),
    named(&["scp"], "SCP"),
    named(&["tftp"], "TFTP"),
];

/// The loader of an image.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ImageLoader {
    /// The BMC, for its virtual CD.
    Bmc,
    /// The firmware of the host, by UEFI HTTP boot.
    Firmware,
}

impl ImageLoader {
    /// Words for messages, and the schemes that are possible.
    const fn words(self) -> (&'static str, &'static str) {
        match self {
            Self::Bmc => ("the BMC", "http, https, nfs or cifs"),
            Self::Firmware => ("the host's firmware", "http or https"),
        }
    }

    fn loads(self, scheme: &str) -> bool {
        match self {
            Self::Bmc => protocol(scheme).is_some(),
            Self::Firmware => matches!(scheme, "http" | "https"),
        }
    }
}

/// The reason why a host cannot boot from an address. No text repeats the address, which may hold a token.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BootUrlError {
    /// A file of this machine.
    #[error(
        "is a file of this machine, and {loader} loads the image itself: offer the file by a web server, and give its \
         address, as http://192.0.2.1:8080/full.iso"
    )]
    LocalFile {
        /// The loader.
        loader: &'static str,
    },
    /// No URL.
    #[error("is no address ({problem}): write it as http://192.0.2.1:8080/full.iso")]
    Unreadable {
        /// The problem.
        problem: url::ParseError,
    },
    /// Another scheme.
    #[error(
        "has the scheme {scheme}, and {loader} loads images by {possible}: offer the image there"
    )]
    Scheme {
        /// The scheme.
        scheme: String,
        /// The loader.
        loader: &'static str,
        /// Possible schemes.
        possible: &'static str,
    },
    /// No host.
    #[error("names no host: write it as http://192.0.2.1:8080/full.iso")]
    NoHost,
    /// A host or port of no server.
    #[error(
        "has the {part} {value}, which no server has: write it as http://192.0.2.1:8080/full.iso"
    )]
    NoServer {
        /// Host or port.
        part: &'static str,
        /// As the address has it.
        value: String,
    },
    /// No file.
    #[error("names no file: add the path of the image, as http://192.0.2.1:8080/full.iso")]
    NoFile,
}

/// Reads the address of an image, as a person writes it.
///
/// Errors: the loader cannot load it.
pub fn boot_url(text: &str, loader: ImageLoader) -> Result<Url, BootUrlError> {
    let url = match Url::parse(text) {
        // A drive letter of Windows is a scheme to the parser.
        Ok(url) if url.scheme().len() > 1 => url,
        Err(problem) if problem != url::ParseError::RelativeUrlWithoutBase => {
            let is_hostless = problem == url::ParseError::EmptyHost;
            return Err(if is_hostless {
                BootUrlError::NoHost
            } else {
                BootUrlError::Unreadable { problem }
            });
        }
        Ok(_) | Err(_) => {
            let (loader, _) = loader.words();
            return Err(BootUrlError::LocalFile { loader });
        }
    };
    check_boot_url(&url, loader)?;
    Ok(url)
}

/// Checks that an image can be loaded from an address at all.
///
/// Errors: as [`boot_url`].
pub fn check_boot_url(url: &Url, loader: ImageLoader) -> Result<(), BootUrlError> {
    let (words, possible) = loader.words();
    if url.scheme() == "file" {
        return Err(BootUrlError::LocalFile { loader: words });
    }
    if !loader.loads(url.scheme()) {
        return Err(BootUrlError::Scheme {
            scheme: url.scheme().to_owned(),
            loader: words,
            possible,
        });
    }
    if url.host_str().unwrap_or_default().is_empty() {
        return Err(BootUrlError::NoHost);
    }
    check_server(url)?;
    // A program may be the page of a web server's root; a disc is a file.
    let is_root = matches!(url.path(), "" | "/") && url.query().is_none();
    if is_root && loader == ImageLoader::Bmc {
        return Err(BootUrlError::NoFile);
    }
    Ok(())
}

/// Errors: a server can have neither the host nor the port.
fn check_server(url: &Url) -> Result<(), BootUrlError> {
    let host = url.host_str().unwrap_or_default();
    let is_for_many = match Host::parse(host) {
        Ok(Host::Ipv4(address)) => address.is_multicast() || address.is_broadcast(),
        Ok(Host::Ipv6(address)) => address.is_multicast(),
        Ok(Host::Domain(_)) | Err(_) => false,
    };
    let (part, value) = if is_for_many {
        ("host", host.to_owned())
    } else if url.port() == Some(0) {
        ("port", "0".to_owned())
    } else {
        return Ok(());
    };
    Err(BootUrlError::NoServer { part, value })
}

/// Warnings of an address that its loader may not reach or take: of its own machine, of one network segment, with
/// credentials. No text repeats these.
pub fn boot_url_warnings(url: &Url, loader: ImageLoader) -> Vec<String> {
    let (words, _) = loader.words();
    let host = url.host_str().unwrap_or_default();
    let place = match Host::parse(host) {
        Ok(Host::Ipv4(address)) => HostPlace::of(address.into()),
        Ok(Host::Ipv6(address)) => HostPlace::of(address.to_canonical()),
        Ok(Host::Domain(name)) if is_own_name(&name) => HostPlace::Own,
        Ok(Host::Domain(_)) | Err(_) => HostPlace::Other,
    };
    let mut warnings = Vec::new();
    match place {
        HostPlace::Other => {}
        HostPlace::Own => warnings.push(format!(
            "the image's address has the host {host}, by which {words} means itself: give an address of this machine \
             that {words} reaches"
        )),
        HostPlace::Segment => warnings.push(format!(
            "the image's address has the link-local host {host}, which {words} reaches in its own network segment at \
             most: give an address that is routed"
        )),
    }
    if !url.username().is_empty() || url.password().is_some() {
        warnings.push(format!(
            "the image's address has a user name or a password, which {words} may not take, and may show to its users: \
             offer the image without"
        ));
    }
    warnings
}

/// Where a host is, seen from another machine.
enum HostPlace {
    /// That machine itself.
    Own,
    /// Its network segment.
    Segment,
    /// Anywhere.
    Other,
}

impl HostPlace {
    fn of(address: IpAddr) -> Self {
        let is_link_local = match address {
            IpAddr::V4(address) => address.is_link_local(),
            IpAddr::V6(address) => address.is_unicast_link_local(),
        };
        if address.is_loopback() || address.is_unspecified() {
            Self::Own
        } else if is_link_local {
            Self::Segment
        } else {
            Self::Other
        }
    }
}

/// Whether each machine has this name for itself. Source: RFC 6761; /etc/hosts of Fedora and Debian.
fn is_own_name(name: &str) -> bool {
    const OWN: &[&str] = &[
        "localhost",
        "localhost4",
        "localhost6",
        "localhost.localdomain",
        "localhost4.localdomain4",
        "localhost6.localdomain6",
        "ip6-localhost",
        "ip6-loopback",
    ];
    let name = name.trim_end_matches('.').to_ascii_lowercase();
    OWN.contains(&name.as_str()) || name.ends_with(".localhost")
}

/// The name of an address's protocol in `TransferProtocolType`.
pub(super) fn protocol_name(url: &Url) -> String {
    match protocol(url.scheme()) {
        Some(protocol) => protocol.name.to_owned(),
        None => url.scheme().to_uppercase(),
    }
}

/// Whether a BMC loads images from an address; `named` are its protocols, if it names them.
pub(super) fn is_loaded(url: &Url, named: &[String]) -> bool {
    match protocol(url.scheme()) {
        None => false,
        Some(protocol) if named.is_empty() => protocol.is_usual,
        Some(protocol) => named
            .iter()
            .any(|it| it.eq_ignore_ascii_case(protocol.name)),
    }
}

fn protocol(scheme: &str) -> Option<&'static ImageProtocol> {
    PROTOCOLS
        .iter()
        .find(|protocol| protocol.schemes.contains(&scheme))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn addresses_that_a_bmc_loads_are_taken() {
        for text in [
            "http://10.0.0.9:8888/images/full.iso?image_token=a",
            "https://web.example/full.iso",
            "HTTP://[fd00::9]/full.iso",
            "nfs://10.0.0.9/export/full.iso",
            "cifs://server/share/full.iso",
            "smb://server/share/full.iso",
            "tftp://10.0.0.9/full.iso",
            "http://10.0.0.9/?file=full.iso",
        ] {
            assert!(boot_url(text, ImageLoader::Bmc).is_ok(), "{text}");
        }
        assert!(boot_url("http://10.0.0.9/", ImageLoader::Firmware).is_ok());
    }

    #[test]
    fn other_addresses_are_refused_with_a_remedy() {
        for (text, expected) in [
            ("file:///x", "is a file of this machine"),
            ("file:///root/full.iso", "offer the file by a web server"),
            ("full.iso", "is a file of this machine"),
            ("/data/full.iso", "is a file of this machine"),
            ("./full.iso", "is a file of this machine"),
            ("C:\\full.iso", "is a file of this machine"),
            ("", "is a file of this machine"),
            ("data:,x", "has the scheme data"),
            ("s3://bucket/full.iso", "has the scheme s3"),
            ("oci://r/full.iso", "http, https, nfs or cifs"),
            ("https://", "names no host"),
            ("nfs:///export/full.iso", "names no host"),
            ("cifs:full.iso", "names no host"),
            ("http://10.0.0.9:99999/full.iso", "invalid port number"),
            ("http://10.0.0.9:0/full.iso", "has the port 0"),
            ("http://224.0.0.1/full.iso", "has the host 224.0.0.1"),
            ("nfs://255.255.255.255/full.iso", "which no server has"),
            ("http://[ff02::1]/full.iso", "which no server has"),
            ("http://10.0.0.9", "names no file"),
            ("https://10.0.0.9/", "names no file"),
        ] {
            let error = boot_url(text, ImageLoader::Bmc).unwrap_err().to_string();
            assert!(error.contains(expected), "{text}: {error}");
        }
        let error = boot_url("nfs://10.0.0.9/boot.efi", ImageLoader::Firmware).unwrap_err();
        assert!(
            error
                .to_string()
                .contains("firmware loads images by http or https"),
            "{error}"
        );
    }

    #[test]
    fn addresses_that_the_loader_may_not_reach_are_warned_of() {
        for (text, expected) in [
            ("http://127.0.0.1:8080/full.iso", "means itself"),
            ("http://127.1/full.iso", "means itself"),
            ("http://0x7f.1/full.iso", "means itself"),
            ("http://2130706433/full.iso", "means itself"),
            ("http://127.255.255.254/full.iso", "means itself"),
            ("http://localhost/full.iso", "means itself"),
            ("http://LOCALHOST./full.iso", "means itself"),
            ("http://localhost.localdomain/full.iso", "means itself"),
            ("http://localhost6/full.iso", "means itself"),
            ("http://ip6-localhost/full.iso", "means itself"),
            ("http://a.localhost/full.iso", "means itself"),
            ("http://[::1]/full.iso", "means itself"),
            ("http://[::]/full.iso", "means itself"),
            ("http://[::ffff:127.0.0.1]/full.iso", "means itself"),
            ("http://0.0.0.0/full.iso", "means itself"),
            ("http://0/full.iso", "means itself"),
            ("nfs://127.0.0.1/full.iso", "means itself"),
            ("nfs://127.1/full.iso", "means itself"),
            ("cifs://LocalHost/share/full.iso", "means itself"),
            ("http://169.254.3.4/full.iso", "network segment"),
            ("http://[fe80::1]/full.iso", "network segment"),
            (
                "https://root:s3cret@10.0.0.9/full.iso",
                "a user name or a password",
            ),
            (
                "smb://root@server/share/full.iso",
                "a user name or a password",
            ),
            ("http://10.0.0.9/full.iso", ""),
            ("http://[fd00::9]/full.iso", ""),
            ("http://localhost.example/full.iso", ""),
            ("nfs://server/full.iso", ""),
        ] {
            let url = Url::parse(text).unwrap();
            let warnings = boot_url_warnings(&url, ImageLoader::Bmc);
            let said = warnings.join("; ");
            assert_eq!(
                warnings.len(),
                usize::from(!expected.is_empty()),
                "{text}: {said}"
            );
            assert!(
                said.contains(expected) && !said.contains("s3cret"),
                "{text}: {said}"
            );
        }
        let both = Url::parse("http://a:b@127.0.0.1/full.iso").unwrap();
        assert_eq!(boot_url_warnings(&both, ImageLoader::Firmware).len(), 2);
    }

    #[test]
    fn protocols_follow_those_that_the_bmc_names() {
        let of = |text: &str, named: &[&str]| {
            let named: Vec<String> = named.iter().map(|it| (*it).to_owned()).collect();
            is_loaded(&Url::parse(text).unwrap(), &named)
        };
        for (text, named, expected) in [
            ("http://a/b", &[][..], true),
            ("smb://a/b", &[], true),
            ("tftp://a/b", &[], false),
            ("tftp://a/b", &["TFTP"], true),
            ("http://a/b", &["CIFS", "NFS"], false),
            ("smb://a/b", &["CIFS", "NFS"], true),
            ("https://a/b", &["http", "https"], true),
            ("file:///b", &["OEM"], false),
        ] {
            assert_eq!(of(text, named), expected, "{text} {named:?}");
        }
    }

    proptest! {
        #[test]
        fn any_text_is_an_address_or_refused(text in "\\PC{0,40}|[a-z]{1,6}:/{0,3}[a-z.:0-9\\[\\]]{0,12}/?[a-z.?]{0,8}") {
            for loader in [ImageLoader::Bmc, ImageLoader::Firmware] {
                if let Ok(url) = boot_url(&text, loader) {
                    prop_assert!(url.host_str().is_some_and(|host| !host.is_empty()));
                }
            }
        }
    }
}
