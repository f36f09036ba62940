//! Logins and certificates for one side of a run, under the flags of oc-mirror v2 and skopeo.

use std::fs;
use std::path::{Path, PathBuf};

use clap::Args;
use model::Error;
use oci_client::{ClientIdentity, Credentials, Login, registry_logins};
use secrecy::{ExposeSecret as _, SecretString};

/// Access to source registries.
#[derive(Debug, Clone, Args)]
#[group(skip)]
#[expect(clippy::struct_field_names, reason = "they are the names of the flags")]
pub(super) struct SourceLoginArgs {
    /// Path of the authentication file of source registries. Default: --authfile
    #[arg(long, value_name = "FILE", hide = true)]
    src_authfile: Option<PathBuf>,
    /// Login for all source registries; others see it in the list of processes, prefer --authfile
    #[arg(long, value_name = "USER[:PASSWORD]")]
    src_creds: Option<SecretString>,
    /// User for all source registries
    #[arg(long, value_name = "USER", hide = true, conflicts_with = "src_creds")]
    src_username: Option<String>,
    /// Password for all source registries
    #[arg(long, value_name = "PASSWORD", hide = true, requires = "src_username")]
    src_password: Option<SecretString>,
    /// Bearer token for all source registries
    #[arg(long, value_name = "TOKEN", hide = true)]
    src_registry_token: Option<SecretString>,
    /// Access source registries without a login
    #[arg(long, conflicts_with_all = ["src_creds", "src_username", "src_registry_token", "src_authfile"])]
    src_no_creds: bool,
    /// Folder with certificates for source registries: *.crt to trust, *.cert and *.key of this client
    #[arg(long, value_name = "DIR")]
    src_cert_dir: Option<PathBuf>,
}

/// Access to the target registry.
#[derive(Debug, Clone, Args)]
#[group(skip)]
#[expect(clippy::struct_field_names, reason = "they are the names of the flags")]
pub(super) struct TargetLoginArgs {
    /// Path of the authentication file of the target registry. Default: --authfile
    #[arg(long, value_name = "FILE", hide = true)]
    dest_authfile: Option<PathBuf>,
    /// Login for the target registry; others see it in the list of processes, prefer --authfile
    #[arg(long, value_name = "USER[:PASSWORD]")]
    dest_creds: Option<SecretString>,
    /// User for the target registry
    #[arg(long, value_name = "USER", hide = true, conflicts_with = "dest_creds")]
    dest_username: Option<String>,
    /// Password for the target registry
    #[arg(long, value_name = "PASSWORD", hide = true, requires = "dest_username")]
    dest_password: Option<SecretString>,
    /// Bearer token for the target registry
    #[arg(long, value_name = "TOKEN", hide = true)]
    dest_registry_token: Option<SecretString>,
    /// Access the target registry without a login
    #[arg(long, conflicts_with_all = ["dest_creds", "dest_username", "dest_registry_token", "dest_authfile"])]
    dest_no_creds: bool,
    /// Folder with certificates for the target registry: *.crt to trust, *.cert and *.key of this client. Default: the
    /// registry's folder in certs.d of container tools
    #[arg(long, value_name = "DIR")]
    dest_cert_dir: Option<PathBuf>,
}

/// The login of one side.
pub(super) struct GivenLogin<'a> {
    authfile: Option<&'a Path>,
    creds: Option<&'a SecretString>,
    username: Option<&'a str>,
    password: Option<&'a SecretString>,
    token: Option<&'a SecretString>,
    is_anonymous: bool,
    certificates: Option<&'a Path>,
}

impl SourceLoginArgs {
    pub(super) fn given(&self) -> GivenLogin<'_> {
        GivenLogin {
            authfile: self.src_authfile.as_deref(),
            creds: self.src_creds.as_ref(),
            username: self.src_username.as_deref(),
            password: self.src_password.as_ref(),
            token: self.src_registry_token.as_ref(),
            is_anonymous: self.src_no_creds,
            certificates: self.src_cert_dir.as_deref(),
        }
    }
}

