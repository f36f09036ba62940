//! Options of a line of a certificate list: HAProxy's, in brackets.
//!
//! An option that protects is enforced, or its line is out of force: none is ignored. Source: HAProxy, `crt-list`.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::SignatureScheme;
use rustls::crypto::CryptoProvider;
use rustls::sign::SigningKey;

use super::clients::Demand;
use super::signatures::{self, RestrictedKey};
use super::tls_config::TlsVersion;
use super::{cipher_list, suites};

/// Name of the system's authorities, in place of a file.
const SYSTEM_AUTHORITIES: &str = "@system-ca";

/// Options of a line.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct LineOptions {
    /// Protocols that are offered; absent: those of the listener.
    pub(super) alpn: Option<Vec<String>>,
    /// The private key, if the line names its file.
    pub(super) key: Option<PathBuf>,
    pub(super) demands: LineDemands,
    /// Options that have no effect here, and protect nothing.
    pub(super) ignored: Vec<String>,
}

/// Demands of a line on its clients.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct LineDemands {
    /// Verification of client certificates; absent: none are requested.
    pub(super) verify: Option<Demand>,
    /// Authorities of clients.
    pub(super) authorities: Option<AuthoritySource>,
    /// Further authorities, whose names are not sent to clients.
    pub(super) silent_authorities: Option<AuthoritySource>,
    /// Revoked client certificates.
    pub(super) revoked: Option<PathBuf>,
    /// Whether clients do not get the names of the authorities.
    pub(super) hides_authorities: bool,
    pub(super) minimum: Option<TlsVersion>,
    pub(super) maximum: Option<TlsVersion>,
    /// Suites of TLS 1.2, as OpenSSL lists them.
    ciphers: Option<String>,
    /// Suites of TLS 1.3.
    ciphersuites: Option<String>,
    /// Groups of the key exchange.
    curves: Option<String>,
    /// The one group of the key exchange, unless there are `curves`.
    ecdhe: Option<String>,
    /// Algorithms of signatures; absent: all that are supported.
    sigalgs: Option<Vec<SignatureScheme>>,
    /// Algorithms of clients' signatures; absent: `sigalgs`.
    client_sigalgs: Option<Vec<SignatureScheme>>,
    /// Reasons for which the line is out of force.
    pub(super) problems: Vec<String>,
}

/// Where authorities of clients are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum AuthoritySource {
    /// Those of the system.
    System,
    /// A file, or a folder of files.
    Path(PathBuf),
}

impl From<PathBuf> for AuthoritySource {
    fn from(path: PathBuf) -> Self {
        if path.ends_with(SYSTEM_AUTHORITIES) {
            Self::System
        } else {
            Self::Path(path)
        }
    }
}

/// Options of HAProxy, by the form of their value and how they change those of their line.
enum LineOption {
    /// It has no value.
    Flag(fn(&mut LineOptions)),
    Text(fn(&mut LineOptions, String)),
    File(fn(&mut LineOptions, PathBuf)),
    Parsed(fn(&mut LineDemands, &str) -> Result<(), String>),
    /// It has no effect here and protects nothing; with the number of its values.
    Ignored(usize),
    /// It is one of a listener, which HAProxy refuses in lists; with the number of its values.
    OfListener(usize),
}

