//! The URLs that agents and hosts call back: reachable from elsewhere, and of the right service.

use std::net::IpAddr;
use std::sync::Arc;

use net::resolve::Resolver;
use reqwest::StatusCode;
use url::Url;

use super::clients::client;
use super::findings::{SubjectFinding, each};
use crate::site::{SiteFacts, shown};

/// An operation that only the installer API has.
const API_PATH: &str = "/api/assisted-install/v2/openshift-versions";
const HEALTH_PATH: &str = "/health";
const API: &str = "SERVICE_BASE_URL";

pub(super) async fn base_urls(site: Arc<SiteFacts>) -> Vec<SubjectFinding> {
    let client = client(site.ca_pem.as_deref(), false);
    let subjects = site.base_urls().into_iter();
    let subjects = subjects.map(|(name, url)| (name.to_owned(), url)).collect();
    each(subjects, "check that the service runs", |name, url| {
        let client = &client;
        async move {
            match check(client, &name, url).await {
                Ok(finding) => SubjectFinding::passed(name, finding),
                Err((finding, remedy)) => SubjectFinding::failed(name, finding, remedy),
            }
        }
    })
    .await
}

/// Errors: the finding and its remedy.
async fn check(
    client: &Result<reqwest::Client, String>,
    name: &str,
    text: &str,
) -> Result<String, (String, String)> {
    let set = || format!("set {name} to a URL of this host that hosts of clusters reach");
    let url = Url::parse(text).map_err(|e| (format!("no URL: {e}"), set()))?;
    let url_shown = shown(&url);
    let host = url
        .host_str()
        .ok_or_else(|| ("no URL with a host".to_owned(), set()))?;
    let host = host.trim_start_matches('[').trim_end_matches(']');
    let addresses = Resolver::system().lookup(host).await.map_err(|e| {
        let remedy = format!("add {host} to the name server, or set {name} to another URL");
        (format!("{host} does not resolve: {e}"), remedy)
    })?;
    if addresses.iter().all(|one| is_local(*one)) {
        return Err((format!("{url_shown} leads each host to itself"), set()));
    }
    check_name(client, name, &url, host).await
}

/// Whether the right service answers at `url`, by the name of `host`.
///
/// Errors: the finding and its remedy.
async fn check_name(
    client: &Result<reqwest::Client, String>,
    name: &str,
    url: &Url,
    host: &str,
) -> Result<String, (String, String)> {
    let url_shown = shown(url);
    let client = client
        .as_ref()
        .map_err(|e| (e.clone(), format!("correct {name}")))?;
    let refused = get(client, url, HEALTH_PATH).await;
    if refused.is_ok_and(|answer| answer.status() == StatusCode::MISDIRECTED_REQUEST) {
        let finding = format!("the service behind {url_shown} does not serve the name {host}");
        return Err((
            finding,
            format!("add {host} to ALLOWED_HOSTS of that service"),
        ));
    }
    answers(client, name, url)
        .await
        .map(|()| format!("{url_shown} answers"))
        .map_err(|finding| {
            let remedy = format!(
                "start the service behind {url_shown}, and check its certificate and the firewall"
            );
            (finding, remedy)
        })
}

fn is_local(address: IpAddr) -> bool {
    address.is_loopback() || address.is_unspecified()
}

async fn answers(client: &reqwest::Client, name: &str, base: &Url) -> Result<(), String> {
    let is_api = is_api(client, base).await?;
    if name == API {
        return if is_api {
            Ok(())
        } else {
            Err(format!("{} is not the installer API", shown(base)))
        };
    }
    let status = get(client, base, HEALTH_PATH).await?.status();
    if is_api || !status.is_success() {
        return Err(format!("{} is not the image service", shown(base)));
    }
    Ok(())
}

