//! Certificates for tests: self-signed ones, and an authority with the server certificates that it signs.

use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair, KeyUsagePurpose};

/// A certificate and its key as PEM.
#[derive(Debug, Clone)]
pub struct Pem {
    /// The certificate.
    pub cert: String,
    /// The private key.
    pub key: String,
}

/// A self-signed certificate for `name` (DNS name or address).
pub fn self_signed(name: &str) -> Result<Pem, rcgen::Error> {
    let made = rcgen::generate_simple_self_signed([name.to_owned()])?;
    Ok(Pem {
        cert: made.cert.pem(),
        key: made.signing_key.serialize_pem(),
    })
}

/// An authority of a test.
#[derive(Debug)]
pub struct Authority {
    issuer: Issuer<'static, KeyPair>,
    /// Its certificate as PEM.
    pub certificate: String,
}

impl Authority {
    /// A new one called `name`.
    pub fn new(name: &str) -> Result<Self, rcgen::Error> {
        let key = KeyPair::generate()?;
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign];
        params.distinguished_name.push(DnType::CommonName, name);
        let certificate = params.self_signed(&key)?.pem();
        Ok(Self {
            issuer: Issuer::new(params, key),
            certificate,
        })
    }

    /// A server's certificate for `names` (DNS names and addresses) and its key, as PEM.
    pub fn sign(&self, names: &[&str]) -> Result<(String, String), rcgen::Error> {
        let key = KeyPair::generate()?;
        let names: Vec<String> = names.iter().map(ToString::to_string).collect();
        let params = CertificateParams::new(names)?;
        let certificate = params.signed_by(&key, &self.issuer)?;
        Ok((certificate.pem(), key.serialize_pem()))
    }
}