/// Source: HAProxy, `ssl_crtlist_kws`, `ckch_conf_kws` and `bind_kws`.
static OPTIONS: &[(&str, LineOption)] = &[
    ("accept-proxy", LineOption::OfListener(0)),
    ("allow-0rtt", LineOption::Ignored(0)),
    (
        "alpn",
        LineOption::Text(|it, value| it.alpn = Some(protocols(&value))),
    ),
    ("ca-ignore-err", LineOption::OfListener(1)),
    ("ca-sign-file", LineOption::OfListener(1)),
    ("ca-sign-pass", LineOption::OfListener(1)),
    (
        "ca-file",
        LineOption::File(|it, path| it.demands.authorities = Some(path.into())),
    ),
    (
        "ca-verify-file",
        LineOption::File(|it, path| it.demands.silent_authorities = Some(path.into())),
    ),
    (
        "ciphers",
        LineOption::Text(|it, value| it.demands.ciphers = Some(value)),
    ),
    (
        "ciphersuites",
        LineOption::Text(|it, value| it.demands.ciphersuites = Some(value)),
    ),
    (
        "client-sigalgs",
        LineOption::Parsed(|it, value| {
            it.client_sigalgs = Some(signatures::evaluate(value)?);
            Ok(())
        }),
    ),
    (
        "crl-file",
        LineOption::File(|it, path| it.demands.revoked = Some(path)),
    ),
    ("crt", LineOption::OfListener(1)),
    ("crt-ignore-err", LineOption::OfListener(1)),
    ("crt-list", LineOption::OfListener(1)),
    (
        "curves",
        LineOption::Text(|it, value| it.demands.curves = Some(value)),
    ),
    ("default-crt", LineOption::OfListener(1)),
    (
        "ecdhe",
        LineOption::Text(|it, value| it.demands.ecdhe = Some(value)),
    ),
    ("force-sslv3", LineOption::OfListener(0)),
    ("force-tlsv10", LineOption::OfListener(0)),
    ("force-tlsv11", LineOption::OfListener(0)),
    ("force-tlsv12", LineOption::OfListener(0)),
    ("force-tlsv13", LineOption::OfListener(0)),
    ("generate-certificates", LineOption::OfListener(0)),
    ("issuer", LineOption::Ignored(1)),
    ("key", LineOption::File(|it, path| it.key = Some(path))),
    ("ktls", LineOption::Ignored(1)),
    ("no-alpn", LineOption::Flag(|it| it.alpn = Some(Vec::new()))),
    (
        "no-ca-names",
        LineOption::Flag(|it| it.demands.hides_authorities = true),
    ),
    ("no-sslv3", LineOption::OfListener(0)),
    ("no-strict-sni", LineOption::OfListener(0)),
    ("no-tls-tickets", LineOption::OfListener(0)),
    ("no-tlsv10", LineOption::OfListener(0)),
    ("no-tlsv11", LineOption::OfListener(0)),
    ("no-tlsv12", LineOption::OfListener(0)),
    ("no-tlsv13", LineOption::OfListener(0)),
    ("npn", LineOption::Ignored(1)),
    ("ocsp", LineOption::Ignored(1)),
    ("ocsp-update", LineOption::Ignored(1)),
    ("prefer-client-ciphers", LineOption::OfListener(0)),
    ("sctl", LineOption::Ignored(1)),
    (
        "sigalgs",
        LineOption::Parsed(|it, value| {
            it.sigalgs = Some(signatures::evaluate(value)?);
            Ok(())
        }),
    ),
    ("ssl", LineOption::OfListener(0)),
    ("ssl-max-ver", LineOption::Parsed(ssl_max_ver)),
    ("ssl-min-ver", LineOption::Parsed(ssl_min_ver)),
    ("strict-sni", LineOption::OfListener(0)),
    ("tls-ticket-keys", LineOption::OfListener(1)),
    ("tls-tickets", LineOption::OfListener(0)),
    ("verify", LineOption::Parsed(verify)),
];

impl LineOptions {
    /// Parses the text between the brackets; names of files are relative to `folder`. A later option replaces an earlier
    /// one, as in HAProxy.
    pub(super) fn parse(folder: &Path, text: &str) -> Self {
        let mut options = Self::default();
        let mut words = text.split_whitespace();
        while let Some(word) = words.next() {
            if let Err(problem) = options.take(folder, word, &mut words) {
                options.demands.problems.push(problem);
            }
        }
        let demands = &mut options.demands;
        let problem = demands.combination().err();
        demands.problems.extend(problem);
        options
    }

