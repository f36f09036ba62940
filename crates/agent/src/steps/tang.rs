//! Step `tang-connectivity-check`: the keys of the servers that unlock encrypted disks.
//!
//! Source: assisted-installer-agent, src/tang_connectivity_check.

use model::steps::{TangConnectivityRequest, TangConnectivityResponse, TangServerResponse};
use net::web::shown;
use serde::Deserialize;
use url::Url;

use super::context::{StepOutcome, only};
use crate::fetch;

#[derive(Debug, Deserialize)]
struct TangTarget {
    #[serde(alias = "URL", alias = "Url")]
    url: Url,
    #[serde(alias = "Thumbprint", default)]
    thumbprint: String,
}

pub(super) async fn run(arguments: &[String]) -> Result<StepOutcome, String> {
    let request: TangConnectivityRequest = only(arguments)?;
    let servers: Vec<TangTarget> = serde_json::from_str(&request.tang_servers)
        .map_err(|error| format!("unexpected tang_servers: {error}"))?;
    let mut responses = Vec::new();
    let mut problems = Vec::new();
    for server in servers {
        match advertisement(&server).await {
            Ok(response) => responses.push(response),
            Err(problem) => problems.push(format!("{}: {problem}", shown(&server.url))),
        }
    }
    let is_success = problems.is_empty();
    let mut outcome = StepOutcome::json(&TangConnectivityResponse {
        is_success,
        tang_server_response: if is_success { responses } else { Vec::new() },
    })?;
    if !is_success {
        (outcome.exit_code, outcome.error) = (-1, problems.join("; "));
    }
    Ok(outcome)
}

async fn advertisement(server: &TangTarget) -> Result<TangServerResponse, String> {
    if server.thumbprint.is_empty() {
        return Err("the server has no thumbprint".to_owned());
    }
    let url = format!(
        "{}/adv/{}",
        server.url.as_str().trim_end_matches('/'),
        server.thumbprint
    );
    let client = fetch::client(None).map_err(|error| error.chain())?;
    let body = fetch::get(client.get(&url)).await?;
    let mut response: TangServerResponse =
        serde_json::from_slice(&body).map_err(|error| format!("unexpected answer: {error}"))?;
    response.tang_url = url;
    Ok(response)
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::Router;
    use axum::routing::get;

    #[tokio::test]
    async fn keys_are_fetched() {
        let answer = r#"{"payload":"p","signatures":[{"protected":"a","signature":"b"}]}"#;
        let app = Router::new().route("/adv/thumb", get(move || async move { answer }));
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        tokio::spawn(async move { axum::serve(listener, app).await });
        let ask = |thumbprint: &str| {
            let servers = format!(r#"[{{"url":"http://{address}","thumbprint":"{thumbprint}"}}]"#);
            let request = TangConnectivityRequest {
                tang_servers: servers,
            };
            vec![serde_json::to_string(&request).unwrap()]
        };
        let outcome = run(&ask("thumb")).await.unwrap();
        let response: TangConnectivityResponse = serde_json::from_str(&outcome.output).unwrap();
        assert!(response.is_success);
        assert_eq!(response.tang_server_response[0].payload, "p");
        assert_eq!(
            response.tang_server_response[0].tang_url,
            format!("http://{address}/adv/thumb")
        );
        let outcome = run(&ask("other")).await.unwrap();
        assert_eq!(outcome.exit_code, -1);
        assert!(outcome.error.contains("404"), "{}", outcome.error);
    }
}
