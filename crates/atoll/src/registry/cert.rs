//! Certificate of the registry, and the steps for clients to trust it.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use clap::Args;
use credentials::certificate;
use credentials::host_name::certificate_name;
use service::file::{folder, write_atomic};
use service::{Error, ResultExt as _, tls};

use crate::terminal;

const PUBLIC: u32 = 0o644;
const OWNER_ONLY: u32 = 0o600;
/// Default port of a registry.
const PORT: u16 = 5000;
/// Units: days. A century, which clocks and formats of all clients can represent.
const MAX_DAYS: i64 = 36_500;

/// Arguments of `atoll registry cert`.
#[derive(Debug, Clone, Args)]
pub(crate) struct CertArgs {
    /// Host names and IP addresses of the registry; the first also names the files
    #[arg(long = "host", value_name = "NAME", required = true, num_args = 1.., value_parser = certificate_name)]
    hosts: Vec<String>,
    /// Folder for NAME.crt and NAME.key
    #[arg(long, value_name = "DIR", default_value = ".")]
    dir: PathBuf,
    /// Validity in days
    #[arg(long, default_value_t = certificate::VALIDITY_DAYS, value_parser = clap::value_parser!(u32).range(1..=MAX_DAYS))]
    days: u32,
    /// RSA 4096 instead of P-256; requires openssl
    #[arg(long)]
    rsa: bool,
    /// Overwrite an existing certificate
    #[arg(long)]
    force: bool,
}

/// Creates the certificate and prints the next steps.
///
/// Errors: existing or unwritable files; a missing openssl.
pub(crate) fn run(arguments: &CertArgs) -> Result<(), Error> {
    let CertArgs { hosts, dir, .. } = arguments;
    let files = files(dir, &hosts[0]);
    let there = [&files.cert, &files.key];
    if let Some(path) = there.into_iter().find(|path| path.exists())
        && !arguments.force
    {
        let doing = format!("writing {}", path.display());
        return Err(Error::new(doing, "it exists; overwrite it with --force"));
    }
    let key = if arguments.rsa {
        Some(rsa_key()?)
    } else {
        None
    };
    let pem = certificate::trust_anchor(hosts, arguments.days, key.as_deref())?;
    folder(dir, 0o755)?;
    // A running registry keeps the old pair until both files are new.
    write_atomic(&files.key, pem.key.as_bytes(), OWNER_ONLY)?;
    write_atomic(&files.cert, pem.cert.as_bytes(), PUBLIC)?;
    let kind = if arguments.rsa { "RSA 4096" } else { "P-256" };
    let made = format!(
        "{kind}, SHA-256, valid {} days, for {}",
        arguments.days,
        hosts.join(", ")
    );
    terminal::print(&steps(&made, hosts, &files));
    Ok(())
}

/// Paths of certificate and key, without colons (volume syntax of container engines) and stars (shell patterns).
fn files(dir: &Path, host: &str) -> tls::CertificateFiles {
    let name = host.replace(':', "-").replace('*', "_");
    tls::CertificateFiles {
        cert: dir.join(format!("{name}.crt")),
        key: dir.join(format!("{name}.key")),
    }
}

/// Generates an RSA key with openssl: ring cannot.
fn rsa_key() -> Result<String, Error> {
    let doing = "generating an RSA key with openssl";
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
                "it is not installed; install it, or omit --rsa for a P-256 key",
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
    String::from_utf8(output.stdout).doing(doing)
}

fn steps(made: &str, hosts: &[String], files: &tls::CertificateFiles) -> String {
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
created {cert} and {key}: {made}

Settings of the registry:
    REGISTRY_HTTP_TLS_CERTIFICATE={cert}
    REGISTRY_HTTP_TLS_KEY={key}

To trust it on clients, run one of these as root (adjust the port if it is not {PORT}):
  RHEL, Fedora, CentOS, all programs:
    cp {cert} /etc/pki/ca-trust/source/anchors/ && update-ca-trust
  Debian, Ubuntu, all programs:
    cp {cert} /usr/local/share/ca-certificates/ && update-ca-certificates
  podman, skopeo, buildah only:
{containers}
  docker only:
{docker}
  cluster nodes: the content of {cert}, indented, in install-config.yaml
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
    fn files_are_named_so_that_engines_can_mount_them() {
        let name = |host| files(Path::new("/d"), host).cert;
        assert_eq!(name("fd00::1"), Path::new("/d/fd00--1.crt"));
        assert_eq!(name("*.a.b"), Path::new("/d/_.a.b.crt"));
    }
}