    fn take<'a>(
        &mut self,
        folder: &Path,
        word: &str,
        words: &mut impl Iterator<Item = &'a str>,
    ) -> Result<(), String> {
        let (_, option) = OPTIONS
            .iter()
            .find(|(name, _)| *name == word)
            .ok_or_else(|| {
                format!(
                    "option `{word}` is not supported, and might protect: remove it from the list"
                )
            })?;
        let mut value = || {
            let value = words.next();
            value.ok_or_else(|| format!("option `{word}` lacks its value"))
        };
        match option {
            LineOption::Flag(apply) => apply(self),
            LineOption::Text(apply) => apply(self, value()?.to_owned()),
            LineOption::File(apply) => apply(self, folder.join(value()?)),
            LineOption::Parsed(apply) => {
                let value = value()?;
                apply(&mut self.demands, value)
                    .map_err(|reason| format!("option `{word} {value}`: {reason}"))?;
            }
            LineOption::Ignored(values) => {
                for _ in 0..*values {
                    value()?;
                }
                self.ignored.push(word.to_owned());
            }
            LineOption::OfListener(values) => {
                for _ in 0..*values {
                    value()?;
                }
                return Err(format!(
                    "option `{word}` is one of `bind` lines, as in HAProxy: remove it from the list"
                ));
            }
        }
        Ok(())
    }
}

impl LineDemands {
    /// Whether a client may be refused that a line without options serves.
    pub(super) fn protects(&self) -> bool {
        self.verify.is_some()
            || self.minimum > Some(TlsVersion::Tls12)
            || self.ciphers.is_some()
            || self.ciphersuites.is_some()
            || self.curves.is_some()
            || self.ecdhe.is_some()
            || self.sigalgs.is_some()
            || self.client_sigalgs.is_some()
            || !self.problems.is_empty()
    }

    /// Versions between both bounds, of which there is one.
    pub(super) fn versions(&self, minimum: TlsVersion) -> impl Iterator<Item = TlsVersion> {
        let minimum = self.minimum.unwrap_or(minimum);
        let maximum = self.maximum.unwrap_or(TlsVersion::Tls13);
        [TlsVersion::Tls13, TlsVersion::Tls12]
            .into_iter()
            .filter(move |version| (minimum..=maximum).contains(version))
    }

    /// Removes from `provider` the suites and groups that the line does not allow.
    ///
    /// Errors: none is left.
    pub(super) fn restrict(&self, provider: &mut CryptoProvider) -> Result<(), String> {
        if let Some(ciphers) = &self.ciphers {
            let allowed = cipher_list::evaluate(ciphers);
            suites::keep(provider, false, |suite| allowed.contains(&suite.suite()));
            let speaks_old = self
                .versions(TlsVersion::Tls12)
                .any(|it| it == TlsVersion::Tls12);
            if allowed.is_empty() && speaks_old {
                return Err(format!(
                    "option `ciphers {ciphers}`: it allows none of the suites of TLS 1.2 that are supported: {}",
                    cipher_list::supported().join(", ")
                ));
            }
        }
        if let Some(names) = &self.ciphersuites {
            suites::keep(provider, true, |suite| {
                let own = suite.suite().as_str().unwrap_or_default();
                list(names).any(|name| name.replacen("TLS_", "TLS13_", 1) == own)
            });
            if provider.cipher_suites.iter().all(|it| it.tls13().is_none()) {
                return Err(format!(
                    "option `ciphersuites {names}`: it allows none of the suites of TLS 1.3"
                ));
            }
        }
        let curves = self.curves.as_ref().map(|names| ("curves", names));
        let ecdhe = self.ecdhe.as_ref().map(|name| ("ecdhe", name));
        if let Some((option, names)) = curves.or(ecdhe) {
            provider.kx_groups.retain(|group| {
                let own = format!("{:?}", group.name());
                list(names).any(|name| group_name(name).eq_ignore_ascii_case(&own))
            });
            if provider.kx_groups.is_empty() {
                return Err(format!(
                    "option `{option} {names}`: it allows none of X25519, P-256 and P-384, which are supported"
                ));
            }
        }
        Ok(())
    }

