//! The certificate authority of a site, in two files: `ca.crt` and `ca.key`.
//!
//! The key is read only to sign, so a site may keep it elsewhere. It is in the folder of the certificate, or in the folder `ca`
//! beside that: servers that read the certificates of a pod need no key of an authority.

use std::fs;
use std::io::ErrorKind;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use net::certificate::{self, CertificateSummary};
use rcgen::{
    BasicConstraints, CertificateParams, CidrSubnet, DistinguishedName, DnType, GeneralSubtree,
    IsCa, Issuer, KeyPair, KeyUsagePurpose, NameConstraints,
};
use rustls::pki_types::CertificateDer;
use service::file::write_atomic;
use service::{Error, ResultExt as _};

use super::{BACKDATED, DAY, MAX_COMMON_NAME, Pem, failed, server};

/// Units: days. Ten years.
const AUTHORITY_DAYS: u32 = 3653;
const PUBLIC: u32 = 0o644;
const OWNER_ONLY: u32 = 0o600;
const OWNER_FOLDER: u32 = 0o700;
/// A certificate with a smaller part of its lifetime left is renewed.
const RENEWED_PART: u32 = 3;
const CERTIFICATE: &str = "ca.crt";
const KEY: &str = "ca.key";
/// Folder of the key, beside that of the certificate.
const KEY_FOLDER: &str = "ca";

/// An authority that certificates are signed with.
#[derive(Debug)]
pub struct SiteAuthority {
    chain: Vec<CertificateDer<'static>>,
    pem: String,
    summary: CertificateSummary,
    files: [PathBuf; 2],
    is_new: bool,
}

impl SiteAuthority {
    /// The authority in `folder`; a missing one is made for `domain` and the names below it, and for `others`. Its key is
    /// written into the folder `ca` beside it, if that exists.
    ///
    /// Errors: files that cannot be read or written, or are no authority.
    pub fn ensure(folder: &Path, domain: &str, others: &[String]) -> Result<Self, Error> {
        let [certificate, key] = Self::files(folder);
        let is_new = !certificate.exists();
        if is_new {
            let kept = read_if_present(&key)?;
            let made = make(domain, others, kept.as_deref())?;
            // The key first: after a crash between the files the next run makes the certificate for it.
            if kept.is_none() {
                write_atomic(&key, made.key.as_bytes(), OWNER_ONLY)?;
            }
            write_atomic(&certificate, made.cert.as_bytes(), PUBLIC)?;
        }
        let authority = Self::open(folder)?;
        Ok(Self {
            is_new,
            ..authority
        })
    }

    /// The authority in `folder`.
    ///
    /// Errors: a missing or unreadable certificate, or one that is no authority's.
    pub fn open(folder: &Path) -> Result<Self, Error> {
        let files = Self::files(folder);
        let doing = || format!("reading {}", files[0].display());
        let pem = fs::read_to_string(&files[0]).doing(doing)?;
        let chain = certificate::of_pem(pem.as_bytes()).doing(doing)?;
        let summary = certificate::read(&chain[0]).doing(doing)?;
        if !summary.is_authority {
            return Err(Error::new(
                doing(),
                "it is no certificate of an authority (CA:TRUE); the first certificate in it has to be one",
            ));
        }
        Ok(Self {
            chain,
            pem,
            summary,
            files,
            is_new: false,
        })
    }

    /// Paths of the certificate in `folder`, and of its key.
    fn files(folder: &Path) -> [PathBuf; 2] {
        let own = folder.join(KEY);
        let apart = key_folder(folder);
        let key = if !own.exists() && apart.is_dir() {
            apart.join(KEY)
        } else {
            own
        };
        [folder.join(CERTIFICATE), key]
    }

    /// Moves the key out of `folder`, into the folder `ca` beside it, which is made. Another key there is of an earlier authority,
    /// and kept as `ca.key.old`.
    ///
    /// Errors: folders that cannot be written.
    pub fn keep_key_apart(folder: &Path) -> Result<(), Error> {
        let (own, apart) = (folder.join(KEY), key_folder(folder));
        service::file::folder(&apart, OWNER_FOLDER)?;
        if !own.exists() {
            return Ok(());
        }
        let target = apart.join(KEY);
        let moved = || {
            if target.exists() && fs::read(&target)? != fs::read(&own)? {
                fs::rename(&target, apart.join(format!("{KEY}.old")))?;
            }
            fs::rename(&own, &target)?;
            // The new name first: after a power failure the key has a name.
            durable::sync_folder(&apart)?;
            durable::sync_folder(folder)
        };
        let (own, target) = (own.display(), target.display());
        moved().doing(|| format!("moving {own} to {target}"))
    }

