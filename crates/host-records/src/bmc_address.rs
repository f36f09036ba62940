//! Addresses of BMCs: `scheme[+http|+https]://host[:port][/redfish/v1/Systems/<id>]`; without a scheme IPMI.
//!
//! Accepts the addresses that the operator accepts, but for those that cannot work: with user names, fragments, ports
//! that do not exist, or without a host. Source: baremetal-operator, pkg/hardwareutils/bmc/access.go.

use std::fmt;
use std::net::{IpAddr, Ipv6Addr};
use std::str::FromStr;

use super::bmc_scheme::{BmcFamily, BmcScheme, BmcTransport, IPMI_PORT, REMOVED, SCHEMES};
use redfish::{SystemPathError, system_id};

/// Longest address. Units: bytes.
const MAX_LENGTH: usize = 2048;
/// Longest host name. Units: bytes. Source: RFC 1123.
const MAX_HOST: usize = 253;

/// The address of a BMC.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BmcAddress {
    scheme: &'static BmcScheme,
    transport: Option<BmcTransport>,
    /// In lower case; IPv6 without brackets.
    host: String,
    port: Option<u16>,
    /// Empty, or with its first slash.
    path: String,
    /// Without the question mark.
    query: Option<String>,
}

/// The reason why a text is not the address of a BMC. No text repeats the address, which might hold a password.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BmcAddressError {
    /// Nothing.
    #[error("is empty")]
    Empty,
    /// Beyond the limit.
    #[error("has more than {MAX_LENGTH} bytes")]
    TooLong,
    /// Blanks, line ends, control characters.
    #[error("has white space or a control character")]
    Blank,
    /// User name or password.
    #[error("holds a user name or password")]
    Credentials,
    /// The scheme of a web address.
    #[error("has the scheme of a web page")]
    WebScheme,
    /// A scheme without a driver; the most similar one.
    #[error("has a scheme that no driver has")]
    UnknownScheme(Option<&'static str>),
    /// A scheme whose driver was removed, and its successor.
    #[error("has the scheme of a driver that was removed")]
    RemovedScheme(&'static str),
    /// `+…` that the scheme does not have.
    #[error("has a transport that its scheme does not have")]
    Transport,
    /// `name:port`, of which the operator takes the name for a scheme.
    #[error("has a port and no scheme")]
    NoScheme,
    /// A scheme without `://`, which the operator takes for a host.
    #[error("has a scheme without ://")]
    NoSeparator,
    /// No host.
    #[error("has no host")]
    NoHost,
    /// Neither host name nor IP address.
    #[error("has a host that is neither a host name nor an IP address")]
    Host,
    /// IPv6 without brackets.
    #[error("has an IPv6 address without brackets")]
    Brackets,
    /// Not 1 to 65535.
    #[error("has a port that is not a number from 1 to 65535")]
    Port,
    /// A fragment.
    #[error("has a fragment")]
    Fragment,
    /// A percent sign that escapes nothing.
    #[error("has a percent sign without two hexadecimal digits")]
    Escape,
}

impl BmcAddressError {
    /// The remedy, in words.
    pub fn remedy(&self) -> String {
        match self {
            Self::Empty => "give the address of the BMC".to_owned(),
            Self::TooLong => format!("use at most {MAX_LENGTH} bytes"),
            Self::Blank => "remove the blanks".to_owned(),
            Self::Credentials => {
                "move them to the secret that credentialsName names, and change the password"
                    .to_owned()
            }
            Self::WebScheme => "write redfish-virtualmedia://…/redfish/v1/Systems/<id>".to_owned(),
            Self::UnknownScheme(Some(meant)) => format!("{meant} may be meant"),
            Self::UnknownScheme(None) => {
                let names: Vec<_> = SCHEMES.iter().map(|it| it.name).collect();
                format!("use one of {}", names.join(", "))
            }
            Self::RemovedScheme(instead) => format!("use {instead}"),
            Self::Transport => "only +http and +https exist, and only with Redfish".to_owned(),
            Self::NoScheme => "write ipmi:// before it".to_owned(),
            Self::NoSeparator => "write :// between scheme and host".to_owned(),
            Self::NoHost => "write the host after ://".to_owned(),
            Self::Host => {
                "use letters, digits, inner hyphens and dots, or an IP address".to_owned()
            }
            Self::Brackets => "write it as [fd00::1]".to_owned(),
            Self::Port => "correct the port, or leave it out for the default".to_owned(),
            Self::Fragment => "remove it from the # on".to_owned(),
            Self::Escape => "write a percent sign itself as %25".to_owned(),
        }
    }
}

/// The refusal to act on a BMC.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "the BMC cannot be driven: its scheme {scheme} is IPMI, and only Redfish is driven; \
     if the BMC has Redfish, use redfish-virtualmedia://…/redfish/v1/Systems/<id>"
)]
pub struct NotDriven {
    /// Name of the scheme.
    pub scheme: &'static str,
}