    /// `key`, which signs by the allowed algorithms alone.
    ///
    /// Errors: by none of them.
    pub(super) fn restricted(
        &self,
        key: Arc<dyn SigningKey>,
        minimum: TlsVersion,
    ) -> Result<Arc<dyn SigningKey>, String> {
        let Some(allowed) = self.sigalgs.clone() else {
            return Ok(key);
        };
        let key = RestrictedKey { key, allowed };
        if !key.signs(self.versions(minimum).all(|it| it == TlsVersion::Tls13)) {
            return Err(
                "option `sigalgs`: its private key signs by none of these algorithms".to_owned(),
            );
        }
        Ok(Arc::new(key))
    }

    /// The allowed algorithms of clients' signatures; absent: all that are supported.
    pub(super) fn of_clients(&self) -> Option<&[SignatureScheme]> {
        let own = self.client_sigalgs.as_ref();
        own.or(self.sigalgs.as_ref()).map(Vec::as_slice)
    }

    fn combination(&self) -> Result<(), String> {
        if self.verify.is_some() && self.authorities.is_none() && self.silent_authorities.is_none()
        {
            return Err(
                "option `verify` lacks `ca-file`, the authorities of client certificates"
                    .to_owned(),
            );
        }
        if self.versions(TlsVersion::Tls12).next().is_none() {
            return Err("no version of TLS is between `ssl-min-ver` and `ssl-max-ver`".to_owned());
        }
        Ok(())
    }
}

fn list(text: &str) -> impl Iterator<Item = &str> {
    text.split([':', '/', ','])
        .map(|name| name.trim_start_matches(['?', '*']))
}

/// The name that IANA gave a group which OpenSSL calls `name`.
fn group_name(name: &str) -> &str {
    match name {
        "P-256" | "prime256v1" => "secp256r1",
        "P-384" => "secp384r1",
        name => name,
    }
}

fn protocols(value: &str) -> Vec<String> {
    let protocols = value.split(',').filter(|name| !name.is_empty());
    protocols.map(str::to_owned).collect()
}

fn verify(demands: &mut LineDemands, value: &str) -> Result<(), String> {
    demands.verify = match value {
        "none" => None,
        "optional" => Some(Demand::VerifyIfGiven),
        "required" => Some(Demand::RequireAndVerify),
        _ => return Err("expected none, optional or required".to_owned()),
    };
    Ok(())
}

fn ssl_min_ver(demands: &mut LineDemands, value: &str) -> Result<(), String> {
    // Older ones are not spoken.
    let version = version(value)?.unwrap_or(TlsVersion::Tls12);
    demands.minimum = Some(version);
    Ok(())
}

fn ssl_max_ver(demands: &mut LineDemands, value: &str) -> Result<(), String> {
    let version = version(value)?.ok_or("only TLSv1.2 and TLSv1.3 are supported")?;
    demands.maximum = Some(version);
    Ok(())
}

