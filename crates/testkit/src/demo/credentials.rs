//! Downloads and checks the credentials of a new cluster.

use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use reqwest::Method;
use serde_json::Value;

use super::client::DemoClient;

/// Paths of the credentials.
pub(super) struct ClusterCredentials {
    pub(super) kubeconfig: PathBuf,
    pub(super) password: PathBuf,
    pub(super) server: String,
}

/// Downloads kubeconfig and kubeadmin-password into `work`.
pub(super) async fn download(
    client: &DemoClient,
    cluster_id: &str,
    work: &Path,
) -> Result<ClusterCredentials> {
    let fetch = async |name: &str| -> Result<(PathBuf, String)> {
        let path = format!("/v2/clusters/{cluster_id}/downloads/credentials?file_name={name}");
        let text = client.send(Method::GET, &path, None).await?.text();
        let file = work.join(name);
        write_private(&file, &text)
            .with_context(|| format!("{}: cannot be written", file.display()))?;
        Ok((file, text))
    };
    let (kubeconfig, text) = fetch("kubeconfig").await?;
    let server = check_kubeconfig(&text).context("the kubeconfig cannot be used")?;
    let (password, text) = fetch("kubeadmin-password").await?;
    ensure!(
        text.len() >= 16 && !text.contains(char::is_whitespace),
        "the kubeadmin password is too short or no password"
    );
    Ok(ClusterCredentials {
        kubeconfig,
        password,
        server,
    })
}

fn write_private(path: &Path, text: &str) -> std::io::Result<()> {
    let mut file = std::fs::File::options()
        .create(true)
        .write(true)
        .truncate(true)
        .mode(0o600)
        .open(path)?;
    std::io::Write::write_all(&mut file, text.as_bytes())
}

/// Parses a kubeconfig; gives the address of the API that it leads to.
fn check_kubeconfig(text: &str) -> Result<String> {
    let config: Value = serde_yaml::from_str(text).context("it is not YAML")?;
    let cluster = &config["clusters"][0]["cluster"];
    let server = cluster["server"]
        .as_str()
        .context("its cluster has no server")?;
    let decode = |value: &Value, name: &str| -> Result<String> {
        let data = value[name]
            .as_str()
            .with_context(|| format!("it has no {name}"))?;
        let bytes = STANDARD
            .decode(data)
            .with_context(|| format!("its {name} is not base64"))?;
        String::from_utf8(bytes).with_context(|| format!("its {name} is not text"))
    };
    let authorities = decode(cluster, "certificate-authority-data")?;
    ensure!(
        authorities.contains("BEGIN CERTIFICATE"),
        "its certificate-authority-data is not PEM"
    );
    let user = &config["users"][0]["user"];
    ensure!(
        decode(user, "client-certificate-data")?.contains("BEGIN CERTIFICATE"),
        "its client certificate is not PEM"
    );
    ensure!(
        decode(user, "client-key-data")?.contains("PRIVATE KEY"),
        "its client key is not PEM"
    );
    Ok(server.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kubeconfig(server: &str) -> String {
        let (cert, key) = (
            STANDARD.encode("-----BEGIN CERTIFICATE-----"),
            STANDARD.encode("-----BEGIN EC PRIVATE KEY-----"),
        );
        format!(
            "apiVersion: v1\nclusters:\n- name: a\n  cluster:\n    {server}\n    certificate-authority-data: {cert}\n\
             users:\n- name: admin\n  user:\n    client-certificate-data: {cert}\n    client-key-data: {key}\n"
        )
    }

    #[test]
    fn a_complete_kubeconfig_is_taken() {
        let text = kubeconfig("server: https://api.demo.example.org:6443");
        assert_eq!(
            check_kubeconfig(&text).unwrap(),
            "https://api.demo.example.org:6443"
        );
    }

    #[test]
    fn an_incomplete_one_names_the_missing_part() {
        let error = check_kubeconfig(&kubeconfig("other: x")).unwrap_err();
        assert!(error.to_string().contains("server"));
        assert!(check_kubeconfig("a: [").is_err());
    }
}