impl BmcAddress {
    /// The scheme.
    pub fn scheme(&self) -> &'static BmcScheme {
        self.scheme
    }

    /// The transport that the address names.
    pub fn named_transport(&self) -> Option<BmcTransport> {
        self.transport
    }

    /// Host name or IP address in lower case, IPv6 without brackets.
    pub fn host(&self) -> &str {
        &self.host
    }

    /// The IP address of the host, if it is one.
    pub fn ip(&self) -> Option<IpAddr> {
        self.host.parse().ok()
    }

    /// The port, also a default one.
    pub fn port(&self) -> u16 {
        let default = match self.scheme.family {
            BmcFamily::Redfish => self.transport().port(),
            BmcFamily::Ipmi => IPMI_PORT,
        };
        self.port.unwrap_or(default)
    }

    /// The path, as written: empty, or with its first slash.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// The query, without its question mark.
    pub fn query(&self) -> Option<&str> {
        self.query.as_deref()
    }

    /// The transport of Redfish; HTTPS by default.
    pub fn transport(&self) -> BmcTransport {
        self.transport.unwrap_or(BmcTransport::Https)
    }

    /// Origin of the Redfish service, as `https://10.0.0.1:8443`.
    ///
    /// Errors: another protocol.
    pub fn redfish_origin(&self) -> Result<String, NotDriven> {
        match self.scheme.family {
            BmcFamily::Redfish => {
                let transport = self.transport().name();
                Ok(format!("{transport}://{}", self.authority()))
            }
            BmcFamily::Ipmi => Err(NotDriven {
                scheme: self.scheme.name,
            }),
        }
    }

    /// Path of the system, without a last slash; none leaves the choice to the BMC, which should have one system.
    pub fn system_path(&self) -> Option<&str> {
        let is_root = matches!(self.system_id(), Ok(None));
        (!is_root).then(|| self.path.trim_end_matches('/'))
    }

    /// Id of the system; none leaves the choice to the BMC.
    ///
    /// Errors: the path is that of another resource.
    pub fn system_id(&self) -> Result<Option<&str>, SystemPathError> {
        system_id(&self.path)
    }

    /// Whether both are the same system of the same BMC, also by different schemes.
    pub fn is_same_system(&self, other: &Self) -> bool {
        self.identity() == other.identity()
    }

    /// Equal for addresses of the same system.
    pub(crate) fn identity(&self) -> (bool, String, u16, &str) {
        let host = self
            .ip()
            .map_or_else(|| self.host.clone(), |ip| ip.to_string());
        match self.scheme.family {
            BmcFamily::Redfish => {
                let system = self.system_path().unwrap_or_default();
                (true, host, self.port(), system)
            }
            BmcFamily::Ipmi => (false, host, self.port(), ""),
        }
    }

    fn authority(&self) -> String {
        let host = if self.host.contains(':') {
            format!("[{}]", self.host)
        } else {
            self.host.clone()
        };
        match self.port {
            Some(port) => format!("{host}:{port}"),
            None => host,
        }
    }
}

impl FromStr for BmcAddress {
    type Err = BmcAddressError;

    fn from_str(text: &str) -> Result<Self, BmcAddressError> {
        if text.is_empty() {
            return Err(BmcAddressError::Empty);
        }
        if text.len() > MAX_LENGTH {
            return Err(BmcAddressError::TooLong);
        }
        if text.chars().any(|c| c.is_whitespace() || c.is_control()) {
            return Err(BmcAddressError::Blank);
        }
        let (scheme, rest) = split_scheme(text)?;
        let (authority, rest) = rest.split_at(rest.find(['/', '?', '#']).unwrap_or(rest.len()));
        if authority.contains('@') {
            return Err(BmcAddressError::Credentials);
        }
        let (scheme, transport) = parse_scheme(scheme)?;
        let (host, port) = parse_authority(authority)?;
        if rest.contains('#') {
            return Err(BmcAddressError::Fragment);
        }
        let (path, query) = match rest.split_once('?') {
            Some((path, query)) => (path, Some(query.to_owned())),
            None => (rest, None),
        };
        if !has_whole_escapes(path) {
            return Err(BmcAddressError::Escape);
        }
        Ok(Self {
            scheme,
            transport,
            host,
            port,
            path: path.to_owned(),
            query,
        })
    }
}

impl fmt::Display for BmcAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.scheme.name)?;
        if let Some(transport) = self.transport {
            write!(f, "+{}", transport.name())?;
        }
        write!(f, "://{}{}", self.authority(), self.path)?;
        match &self.query {
            Some(query) => write!(f, "?{query}"),
            None => Ok(()),
        }
    }
}