    /// Path of its certificate.
    pub fn certificate(&self) -> &Path {
        &self.files[0]
    }

    /// Content of its certificate's file.
    pub fn pem(&self) -> &str {
        &self.pem
    }

    /// Whether it was made by [`SiteAuthority::ensure`].
    pub fn is_new(&self) -> bool {
        self.is_new
    }

    /// End of its validity.
    pub fn not_after(&self) -> SystemTime {
        self.summary.not_after
    }

    /// A certificate for `names`, with intermediate authorities behind it, and its new key. It is valid `days` from
    /// yesterday, but no longer than the authority.
    ///
    /// Errors: an unreadable key, names that the authority may not sign for.
    pub fn sign(&self, names: &[String], days: u32) -> Result<Pem, Error> {
        let issuer = self.issuer()?;
        let end = SystemTime::now() - BACKDATED + DAY * days;
        let end = end.min(self.summary.not_after);
        let signed = || {
            let key = KeyPair::generate()?;
            let mut params = server(names, end)?;
            params.is_ca = IsCa::ExplicitNoCa;
            params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
            params.use_authority_key_identifier_extension = true;
            let certificate = params.signed_by(&key, &issuer)?;
            Ok((certificate.pem(), key.serialize_pem()))
        };
        let (mut cert, key) = signed().map_err(|e| failed(names, e))?;
        cert.push_str(&self.intermediates()?);
        self.verify(cert.as_bytes(), names).map_err(|(name, reason)| {
            let [certificate, key] = self.files.each_ref().map(|path| path.display());
            Error::new(
                format!("signing a certificate for {name} with {certificate} and {key}"),
                format!("{reason}; use another folder for a new authority, or files that belong together"),
            )
        })?;
        Ok(Pem { cert, key })
    }

    /// Whether `cert` (PEM, leaf first) is signed by this authority for exactly `names`, and has enough lifetime left.
    pub fn is_fresh(&self, cert: &[u8], names: &[String]) -> bool {
        let leaf = certificate::of_pem(cert).and_then(|chain| certificate::read(&chain[0]));
        let Ok(leaf) = leaf else { return false };
        let mut wanted = names.to_vec();
        let mut found = leaf.names.clone();
        wanted.sort();
        found.sort();
        wanted == found && !is_old(&leaf, self.not_after()) && self.verify(cert, names).is_ok()
    }

    /// Whether `cert` (PEM, leaf first) is signed by this authority, however old it is.
    pub fn has_signed(&self, cert: &[u8]) -> bool {
        let read = |chain: Vec<_>| certificate::read(&chain[0]).map(|leaf| (chain, leaf));
        let Ok((chain, leaf)) = certificate::of_pem(cert).and_then(read) else {
            return false;
        };
        let then = leaf.not_before + Duration::from_secs(1);
        let mut names = leaf.names.iter();
        names.any(|name| certificate::verify(&chain, &self.chain, name, then).is_ok())
    }

    /// Errors: the first refused name, and the reason.
    fn verify(&self, cert: &[u8], names: &[String]) -> Result<(), (String, String)> {
        let chain = certificate::of_pem(cert);
        let chain = chain.map_err(|e| (String::new(), e.to_string()))?;
        let roots = &self.chain;
        names.iter().try_for_each(|name| {
            certificate::verify(&chain, roots, name, SystemTime::now())
                .map_err(|reason| (name.clone(), reason))
        })
    }

    fn issuer(&self) -> Result<Issuer<'static, KeyPair>, Error> {
        let [_, key] = &self.files;
        let doing = || format!("reading the authority's key {}", key.display());
        let text = fs::read_to_string(key).doing(doing)?;
        let key = key_pair(&text).doing(doing)?;
        Issuer::from_ca_cert_der(&self.chain[0], key)
            .doing(|| format!("reading {}", self.files[0].display()))
    }

    /// The certificates of the file that servers have to present, since clients do not have them: all but roots.
    fn intermediates(&self) -> Result<String, Error> {
        let mut text = String::new();
        for (der, block) in self.chain.iter().zip(pem_blocks(&self.pem)) {
            let summary =
                certificate::read(der).doing(|| format!("reading {}", self.files[0].display()))?;
            if !summary.is_self_issued {
                text.push_str(block);
                text.push('\n');
            }
        }
        Ok(text)
    }
}

