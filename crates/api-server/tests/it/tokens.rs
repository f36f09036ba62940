//! Tokens of images, agents and users, and the keys of their issuer.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use api_server::operations::access::Scheme;
use api_server::settings::BaseUrl;
use reqwest::Method;
use serde_json::{Value, json};
use testkit::tokens::TokenKey;

use crate::harness::{AGENT, PULL_SECRET, Server, cluster_params, host_id, merged};
use crate::installation::{finalize_single_node, install_single_node};
use crate::secured::{
    AUDIENCE, ISSUER, SecuredServer, agent_token, cloud_token, image_token, now, with,
};

#[tokio::test(flavor = "multi_thread")]
async fn images_carry_the_tokens_of_their_agents() {
    let site = SecuredServer::local(|_| {}).await;
    let own = site.resources("own").await;
    let path = format!("/v2/infra-envs/{}", own.infra_env);
    let infra_env = site.get("own", &path).await.expect(200);
    let url = infra_env["download_url"].as_str().unwrap();
    let (_, rest) = url.split_once("/byapikey/").expect(url);
    let api_key = rest.split('/').next().unwrap();
    let file = format!("{path}/downloads/files?file_name=discovery.ign");
    let request = site.server.request(Method::GET, &file);
    let ignition = Server::send(with(request, Scheme::Url, api_key)).await;
    assert_eq!(ignition.status, 200, "{}", ignition.text);
    // Downloads of an image in parts get parts of the same bytes.
    let request = site.server.request(Method::GET, &file);
    let again = Server::send(with(request, Scheme::Url, api_key)).await;
    assert_eq!(again.text, ignition.text);
    let again = site.get("own", &path).await.expect(200);
    assert_eq!(again["download_url"], url);
    let token = agent_token(&ignition.body);
    let poll = site.server.request(
        Method::GET,
        &format!("{path}/hosts/{}/instructions", own.host),
    );
    Server::send(with(poll, Scheme::Agent, &token))
        .await
        .expect(200);
    // Boot scripts of the firmware, which has no credentials, name signed URLs.
    let script = format!("{path}/downloads/files?file_name=ipxe-script");
    let script = site.get("own", &script).await.text;
    assert!(script.contains("&api_key="), "{script}");
    let link = format!("{path}/downloads/files-presigned?file_name=discovery.ign");
    let link = site.get("own", &link).await.expect(200);
    assert!(
        link["url"].as_str().unwrap().contains("&api_key="),
        "{link}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn tokens_of_images_expire_and_are_withdrawn() {
    let site =
        SecuredServer::oidc(|settings| settings.image_expiration_time = Duration::ZERO).await;
    let own = site.resources("alice").await;
    let path = format!("/v2/infra-envs/{}", own.infra_env);
    let token = image_token(&site, "alice", &own.infra_env).await;
    let request = site.server.request(Method::GET, &path);
    let expired = Server::send(with(request, Scheme::Image, &token))
        .await
        .expect(401);
    assert!(
        expired["message"].as_str().unwrap().contains("expired"),
        "{expired}"
    );

    let site = SecuredServer::oidc(|_| {}).await;
    let own = site.resources("alice").await;
    let path = format!("/v2/infra-envs/{}", own.infra_env);
    let link = site
        .get("alice", &format!("{path}/downloads/image-url"))
        .await
        .expect(200);
    assert_ne!(link["expires_at"], "0001-01-01T00:00:00.000Z");
    let token = image_token(&site, "alice", &own.infra_env).await;
    let open = async |token: &str| {
        let request = site.server.request(Method::GET, &path);
        Server::send(with(request, Scheme::Image, token)).await
    };
    let shown = open(&token).await.expect(200);
    assert!(
        shown["download_url"].as_str().unwrap().contains("/byid/"),
        "{shown}"
    );
    let regenerate = format!("{path}/regenerate-signing-key");
    site.send("alice", Method::POST, &regenerate, None)
        .await
        .expect(204);
    open(&token).await.expect(401);
    let token = image_token(&site, "alice", &own.infra_env).await;
    open(&token).await.expect(200);
    let ignition = format!("{path}/downloads/files?file_name=discovery.ign");
    let ignition = site.get("alice", &ignition).await.expect(200);
    assert_eq!(agent_token(&ignition), cloud_token("alice"));
}

#[tokio::test(flavor = "multi_thread")]
async fn agents_of_an_issuer_need_a_pull_secret_or_a_key() {
    let site = SecuredServer::oidc(|_| {}).await;
    let params = json!({ "name": "x", "pull_secret": PULL_SECRET, "openshift_version": "4.18" });
    let refused = site
        .send("alice", Method::POST, "/v2/infra-envs", Some(&params))
        .await;
    let refused = refused.expect(400);
    assert!(
        refused["reason"]
            .as_str()
            .unwrap()
            .contains("cloud.openshift.com"),
        "{refused}"
    );
    let params = merged(cluster_params(), json!({ "name": "x" }));
    site.send("alice", Method::POST, "/v2/clusters", Some(&params))
        .await
        .expect(400);

    let keys = TokenKey::new().unwrap();
    let site = SecuredServer::oidc(|settings| {
        settings.ec_public_key_pem.clone_from(&keys.public_pem);
        settings.ec_private_key_pem = keys.private_pem.clone().into();
    })
    .await;
    let params = json!({ "name": "x", "pull_secret": PULL_SECRET, "openshift_version": "4.18" });
    let created = site
        .send("alice", Method::POST, "/v2/infra-envs", Some(&params))
        .await;
    let id = created.expect(201)["id"].as_str().unwrap().to_owned();
    let ignition = format!("/v2/infra-envs/{id}/downloads/files?file_name=discovery.ign");
    let token = agent_token(&site.get("alice", &ignition).await.expect(200));
    let params = json!({ "host_id": host_id(1), "discovery_agent_version": AGENT });
    let register = site
        .server
        .request(Method::POST, &format!("/v2/infra-envs/{id}/hosts"));
    let register = with(register.json(&params), Scheme::Agent, &token);
    Server::send(register).await.expect(201);
}

#[tokio::test(flavor = "multi_thread")]
async fn signed_links_need_no_token() {
    let site = SecuredServer::local(|_| {}).await;
    let own = site.resources("own").await;
    let manifests = format!("/v2/clusters/{}/manifests", own.cluster);
    let manifest = json!({ "folder": "openshift", "file_name": "a.yaml", "content": "a2luZDogQ29uZmlnTWFwCg==" });
    site.send("own", Method::POST, &manifests, Some(&manifest))
        .await
        .expect(201);
    let link = format!(
        "/v2/clusters/{}/downloads/files-presigned?file_name=manifests&additional_name=openshift/a.yaml",
        own.cluster
    );
    let link = site.get("own", &link).await.expect(200);
    let (_, path) = link["url"]
        .as_str()
        .unwrap()
        .split_once("/api/assisted-install")
        .unwrap();
    assert_eq!(site.server.get(path).await.text, "kind: ConfigMap\n");
    site.server
        .get(&path.replace("a.yaml", "b.yaml"))
        .await
        .expect(403);
    let (unsigned, _) = path.split_once("&expires").unwrap();
    site.server.get(unsigned).await.expect(401);
}

/// A token issuer that serves `keys`, and counts the requests.
async fn issuer(keys: Value) -> (String, Arc<AtomicUsize>) {
    let count = Arc::new(AtomicUsize::new(0));
    let counted = count.clone();
    let serve = axum::routing::get(move || async move {
        counted.fetch_add(1, Ordering::Relaxed);
        axum::Json(keys)
    });
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/certs", listener.local_addr().unwrap());
    let router = axum::Router::new().route("/certs", serve);
    tokio::spawn(async move { axum::serve(listener, router).await });
    (url, count)
}

// limit: fetches of the keys of a token issuer
#[tokio::test(flavor = "multi_thread")]
async fn keys_are_fetched_once_for_many_tokens() {
    let keys = TokenKey::new().unwrap();
    let (url, count) = issuer(keys.jwks("served")).await;
    let site = SecuredServer::oidc(|settings| {
        settings.jwks_cert = String::new();
        settings.jwks_url = Some(BaseUrl(url));
    })
    .await;
    let claims = json!({ "iss": ISSUER, "aud": AUDIENCE, "exp": now() + 600, "username": "alice" });
    let list = async |token: String| {
        let request = site.server.request(Method::GET, "/v2/clusters");
        Server::send(with(request, Scheme::User, &format!("Bearer {token}"))).await
    };
    for number in 0..20 {
        let unknown = keys
            .sign_with_id(&format!("unknown-{number}"), &claims)
            .unwrap();
        list(unknown).await.expect(401);
        let known = keys.sign_with_id("served", &claims).unwrap();
        list(known).await.expect(200);
    }
    assert_eq!(count.load(Ordering::Relaxed), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_unreachable_issuer_is_no_refusal() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/certs", listener.local_addr().unwrap());
    drop(listener);
    let site = SecuredServer::oidc(|settings| {
        settings.jwks_cert = String::new();
        settings.jwks_url = Some(BaseUrl(url));
    })
    .await;
    let answer = site.get("alice", "/v2/clusters").await;
    assert_eq!(answer.header("retry-after"), "5");
    answer.expect(503);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_code_of_a_link_is_exchanged_once() {
    let site = SecuredServer::local(|_| {}).await;
    let code = |key: &TokenKey, more: Value| {
        let claims = json!({
            "auth_scheme": "logInCode", "sub": "alice", "exp": now() + 600,
            "jti": "0d7c0a52-9b9d-4f7c-9d0a-0d9b6f7f0a01",
        });
        key.sign(&merged(claims, more)).unwrap()
    };
    let redeem = async |code: &str| {
        let url = format!("{}/log-in-codes", site.server.url);
        let request = service::http_client(None, false)
            .unwrap()
            .post(url)
            .json(&json!({ "code": code }));
        Server::send(request).await
    };
    for wrong in [
        code(&site.stranger, json!({})),
        code(&site.key, json!({ "exp": now() - 1 })),
        code(&site.key, json!({ "exp": null })),
        code(&site.key, json!({ "jti": "x" })),
        code(&site.key, json!({ "sub": "" })),
        site.user("alice").replace("Bearer ", ""),
        "x".to_owned(),
    ] {
        assert_eq!(redeem(&wrong).await.status, 401, "{wrong}");
    }
    let good = code(&site.key, json!({}));
    // A code opens no operation by itself.
    let list = site.server.request(Method::GET, "/v2/clusters");
    assert_eq!(
        Server::send(with(list, Scheme::User, &good)).await.status,
        403
    );
    let answers = futures_util::future::join_all((0..8).map(|_| redeem(&good))).await;
    let (won, lost): (Vec<_>, Vec<_>) = answers.iter().partition(|one| one.status == 200);
    assert_eq!((won.len(), lost.len()), (1, 7));
    for answer in lost {
        assert!(answer.text.contains("was used"), "{}", answer.text);
    }
    let token = won[0].body["token"].as_str().unwrap();
    let list = site.server.request(Method::GET, "/v2/clusters");
    Server::send(with(list, Scheme::User, token))
        .await
        .expect(200);
}

#[tokio::test(flavor = "multi_thread")]
async fn readers_get_files_without_secrets() {
    let server = Server::start().await;
    let (cluster, host) = finalize_single_node(&server).await;
    let site = SecuredServer::oidc_after(server).await;
    let (infra_env, host_id) = host.split_once("/hosts/").unwrap();
    let cluster = format!("/v2/clusters/{cluster}");
    let discovery = format!("{infra_env}/downloads/files?file_name=discovery.ign");
    let token = agent_token(&site.get("root", &discovery).await.expect(200));
    let password = "dXNlcjpwYXNzd29yZA==";
    assert!(PULL_SECRET.contains(password));
    let of_host = infra_env.replace("infra-envs", "infra-env");
    for path in [
        discovery,
        format!("{of_host}/hosts/{host_id}/downloads/ignition"),
        format!("{cluster}/downloads/files?file_name=bootstrap.ign"),
        format!("{cluster}/downloads/files?file_name=master.ign"),
        format!("{cluster}/downloads/files?file_name=install-config.yaml"),
        format!("{cluster}/install-config"),
    ] {
        let whole = site.get("root", &path).await;
        assert_eq!(whole.status, 200, "{path}: {}", whole.text);
        let shown = site.get("auditor", &path).await;
        assert_eq!(shown.status, 200, "{path}: {}", shown.text);
        let text = &shown.text;
        assert!(!text.contains(&token) && !text.contains(password), "{text}");
        let sources = text.matches("\"source\":\"").count();
        let redacted = text.matches("\"source\":\"data:,redacted\"").count();
        assert_eq!(sources, redacted, "{text}");
        if path.contains("downloads") {
            let name = shown.header("content-disposition");
            assert!(name.contains("\"redacted-"), "{name}");
        }
        if path.contains("file_name") && path.starts_with(&cluster) {
            let link = path.replace("files?", "files-presigned?");
            for (user, expected) in [("auditor", text), ("root", &whole.text)] {
                let link = site.get(user, &link).await.expect(200);
                let url = link["url"].as_str().unwrap();
                let (_, path) = url.split_once("/api/assisted-install").unwrap();
                assert_eq!(site.server.get(path).await.text, *expected);
                if user == "auditor" {
                    let whole = path.replace("&redacted=true", "");
                    site.server.get(&whole).await.expect(403);
                }
            }
        }
    }
    // Nor do they get links with a token.
    let shown = site.get("auditor", infra_env).await.expect(200);
    let url = shown["download_url"].as_str().unwrap();
    assert!(url.contains("/byid/"), "{url}");
    let listed = site.get("auditor", "/v2/infra-envs").await.text;
    assert!(!listed.contains("/bytoken/"), "{listed}");
    let script = format!("{infra_env}/downloads/files?file_name=ipxe-script");
    let script_for = async |user: &str| site.get(user, &script).await.text;
    assert!(script_for("root").await.contains("image_token="));
    assert!(!script_for("auditor").await.contains("image_token="));

    // The agent and the controller get files of their cluster while it is installed.
    let download = async |path: String| {
        let request = site.server.request(Method::GET, &path);
        Server::send(with(request, Scheme::Agent, &token)).await
    };
    let credentials = |name: &str| format!("{cluster}/downloads/credentials?file_name={name}");
    assert_eq!(
        download(credentials("kubeconfig-noingress")).await.status,
        200
    );
    download(credentials("kubeadmin-password"))
        .await
        .expect(403);
    let files = format!("{cluster}/downloads/files?file_name=bootstrap.ign");
    let bootstrap = download(files.clone()).await;
    assert_eq!(bootstrap.text, site.get("root", &files).await.text);
}

#[tokio::test(flavor = "multi_thread")]
async fn tokens_of_agents_are_no_credentials_of_clusters() {
    let refused = async |site: &SecuredServer, cluster: &str, token: &str| {
        for name in ["kubeconfig", "kubeadmin-password"] {
            let path = format!("/v2/clusters/{cluster}/downloads/credentials?file_name={name}");
            let request = site.server.request(Method::GET, &path);
            let answer = Server::send(with(request, Scheme::Agent, token)).await;
            answer.expect(403);
        }
        let path = format!("/v2/clusters/{cluster}/downloads/files?file_name=bootstrap.ign");
        let request = site.server.request(Method::GET, &path);
        Server::send(with(request, Scheme::Agent, token))
            .await
            .expect(403);
    };
    let site = SecuredServer::local(|_| {}).await;
    let own = site.resources("own").await;
    refused(&site, &own.cluster, &own.agent).await;

    let server = Server::start().await;
    let (cluster, host) = install_single_node(&server).await;
    let site = SecuredServer::oidc_after(server).await;
    let (infra_env, _) = host.split_once("/hosts/").unwrap();
    let ignition = format!("{infra_env}/downloads/files?file_name=discovery.ign");
    let token = agent_token(&site.get("root", &ignition).await.expect(200));
    refused(&site, &cluster, &token).await;
    let of_host = host.replace("infra-envs", "infra-env");
    let request = site
        .server
        .request(Method::GET, &format!("{of_host}/downloads/ignition"));
    Server::send(with(request, Scheme::Agent, &token))
        .await
        .expect(403);
}

#[tokio::test(flavor = "multi_thread")]
async fn tokens_of_an_infra_env_are_withdrawn() {
    let site = SecuredServer::local(|_| {}).await;
    let own = site.resources("own").await;
    let path = format!("/v2/infra-envs/{}", own.infra_env);
    let hosts = format!("{path}/hosts");
    let replica = Server::on(site.server.database.clone(), |settings| {
        settings.auth_type = api_server::settings::AuthType::Local;
        settings.ec_public_key_pem.clone_from(&site.key.public_pem);
        settings.ec_private_key_pem = site.key.private_pem.clone().into();
    })
    .await;
    replica.wait_ready().await;
    let listed = async |server: &Server, token: &str| {
        let request = server.request(Method::GET, &hosts);
        Server::send(with(request, Scheme::Agent, token)).await
    };
    let ignition = format!("{path}/downloads/files?file_name=discovery.ign");
    let issued = async || agent_token(&site.get("own", &ignition).await.expect(200));
    let api_key = async || {
        let shown = site.get("own", &path).await.expect(200);
        let url = shown["download_url"].as_str().unwrap().to_owned();
        let (_, rest) = url.split_once("/byapikey/").unwrap();
        rest.split('/').next().unwrap().to_owned()
    };
    let opened = async |key: &str| {
        let request = site.server.request(Method::GET, &ignition);
        Server::send(with(request, Scheme::Url, key)).await
    };
    let (token, key) = (issued().await, api_key().await);
    // That of a resource of an earlier version has no number, and is valid until the first withdrawal.
    for token in [&token, &own.agent] {
        listed(&site.server, token).await.expect(200);
        listed(&replica, token).await.expect(200);
    }
    opened(&key).await.expect(200);
    let regenerate = format!("{path}/regenerate-signing-key");
    site.send("own", Method::POST, &regenerate, None)
        .await
        .expect(204);
    for token in [&token, &own.agent] {
        let refused = listed(&site.server, token).await.expect(401);
        assert!(
            refused["message"].as_str().unwrap().contains("withdrawn"),
            "{refused}"
        );
        replica
            .until("the replica refuses it", async || {
                match listed(&replica, token).await {
                    answer if answer.status == 401 => Ok(()),
                    answer => Err(answer.text),
                }
            })
            .await;
    }
    opened(&key).await.expect(401);
    let (token, key) = (issued().await, api_key().await);
    listed(&site.server, &token).await.expect(200);
    listed(&replica, &token).await.expect(200);
    opened(&key).await.expect(200);
}

// limit: tokens of agents and image links
#[tokio::test(flavor = "multi_thread")]
async fn tokens_of_agents_expire() {
    let site =
        SecuredServer::local(|settings| settings.agent_token_lifetime = Duration::ZERO).await;
    let own = site.resources("own").await;
    let path = format!("/v2/infra-envs/{}", own.infra_env);
    let ignition = format!("{path}/downloads/files?file_name=discovery.ign");
    let token = agent_token(&site.get("own", &ignition).await.expect(200));
    let poll = format!("{path}/hosts/{}/instructions", own.host);
    site.server
        .until("the token has expired", async || {
            let request = site.server.request(Method::GET, &poll);
            let answer = Server::send(with(request, Scheme::Agent, &token)).await;
            match answer.status.as_u16() {
                401 if answer.text.contains("expired") => Ok(()),
                _ => Err(answer.text),
            }
        })
        .await;
}