/// The scheme and the rest. `ipmi:host` is `ipmi://host`, and no scheme is IPMI.
fn split_scheme(text: &str) -> Result<(&str, &str), BmcAddressError> {
    if let Some(both) = text.split_once("://") {
        return Ok(both);
    }
    let start = text.split(['/', ':', '+']).next().unwrap_or_default();
    let Some((before, after)) = text.split_once(':') else {
        return match BmcScheme::find(&start.to_ascii_lowercase()) {
            Some(_) => Err(BmcAddressError::NoSeparator),
            None => Ok(("ipmi", text)),
        };
    };
    if BmcScheme::find(&start.to_ascii_lowercase()).is_some() && !before.contains('/') {
        return Ok((before, after));
    }
    if text.contains('@') {
        return Err(BmcAddressError::Credentials);
    }
    let of_scheme = |byte: u8| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte);
    let is_scheme = before.starts_with(|c: char| c.is_ascii_alphabetic());
    if is_scheme && before.bytes().all(of_scheme) {
        return Err(BmcAddressError::NoScheme);
    }
    // The operator takes brackets without a scheme only together with a port.
    if text.starts_with('[') && text.ends_with(']') {
        return Err(BmcAddressError::NoScheme);
    }
    Ok(("ipmi", text))
}

fn parse_scheme(text: &str) -> Result<(&'static BmcScheme, Option<BmcTransport>), BmcAddressError> {
    let text = text.to_ascii_lowercase();
    let (name, transport) = match text.split_once('+') {
        Some((name, transport)) => (name, Some(transport)),
        None => (text.as_str(), None),
    };
    if ["http", "https"].contains(&name) {
        return Err(BmcAddressError::WebScheme);
    }
    let Some(scheme) = BmcScheme::find(name) else {
        if let Some((_, instead)) = REMOVED.iter().find(|(removed, _)| *removed == name) {
            return Err(BmcAddressError::RemovedScheme(instead));
        }
        let names = SCHEMES.iter().map(|it| it.name);
        let meant = model::nearest(name, names, (name.len() / 3).max(1));
        return Err(BmcAddressError::UnknownScheme(meant));
    };
    let transport = match transport {
        None => None,
        Some("http") => Some(BmcTransport::Http),
        Some("https") => Some(BmcTransport::Https),
        Some(_) => return Err(BmcAddressError::Transport),
    };
    if transport.is_some() && scheme.family != BmcFamily::Redfish {
        return Err(BmcAddressError::Transport);
    }
    Ok((scheme, transport))
}

fn parse_authority(text: &str) -> Result<(String, Option<u16>), BmcAddressError> {
    let (host, port) = match text.strip_prefix('[') {
        Some(rest) => {
            let (host, rest) = rest.split_once(']').ok_or(BmcAddressError::Host)?;
            host.parse::<Ipv6Addr>()
                .map_err(|_| BmcAddressError::Host)?;
            let port = rest.strip_prefix(':');
            if port.is_none() && !rest.is_empty() {
                return Err(BmcAddressError::Host);
            }
            (host, port)
        }
        None if text.parse::<Ipv6Addr>().is_ok() => return Err(BmcAddressError::Brackets),
        None => match text.split_once(':') {
            Some((host, port)) => (host, Some(port)),
            None => (text, None),
        },
    };
    if host.is_empty() {
        return Err(BmcAddressError::NoHost);
    }
    if host.parse::<IpAddr>().is_err() && !is_host_name(host) {
        return Err(BmcAddressError::Host);
    }
    let port = port.map(parse_port).transpose()?;
    Ok((host.to_ascii_lowercase(), port))
}

fn parse_port(text: &str) -> Result<u16, BmcAddressError> {
    let is_number = text.bytes().all(|byte| byte.is_ascii_digit());
    let port = text.parse().ok().filter(|port| is_number && *port > 0);
    port.ok_or(BmcAddressError::Port)
}

/// Whether a text is a host name; four numbers would be a mistyped IPv4 address.
fn is_host_name(text: &str) -> bool {
    let is_label = |label: &str| {
        !label.is_empty()
            && label.len() <= 63
            && label
                .bytes()
                .all(|b| b.is_ascii_alphanumeric() || b == b'-')
            && !label.starts_with('-')
            && !label.ends_with('-')
    };
    let is_number = |label: &str| label.bytes().all(|byte| byte.is_ascii_digit());
    text.len() <= MAX_HOST && text.split('.').all(is_label) && !text.split('.').all(is_number)
}

fn has_whole_escapes(path: &str) -> bool {
    let mut parts = path.split('%');
    parts.next();
    parts.all(|part| {
        let digits = part.bytes().take(2);
        digits.filter(u8::is_ascii_hexdigit).count() == 2
    })
}

#[cfg(test)]
mod tests;