/// Whether the installer API answers, also when it requires a token.
async fn is_api(client: &reqwest::Client, base: &Url) -> Result<bool, String> {
    let answer = get(client, base, API_PATH).await?;
    let is_json = answer
        .headers()
        .get("content-type")
        .is_some_and(|kind| kind.as_bytes().starts_with(b"application/json"));
    let expected = [
        StatusCode::OK,
        StatusCode::UNAUTHORIZED,
        StatusCode::FORBIDDEN,
    ];
    Ok(is_json && expected.contains(&answer.status()))
}

async fn get(
    client: &reqwest::Client,
    base: &Url,
    path: &str,
) -> Result<reqwest::Response, String> {
    let url = format!("{}{path}", base.as_str().trim_end_matches('/'));
    let answer = client.get(url).send().await;
    // The URL may have a password.
    answer.map_err(|e| {
        format!(
            "{} does not answer: {}",
            shown(base),
            model::error::chain(&e.without_url())
        )
    })
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::net::TcpListener;

    use super::*;

    /// A server with the API, or the image service: its base URL.
    async fn server(is_api: bool) -> Url {
        answering(move |asks_api| {
            if asks_api && !is_api {
                "404 Not Found"
            } else {
                "200 OK"
            }
        })
        .await
    }

    /// A server with a status for requests to the API, and to other paths: its base URL.
    async fn answering(status: impl Fn(bool) -> &'static str + Send + 'static) -> Url {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        tokio::spawn(async move {
            while let Ok((mut socket, _)) = listener.accept().await {
                let mut head = [0; 1024];
                let length = socket.read(&mut head).await.unwrap_or(0);
                let status = status(head[..length].starts_with(b"GET /api/"));
                let answer = format!(
                    "HTTP/1.1 {status}\r\ncontent-type: application/json\r\nconnection: close\r\ncontent-length: 2\r\n\r\n{{}}"
                );
                socket.write_all(answer.as_bytes()).await.ok();
            }
        });
        format!("http://user:secret@{address}/").parse().unwrap()
    }

    #[tokio::test]
    async fn the_right_service_has_to_answer() {
        let client = client(None, false).unwrap();
        let (api, images) = (server(true).await, server(false).await);
        answers(&client, API, &api).await.unwrap();
        answers(&client, "IMAGE_SERVICE_BASE_URL", &images)
            .await
            .unwrap();
        let error = answers(&client, API, &images).await.unwrap_err();
        assert!(error.contains("is not the installer API"), "{error}");
        let error = answers(&client, "IMAGE_SERVICE_BASE_URL", &api)
            .await
            .unwrap_err();
        assert!(
            error.contains("is not the image service") && !error.contains("secret"),
            "{error}"
        );
    }

    #[tokio::test]
    async fn a_refused_name_is_reported_with_its_setting() {
        let mut url = answering(|_| "421 Misdirected Request").await;
        url.set_host(Some("localhost")).unwrap();
        let client = client(None, false);
        let (finding, remedy) = check_name(&client, API, &url, "atoll.example")
            .await
            .unwrap_err();
        assert!(finding.contains("atoll.example"), "{finding}");
        assert!(remedy.contains("ALLOWED_HOSTS"), "{remedy}");
    }

    #[tokio::test]
    async fn urls_that_lead_nowhere_fail() {
        let site = |url: &str| {
            Arc::new(SiteFacts {
                service_base_url: Some(url.to_owned()),
                ..SiteFacts::default()
            })
        };
        for (url, expected) in [
            ("http://127.0.0.1:8090", "leads each host to itself"),
            ("http://[::1]:8090", "leads each host to itself"),
            ("http://0.0.0.0:8090", "leads each host to itself"),
            ("api.lab.example", "no URL"),
            ("http://name.invalid:8090", "does not resolve"),
        ] {
            let found = base_urls(site(url)).await.remove(0);
            assert_eq!(found.status, crate::CheckStatus::Failed, "{found:?}");
            assert!(found.finding.contains(expected), "{found:?}");
            assert!(found.remedy.contains("SERVICE_BASE_URL"), "{found:?}");
        }
    }
}