/// The folder `ca` beside `folder`.
fn key_folder(folder: &Path) -> PathBuf {
    // A name at its end, for `.`.
    let folder = std::path::absolute(folder).unwrap_or_else(|_| folder.to_owned());
    folder.parent().unwrap_or(&folder).join(KEY_FOLDER)
}

/// Certificates of a PEM text, as text.
fn pem_blocks(text: &str) -> impl Iterator<Item = &str> {
    const BEGIN: &str = "-----BEGIN CERTIFICATE-----";
    const END: &str = "-----END CERTIFICATE-----";
    let starts = text.match_indices(BEGIN);
    starts.filter_map(move |(start, _)| {
        let length = text[start..].find(END)? + END.len();
        Some(&text[start..start + length])
    })
}

fn is_old(leaf: &CertificateSummary, end_of_authority: SystemTime) -> bool {
    // It cannot get more.
    if leaf.not_after == end_of_authority {
        return leaf.not_after <= SystemTime::now();
    }
    let part = |from: SystemTime| {
        leaf.not_after
            .duration_since(from)
            .unwrap_or(Duration::ZERO)
    };
    part(SystemTime::now()) * RENEWED_PART <= part(leaf.not_before)
}

fn read_if_present(path: &Path) -> Result<Option<String>, Error> {
    match fs::read_to_string(path) {
        Ok(text) => Ok(Some(text)),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(Error::new(format!("reading {}", path.display()), error)),
    }
}

fn key_pair(text: &str) -> Result<KeyPair, String> {
    KeyPair::from_pem(text).map_err(|e| {
        format!("{e}; expected an unencrypted key in PKCS#8, as `openssl pkcs8 -topk8 -nocrypt` writes it")
    })
}

/// A self-signed authority with `key`, or a new P-256 one.
fn make(domain: &str, others: &[String], key: Option<&str>) -> Result<Pem, Error> {
    let doing = || format!("making an authority for {domain}");
    let key = match key {
        Some(text) => key_pair(text).doing(doing)?,
        None => KeyPair::generate().doing(doing)?,
    };
    let start = SystemTime::now() - BACKDATED;
    let mut params = CertificateParams::default();
    params.not_before = start.into();
    params.not_after = (start + DAY * AUTHORITY_DAYS).into();
    params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    params.name_constraints = Some(constraints(domain, others));
    params.distinguished_name = DistinguishedName::new();
    let mut name = format!("CA of {domain}");
    name.truncate(MAX_COMMON_NAME);
    params.distinguished_name.push(DnType::CommonName, name);
    let certificate = params.self_signed(&key).doing(doing)?;
    Ok(Pem {
        cert: certificate.pem(),
        key: key.serialize_pem(),
    })
}

/// The names that the authority may sign for: a stolen key is of no use for others.
fn constraints(domain: &str, others: &[String]) -> NameConstraints {
    let mut permitted = vec![GeneralSubtree::DnsName(domain.to_owned())];
    let addresses = || others.iter().filter_map(|name| name.parse().ok());
    for name in others {
        if name.parse::<IpAddr>().is_err() && !is_below(name, domain) {
            permitted.push(GeneralSubtree::DnsName(domain_of(name).to_owned()));
        }
    }
    permitted.extend(addresses().map(|address| GeneralSubtree::IpAddress(exactly(address))));
    // Without a permitted address, all would be: constraints concern the kinds of names that they have.
    let none = [
        CidrSubnet::V4([0; 4], [0; 4]),
        CidrSubnet::V6([0; 16], [0; 16]),
    ];
    let excluded = if addresses().next().is_none() {
        none.map(GeneralSubtree::IpAddress).to_vec()
    } else {
        Vec::new()
    };
    NameConstraints {
        permitted_subtrees: permitted,
        excluded_subtrees: excluded,
    }
}

fn exactly(address: IpAddr) -> CidrSubnet {
    match address {
        IpAddr::V4(address) => CidrSubnet::V4(address.octets(), [u8::MAX; 4]),
        IpAddr::V6(address) => CidrSubnet::V6(address.octets(), [u8::MAX; 16]),
    }
}

/// The domain of a name: without the star of a wildcard.
fn domain_of(name: &str) -> &str {
    name.strip_prefix("*.").unwrap_or(name)
}

/// Whether `name` is `domain` or a name below it.
fn is_below(name: &str, domain: &str) -> bool {
    domain_of(name)
        .strip_suffix(domain)
        .is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
}