impl TargetLoginArgs {
    pub(super) fn given(&self) -> GivenLogin<'_> {
        GivenLogin {
            authfile: self.dest_authfile.as_deref(),
            creds: self.dest_creds.as_ref(),
            username: self.dest_username.as_deref(),
            password: self.dest_password.as_ref(),
            token: self.dest_registry_token.as_ref(),
            is_anonymous: self.dest_no_creds,
            certificates: self.dest_cert_dir.as_deref(),
        }
    }
}

impl GivenLogin<'_> {
    /// The given login for all registries of this side, or else those of the authentication file.
    ///
    /// Errors: Invalid – a user without a name, or an authentication file that cannot be read.
    pub(super) fn credentials(&self, authfile: Option<&Path>) -> Result<Credentials, Error> {
        if self.is_anonymous {
            return Ok(Credentials::anonymous());
        }
        if let Some(token) = self.token {
            return Ok(Credentials::token_everywhere(token.clone()));
        }
        let pair = match (self.creds, self.username) {
            (Some(creds), _) => {
                let creds = creds.expose_secret();
                let (user, password) = creds.split_once(':').unwrap_or((creds, ""));
                Some((user, password))
            }
            (None, Some(user)) => {
                let password = self.password.map_or("", |it| it.expose_secret());
                Some((user, password))
            }
            (None, None) => None,
        };
        match pair {
            Some(("", _)) => {
                let reason = "expected USER:PASSWORD, the user is empty";
                Err(Error::invalid("login", reason))
            }
            Some((user, password)) => Ok(Credentials::everywhere(Login {
                user: user.to_owned(),
                password: password.into(),
            })),
            None => registry_logins(self.authfile.or(authfile)),
        }
    }

    /// Certificates to trust, as PEM, and the certificate of this client: those of the given folder, or else of the usual one
    /// for `registry`. Source: containers-certs.d(5).
    ///
    /// Errors: Invalid – the folder or a file in it cannot be read, or a certificate lacks its key.
    pub(super) fn certificates(
        &self,
        registry: Option<&str>,
    ) -> Result<(Vec<u8>, Option<ClientIdentity>), Error> {
        let (mut trusted, mut identity) = (Vec::new(), None);
        let usual = || {
            let home = std::env::home_dir();
            usual_folder(registry?, home.as_deref())
        };
        let Some(folder) = self.certificates.map(Path::to_owned).or_else(usual) else {
            return Ok((trusted, identity));
        };
        let folder = folder.as_path();
        let wrong =
            |path: &Path, reason: String| Error::invalid(path.display().to_string(), reason);
        let read = |path: &Path| fs::read(path).map_err(|e| wrong(path, e.to_string()));
        let entries = fs::read_dir(folder).map_err(|e| wrong(folder, e.to_string()))?;
        let mut paths = Vec::new();
        for entry in entries {
            paths.push(entry.map_err(|e| wrong(folder, e.to_string()))?.path());
        }
        paths.sort();
        for path in paths {
            let end = path.extension().and_then(|end| end.to_str());
            match end {
                Some("crt") => {
                    trusted.extend(read(&path)?);
                    trusted.push(b'\n');
                }
                Some("cert") => {
                    let key = path.with_extension("key");
                    if !key.exists() {
                        let reason = format!("its key {} is missing", key.display());
                        return Err(wrong(&path, reason));
                    }
                    identity.get_or_insert(ClientIdentity {
                        chain_pem: read(&path)?,
                        key_pem: SecretString::from(
                            String::from_utf8_lossy(&read(&key)?).into_owned(),
                        ),
                    });
                }
                Some("key") if !path.with_extension("cert").exists() => {
                    let reason = "the certificate of this key is missing: its name ends in .cert, \
                                  certificates to trust end in .crt";
                    return Err(wrong(&path, reason.to_owned()));
                }
                _ => {}
            }
        }
        Ok((trusted, identity))
    }
}

