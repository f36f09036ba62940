//! Logs of the host, collected and uploaded.
//!
//! The host that starts the control plane also gathers those of the bootstrap and of the masters, by a script that the
//! installer puts on it. Its own logs are uploaded before: the script takes minutes, and may end with none.
//!
//! Source: assisted-installer-agent, src/logs_sender.

mod archive;

use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use uuid::Uuid;

pub(crate) use self::archive::LogScope;
use self::archive::{LogArchive, LogSource};
use crate::api::ServiceClient;
use crate::command::succeed;
use crate::{Error, HostFiles};

/// Where archives are written. Not in `/tmp`, which is memory of any size.
const FOLDER: &str = "/var/tmp";
/// The script, of the bootstrap's ignition, and the beginning of its result.
const GATHER: &str = "/usr/local/bin/installer-gather.sh";
const BUNDLE: &str = "/root/log-bundle";
const GATHER_TIMEOUT: Duration = Duration::from_mins(40);

/// Logs of one host.
#[derive(Debug)]
pub(crate) struct HostLogs<'a> {
    pub(crate) api: &'a ServiceClient,
    pub(crate) files: &'a HostFiles,
    pub(crate) cluster_id: Uuid,
    pub(crate) host_id: Uuid,
}

impl HostLogs<'_> {
    /// Collects the logs into an archive, and uploads it. The service hears of the beginning and of the end.
    ///
    /// Errors: the archive cannot be written; the service's.
    pub(crate) async fn upload(&self, scope: &LogScope) -> Result<(), Error> {
        self.report("requested").await;
        let sources = LogSource::list(scope);
        self.upload_archive(&sources, None).await?;
        if scope.is_full
            && let Some(masters) = &scope.bootstrap
        {
            match self.gather(masters).await {
                Ok(Some(bundle)) => {
                    let uploaded = self.upload_archive(&sources, Some(&bundle)).await;
                    let _ = std::fs::remove_file(&bundle);
                    uploaded?;
                }
                Ok(None) => tracing::info!("{GATHER} is missing: the bootstrap has not begun"),
                Err(error) => tracing::warn!(error = error.chain(), "bootstrap logs not gathered"),
            }
        }
        self.report("completed").await;
        Ok(())
    }

    async fn upload_archive(
        &self,
        sources: &[LogSource],
        bundle: Option<&Path>,
    ) -> Result<(), Error> {
        let name = format!("logs-{}.tar.gz", self.host_id);
        let path = self.files.path(FOLDER).join(name);
        let folder = format!("logs_host_{}", self.host_id);
        let archive = LogArchive::new(path.clone(), folder);
        let written = archive.write(sources, bundle).await;
        self.report("collecting").await;
        let sent = match written {
            Ok(()) => {
                self.api
                    .upload_logs(self.cluster_id, self.host_id, &path)
                    .await
            }
            Err(error) => Err(Error::io(format!("writing {}", path.display()), error)),
        };
        let _ = std::fs::remove_file(&path);
        sent
    }

    /// The archive of the installer's script; none before the installation has begun.
    async fn gather(&self, masters: &[IpAddr]) -> Result<Option<PathBuf>, Error> {
        let script = self.files.path(GATHER);
        if !script.exists() {
            return Ok(None);
        }
        let id = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .map_or(0, |time| time.as_secs())
            .to_string();
        let masters: Vec<String> = masters.iter().map(IpAddr::to_string).collect();
        let mut arguments = vec!["--id", &id];
        arguments.extend(masters.iter().map(String::as_str));
        succeed(&script.to_string_lossy(), &arguments, GATHER_TIMEOUT).await?;
        let bundle = self.files.path(&format!("{BUNDLE}-{id}.tar.gz"));
        if bundle.exists() {
            return Ok(Some(bundle));
        }
        Err(Error::message(format!(
            "{GATHER} left no {}",
            bundle.display()
        )))
    }

    async fn report(&self, state: &str) {
        if let Err(error) = self.api.logs_progress(self.host_id, state).await {
            tracing::warn!(error = error.chain(), "collection of logs not reported");
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::io::Read as _;
    use std::os::unix::fs::PermissionsExt as _;
    use std::sync::{Arc, Mutex};

    use axum::Router;
    use axum::body::Bytes;
    use axum::http::Method;
    use clap::Parser as _;

    use super::*;
    use crate::args::AgentArgs;

    /// Uploads of a service: states, and the files of each archive.
    type Received = Arc<Mutex<Vec<String>>>;

    async fn service() -> (ServiceClient, Received) {
        let received = Received::default();
        let record = Arc::clone(&received);
        let app = Router::new().fallback(move |method: Method, body: Bytes| {
            let text = if method == Method::PUT {
                let state: serde_json::Value = serde_json::from_slice(&body).unwrap();
                state["logs_state"].as_str().unwrap().to_owned()
            } else {
                names(&body).join(" ")
            };
            record.lock().unwrap().push(text);
            async {}
        });
        let app = app.layer(axum::extract::DefaultBodyLimit::disable());
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        tokio::spawn(async move { axum::serve(listener, app).await });
        let id = Uuid::nil().to_string();
        let line = ["agent", "--url", &url, "--infra-env-id", &id];
        let api = ServiceClient::new(&AgentArgs::parse_from(line)).unwrap();
        (api, received)
    }

    /// Names of the files in an upload, with the text of the bundle.
    fn names(body: &[u8]) -> Vec<String> {
        let begin = body.windows(4).position(|bytes| bytes == b"\r\n\r\n");
        let gzip = flate2::read::GzDecoder::new(&body[begin.unwrap() + 4..]);
        let mut tar = tar::Archive::new(gzip);
        let entry = |entry: std::io::Result<tar::Entry<'_, _>>| {
            let mut entry = entry.unwrap();
            let path = entry.path().unwrap().display().to_string();
            let (folder, name) = path.split_once('/').unwrap();
            assert_eq!(folder, format!("logs_host_{}", Uuid::nil()));
            let mut text = String::new();
            if name.starts_with("log-bundle") {
                entry.read_to_string(&mut text).unwrap();
                return format!("bundle({})", text.trim());
            }
            name.to_owned()
        };
        tar.entries().unwrap().map(entry).collect()
    }

    async fn uploaded(script: Option<&str>, scope: &LogScope) -> Vec<String> {
        let root = tempfile::tempdir().unwrap();
        for folder in ["var/tmp", "root", "usr/local/bin"] {
            fs::create_dir_all(root.path().join(folder)).unwrap();
        }
        if let Some(script) = script {
            let path = root.path().join("usr/local/bin/installer-gather.sh");
            let bundle = root.path().join("root/log-bundle");
            let text = format!(
                "#!/bin/sh\nbundle={}-$2.tar.gz\n{script}\n",
                bundle.display()
            );
            fs::write(&path, text).unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(0o700)).unwrap();
        }
        let (api, received) = service().await;
        let logs = HostLogs {
            api: &api,
            files: &HostFiles::below(root.path()),
            cluster_id: Uuid::nil(),
            host_id: Uuid::nil(),
        };
        logs.upload(scope).await.unwrap();
        for folder in ["var/tmp", "root"] {
            let left = fs::read_dir(root.path().join(folder)).unwrap().count();
            assert_eq!(left, 0, "{folder}");
        }
        let received = received.lock().unwrap();
        received.clone()
    }

    #[tokio::test]
    async fn the_bootstrap_gathers_the_logs_of_masters() {
        let masters = vec!["10.0.0.2".parse().unwrap(), "2001:db8::2".parse().unwrap()];
        let scope = LogScope {
            is_full: true,
            bootstrap: Some(masters),
        };
        let found = uploaded(Some("shift 2; echo $@ > $bundle"), &scope).await;
        let [requested, collecting, own, again, complete, completed] = found.as_slice() else {
            panic!("{found:?}");
        };
        assert_eq!(
            [requested, collecting, again, completed],
            ["requested", "collecting", "collecting", "completed"]
        );
        assert!(
            own.contains("mount.logs") && !own.contains("bundle"),
            "{own}"
        );
        let bundle = "bundle(10.0.0.2 2001:db8::2)";
        assert!(
            complete.contains(bundle) && complete.contains("mount.logs"),
            "{complete}"
        );
        for script in [None, Some("exit 1"), Some("true")] {
            let found = uploaded(script, &scope).await;
            assert_eq!(found.len(), 4, "{found:?}");
            assert_eq!(found[3], "completed");
        }
    }

    #[tokio::test]
    async fn the_scope_limits_the_archive() {
        let scope = |is_full| LogScope {
            is_full,
            bootstrap: None,
        };
        let found = uploaded(Some("echo > $bundle"), &scope(true)).await;
        assert_eq!(found.len(), 4, "{found:?}");
        assert!(found[2].contains("dmesg.logs"), "{found:?}");
        let found = uploaded(None, &scope(false)).await;
        assert!(
            found[2].contains("mount.logs") && !found[2].contains("dmesg"),
            "{found:?}"
        );
    }
}