/// Absent for a version that is too old.
fn version(value: &str) -> Result<Option<TlsVersion>, String> {
    match value {
        "SSLv3" | "TLSv1.0" | "TLSv1.1" => Ok(None),
        "TLSv1.2" => Ok(Some(TlsVersion::Tls12)),
        "TLSv1.3" => Ok(Some(TlsVersion::Tls13)),
        _ => Err("expected TLSv1.2 or TLSv1.3".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use rustls::crypto::ring;

    use super::*;

    fn parse(text: &str) -> LineOptions {
        LineOptions::parse(Path::new("/certs"), text)
    }

    #[test]
    fn client_certificates_and_versions_are_demanded() {
        let options = parse(
            "allow-0rtt alpn h2 verify optional ca-file ca.pem ca-verify-file /etc/root.pem crl-file crl.pem \
             no-ca-names ssl-min-ver TLSv1.2 ssl-max-ver TLSv1.3 key a.key npn h2 verify required",
        );
        let demands = &options.demands;
        assert_eq!(demands.problems, [""; 0]);
        assert_eq!(demands.verify, Some(Demand::RequireAndVerify));
        let files = [&demands.authorities, &demands.silent_authorities];
        let expected = ["/certs/ca.pem", "/etc/root.pem"].map(PathBuf::from);
        let expected = expected.map(|it| Some(AuthoritySource::Path(it)));
        assert_eq!(files.map(Clone::clone), expected);
        assert_eq!(
            demands.revoked.as_deref(),
            Some(Path::new("/certs/crl.pem"))
        );
        let of_system = parse("verify required ca-file @system-ca").demands;
        assert_eq!(of_system.authorities, Some(AuthoritySource::System));
        assert_eq!(of_system.problems, [""; 0]);
        assert!(demands.hides_authorities && demands.protects());
        assert_eq!(demands.minimum, Some(TlsVersion::Tls12));
        assert_eq!(options.ignored, ["allow-0rtt", "npn"]);
        assert_eq!(options.alpn.as_deref(), Some(&["h2".to_owned()][..]));
        assert_eq!(parse("alpn h2 no-alpn").alpn, Some(Vec::new()));
        for harmless in [
            "",
            "verify none",
            "alpn h2",
            "ssl-min-ver TLSv1.0",
            "ca-file x",
        ] {
            assert!(!parse(harmless).demands.protects(), "{harmless}");
        }
        for protecting in [
            "ssl-min-ver TLSv1.3",
            "curves P-256",
            "ecdhe prime256v1",
            "ciphers HIGH",
            "sigalgs RSA+SHA256",
            "client-sigalgs RSA+SHA256",
        ] {
            assert!(parse(protecting).demands.protects(), "{protecting}");
        }
    }

    #[test]
    fn an_option_that_might_protect_is_never_ignored() {
        for (text, reason) in [
            ("bogus", "`bogus` is not supported"),
            ("alpn h2 sigalgs FOO+SHA256", "`FOO+SHA256` is no signature"),
            (
                "client-sigalgs RSA+SHA1",
                "none of those that are supported",
            ),
            (
                "ca-sign-file x generate-certificates",
                "`ca-sign-file` is one of `bind`",
            ),
            ("verify", "`verify` lacks its value"),
            ("verify maybe ca-file ca.pem", "expected none, optional"),
            ("verify required", "lacks `ca-file`"),
            ("ssl-min-ver TLSv1.4", "expected TLSv1.2 or TLSv1.3"),
            ("ssl-max-ver TLSv1.1", "only TLSv1.2 and TLSv1.3"),
            (
                "ssl-min-ver TLSv1.3 ssl-max-ver TLSv1.2",
                "no version of TLS",
            ),
        ] {
            let demands = parse(text).demands;
            let problems = demands.problems.join("; ");
            assert!(problems.contains(reason), "{text}: {problems}");
            assert!(demands.protects(), "{text}");
        }
    }

    #[test]
    fn suites_and_groups_are_restricted() {
        let left = |text: &str| {
            let mut provider = ring::default_provider();
            parse(text).demands.restrict(&mut provider)?;
            let old = provider.cipher_suites.iter();
            let old = old.filter(|it| it.tls13().is_none()).count();
            let all = provider.cipher_suites.len();
            Ok::<_, String>((old, all - old, provider.kx_groups.len()))
        };
        assert_eq!(left(""), Ok((6, 3, 3)));
        assert_eq!(left("ciphers ECDHE+AES256:!aRSA"), Ok((1, 3, 3)));
        let text = "ciphersuites TLS_AES_256_GCM_SHA384:TLS_AES_128_CCM_SHA256";
        assert_eq!(left(text), Ok((6, 1, 3)));
        assert_eq!(left("curves X25519:P-521:secp384r1"), Ok((6, 3, 2)));
        assert_eq!(left("ecdhe prime256v1"), Ok((6, 3, 1)));
        assert_eq!(left("curves X25519:P-256 ecdhe prime256v1"), Ok((6, 3, 2)));
        assert_eq!(
            left("ciphers AES128-SHA ssl-min-ver TLSv1.3"),
            Ok((0, 3, 3))
        );
        for text in ["ciphers AES128-SHA", "ciphersuites X", "curves P-521"] {
            let error = left(text).unwrap_err();
            assert!(error.contains(text) && error.contains("none"), "{error}");
        }
    }
}