/// The folder with certificates for a registry, `HOST[:PORT]`: the first of those that container tools read. They pass over
/// folders that other users alone may read.
fn usual_folder(registry: &str, home: Option<&Path>) -> Option<PathBuf> {
    let own = home.map(|home| home.join(".config/containers/certs.d"));
    let all = ["/etc/containers/certs.d", "/etc/docker/certs.d"].map(PathBuf::from);
    let folders = own.into_iter().chain(all);
    let mut folders = folders.map(|folder| folder.join(registry));
    folders.find(|folder| fs::read_dir(folder).is_ok())
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Debug, Parser)]
    struct CommandLine {
        #[command(flatten)]
        source: SourceLoginArgs,
        #[command(flatten)]
        target: TargetLoginArgs,
    }

    async fn login(credentials: &Credentials) -> Option<String> {
        let login = credentials.login("r.example:5000", None).await.unwrap();
        login.map(|it| format!("{}/{}", it.user, it.password.expose_secret()))
    }

    #[tokio::test]
    async fn logins_of_flags_are_for_all_registries_of_their_side() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("auth.json");
        let text = r#"{"auths": {"r.example:5000": {"auth": "ZmlsZTpwYXNz"}}}"#;
        fs::write(&file, text).unwrap();
        let file = file.to_str().unwrap();
        for (flags, source, target) in [
            (vec![], Some("file/pass"), Some("file/pass")),
            (
                vec!["--src-creds", "me:a:b"],
                Some("me/a:b"),
                Some("file/pass"),
            ),
            (vec!["--dest-creds", "me"], Some("file/pass"), Some("me/")),
            (
                vec!["--src-username", "me", "--src-password", "x"],
                Some("me/x"),
                Some("file/pass"),
            ),
            (vec!["--src-no-creds"], None, Some("file/pass")),
        ] {
            let words = ["m"].into_iter().chain(flags.iter().copied());
            let line = CommandLine::try_parse_from(words).unwrap();
            let shown = format!("{line:?}");
            assert!(!shown.contains("a:b"), "{shown}");
            let default = Some(Path::new(file));
            let own = line.source.given().credentials(default).unwrap();
            assert_eq!(login(&own).await.as_deref(), source, "{flags:?}");
            let own = line.target.given().credentials(default).unwrap();
            assert_eq!(login(&own).await.as_deref(), target, "{flags:?}");
        }
        let line = CommandLine::try_parse_from(["m", "--src-creds", ":x"]).unwrap();
        assert!(line.source.given().credentials(None).is_err());
        assert!(CommandLine::try_parse_from(["m", "--src-password", "x"]).is_err());
    }

    #[test]
    fn the_usual_folder_is_that_of_the_registry_and_its_port() {
        let home = tempfile::tempdir().unwrap();
        let folder = home
            .path()
            .join(".config/containers/certs.d/r.example:5000");
        assert_eq!(usual_folder("r.example:5000", Some(home.path())), None);
        fs::create_dir_all(&folder).unwrap();
        let found = usual_folder("r.example:5000", Some(home.path()));
        assert_eq!(found, Some(folder));
        assert_eq!(usual_folder("r.example", Some(home.path())), None);
    }

    #[test]
    fn folders_of_certificates_are_those_of_container_tools() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        let folder = dir.path().to_str().unwrap();
        let line = CommandLine::try_parse_from(["m", "--dest-cert-dir", folder]).unwrap();
        let given = || {
            line.target
                .given()
                .certificates(None)
                .map_err(|e| e.to_string())
        };
        for (name, text) in [("a.crt", "A"), ("b.crt", "B"), ("notes.txt", "x")] {
            fs::write(at(name), text).unwrap();
        }
        let (trusted, identity) = given().unwrap();
        assert_eq!(trusted, b"A\nB\n");
        assert!(identity.is_none());
        fs::write(at("client.cert"), "C").unwrap();
        assert!(given().unwrap_err().contains("client.key is missing"));
        fs::write(at("client.key"), "K").unwrap();
        let (_, identity) = given().unwrap();
        assert_eq!(identity.unwrap().chain_pem, b"C");
        fs::remove_file(at("client.cert")).unwrap();
        assert!(given().unwrap_err().contains("end in .crt"));
        fs::remove_dir_all(dir.path()).unwrap();
        assert!(given().is_err());
    }
}
