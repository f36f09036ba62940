//! The registry's certificate, and how clients come to trust it.

use std::io::ErrorKind;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use clap::Args;
use service::{Error, tls};

use crate::file::{folder, write_whole};
use crate::terminal;

const PUBLIC: u32 = 0o644;
const OWNER_ONLY: u32 = 0o600;
/// Where a registry listens that was stderr nothing else.
const PORT: u16 = 5000;
/// Units: days. A century; what clocks and formats of all clients can still count.
const MAX_DAYS: i64 = 36_500;

/// What certificate is made, and where.
#[derive(Debug, Clone, Args)]
pub(crate) struct CertArgs {
    /// Names and IP addresses by which clients reach the registry; the first also names the files
    #[arg(long = "host", value_name = "NAME", required = true, num_args = 1.., value_parser = host)]
    hosts: Vec<String>,
    /// Folder of NAME.crt and NAME.key
    #[arg(long, value_name = "DIR", default_value = ".")]
    dir: PathBuf,
    /// How long it is valid
    #[arg(long, default_value_t = tls::VALIDITY_DAYS, value_parser = clap::value_parser!(u32).range(1..=MAX_DAYS))]
    days: u32,
    /// RSA with 4096 bits instead of P-256; takes the program openssl
    #[arg(long)]
    rsa: bool,
    /// Overwrite a certificate that is there
    #[arg(long)]
    force: bool,
}

/// Makes the certificate and prints the steps.
///
/// Errors: files that are there, or cannot be written; no openssl where one is needed.
pub(crate) fn run(arguments: &CertArgs) -> Result<(), Error> {
    let CertArgs { hosts, dir, .. } = arguments;
    let files = files(dir, &hosts[0]);
    let there = [&files.cert, &files.key];
    if let Some(path) = there.into_iter().find(|path| path.exists())
        && !arguments.force
    {
        let doing = format!("writing {}", path.display());
        return Err(Error::new(doing, "it is there; --force overwrites it"));
    }
    let key = if arguments.rsa {
        Some(rsa_key()?)
    } else {
        None
    };
    let pem = tls::trust_anchor(hosts, arguments.days, key.as_deref())?;
    folder(dir, 0o755)?;
    // A registry that runs with the old pair keeps it until both are new.
    write_whole(&files.key, pem.key.as_bytes(), OWNER_ONLY)?;
    write_whole(&files.cert, pem.cert.as_bytes(), PUBLIC)?;
    let kind = if arguments.rsa { "RSA 4096" } else { "P-256" };
    let made = format!(
        "{kind}, SHA-256, valid {} days, for {}",
        arguments.days,
        hosts.join(", ")
    );
    terminal::print(&steps(&made, hosts, &files));
    Ok(())
}

/// Container engines take a colon in a path for the end of it, and shells a star for a pattern.
fn files(dir: &Path, host: &str) -> tls::Files {
    let name = host.replace(':', "-").replace('*', "_");
    tls::Files {
        cert: dir.join(format!("{name}.crt")),
        key: dir.join(format!("{name}.key")),
    }
}

/// A name as it stands in a certificate.
fn host(text: &str) -> Result<String, String> {
    let bare = text
        .strip_prefix('[')
        .and_then(|text| text.strip_suffix(']'))
        .unwrap_or(text);
    if let Ok(address) = bare.parse::<IpAddr>() {
        return Ok(address.to_string());
    }
    let is_label = |label: &str| {
        (1..=63).contains(&label.len())
            && label
                .bytes()
                .all(|b| b.is_ascii_alphanumeric() || b == b'-' || b == b'_')
    };
    let mut labels = text.strip_prefix("*.").unwrap_or(text).split('.');
    // A last label of digits is a mistyped address.
    let is_address = text
        .rsplit('.')
        .next()
        .is_some_and(|last| last.bytes().all(|b| b.is_ascii_digit()));
    if text.len() > 253 || is_address || !labels.all(is_label) {
        return Err("expected a host name or an IP address, without port".to_owned());
    }
    Ok(text.to_owned())
}

/// ring makes no RSA keys, and whoever wants one has openssl.
fn rsa_key() -> Result<String, Error> {
    let doing = "making an RSA key with openssl";
    let output = Command::new("openssl")
        .args([
            "genpkey",
            "-algorithm",
            "RSA",
            "-pkeyopt",
            "rsa_keygen_bits:4096",
        ])
        .stdin(Stdio::null())
        .output()
        .map_err(|e| match e.kind() {
            ErrorKind::NotFound => Error::new(
                doing,
                "it is not installed; install it, or leave --rsa out for a P-256 key",
            ),
            _ => Error::new(doing, e),
        })?;
    if !output.status.success() {
        let stderr = String::from_utf8_lossy(&output.stderr);
        return Err(Error::new(
            doing,
            format!("{}: {}", output.status, stderr.trim()),
        ));
    }
    String::from_utf8(output.stdout).map_err(|e| Error::new(doing, e))
}

fn steps(made: &str, hosts: &[String], files: &tls::Files) -> String {
    let absolute = |path: &Path| std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    let (cert, key) = (absolute(&files.cert), absolute(&files.key));
    let (cert, key) = (cert.display(), key.display());
    let for_each = |folder: &str| {
        hosts
            .iter()
            .filter(|host| !host.contains('*'))
            .map(|host| {
                let host = if host.contains(':') {
                    format!("[{host}]")
                } else {
                    host.clone()
                };
                format!("    install -D -m 644 {cert} '{folder}/{host}:{PORT}/ca.crt'")
            })
            .collect::<Vec<_>>()
            .join("\n")
    };
    format!(
        "\
made {cert} and {key}: {made}

The registry serves it with
    REGISTRY_HTTP_TLS_CERTIFICATE={cert}
    REGISTRY_HTTP_TLS_KEY={key}

Clients trust it after one of these, as root (registries on other ports than {PORT}: theirs instead)
  RHEL, Fedora, CentOS, every program:
    cp {cert} /etc/pki/ca-trust/source/anchors/ && update-ca-trust
  Debian, Ubuntu, every program:
    cp {cert} /usr/local/share/ca-certificates/ && update-ca-certificates
  podman, skopeo, buildah only:
{containers}
  docker only:
{docker}
  the nodes of a cluster: the text of {cert}, indented, in install-config.yaml
    additionalTrustBundle: |
      -----BEGIN CERTIFICATE-----",
        containers = for_each("/etc/containers/certs.d"),
        docker = for_each("/etc/docker/certs.d"),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names() {
        for (text, expected) in [
            ("registry.example.org", "registry.example.org"),
            ("*.example.org", "*.example.org"),
            ("localhost", "localhost"),
            ("192.0.2.1", "192.0.2.1"),
            ("[2001:DB8:0::1]", "2001:db8::1"),
            ("::1", "::1"),
        ] {
            assert_eq!(host(text).as_deref(), Ok(expected));
        }
        let long = "x".repeat(64);
        for wrong in [
            "",
            "a:5000",
            "https://a",
            "a b",
            "a..b",
            "a.",
            "*",
            "a.*.b",
            "192.0.2.300",
            "ä.org",
            "[a]",
            &long,
        ] {
            assert!(host(wrong).is_err(), "{wrong:?}");
        }
    }

    #[test]
    fn files_are_named_so_that_engines_can_mount_them() {
        let name = |host| files(Path::new("/d"), host).cert;
        assert_eq!(name("fd00::1"), Path::new("/d/fd00--1.crt"));
        assert_eq!(name("*.a.b"), Path::new("/d/_.a.b.crt"));
    }
}
