//! Boots of hosts by simulated BMCs.

use std::collections::BTreeSet;
use std::io::Write as _;

use api_server::Settings;
use host_sim::bmc::{
    BmcBootSource, BmcFault, BmcFaultRule, BmcProfile, BmcRack, BmcRackPlan, SimulatedPower,
};
use reqwest::Method;
use serde_json::{Value, json};
use sqlx::{Connection as _, PgConnection};
use tempfile::NamedTempFile;
use testkit::postgres;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;

use crate::harness::{Server, merged};
use crate::installation::{install, progress, ready, reply_until, wait_status};
use crate::secured::{AUDIENCE, SecuredServer};

const PASSWORD: &str = "correct-horse";
const WRONG: &str = "wrong-battery";
const SERVER_ENDED: &str = "the server that had the credentials ended: send the request again";
/// Key of the lock of the holder whose id is zero.
const HOLDER: i64 = 0x626d_6362_6f6f_7421;

/// BMCs, with a file of their certificate authority.
struct BmcSite {
    rack: BmcRack,
    ca: NamedTempFile,
}

impl BmcSite {
    async fn of(count: usize) -> Self {
        Self::start(BmcRackPlan::of(
            BmcProfile::find("standard").unwrap(),
            count,
        ))
        .await
    }

    async fn start(plan: BmcRackPlan) -> Self {
        let rack = BmcRack::start(plan).await.unwrap();
        let mut ca = NamedTempFile::new().unwrap();
        ca.write_all(rack.ca_pem().as_bytes()).unwrap();
        Self { rack, ca }
    }

    /// A server that trusts the BMCs, and the path of the boots of an infra-env.
    async fn server(&self) -> (Server, String) {
        let ca = self.ca.path().to_owned();
        let server = Server::with(|settings| settings.bmc_ca_file = Some(ca)).await;
        let id = server.infra_env(None).await;
        (server, format!("/v2/infra-envs/{id}/bmc-boot"))
    }

    /// The entry of a BMC in a request.
    fn bmc(&self, index: usize) -> Value {
        let path = self.rack.bmcs()[index].profile.system_path();
        let origin = self.rack.origin(index, "redfish-virtualmedia");
        json!({
            "name": format!("host-{index}"), "address": format!("{origin}{path}"),
            "username": "admin", "password": PASSWORD,
        })
    }

    fn request(&self) -> Value {
        let bmcs: Vec<_> = (0..self.rack.bmcs().len()).map(|at| self.bmc(at)).collect();
        json!({ "bmcs": bmcs })
    }

    /// No BMC answers any more.
    fn silence(&self) {
        for bmc in self.rack.bmcs() {
            bmc.add_fault(BmcFaultRule::always(BmcFault::Silent));
        }
    }

    fn recover(&self) {
        self.rack.bmcs().iter().for_each(|bmc| bmc.clear_faults());
    }
}

/// The hosts once all are in a state, by name.
async fn all(server: &Server, path: &str, states: &[&str]) -> Vec<Value> {
    server
        .until("the boots are in that state", async || {
            let list = server.get(path).await.expect(200);
            let hosts = list["hosts"].as_array().unwrap();
            let found: Vec<_> = hosts
                .iter()
                .map(|it| it["state"].as_str().unwrap())
                .collect();
            if found == states {
                Ok(hosts.clone())
            } else {
                Err(list)
            }
        })
        .await
}

async fn connection(server: &Server) -> PgConnection {
    let options = server.database.options();
    PgConnection::connect_with(&options).await.unwrap()
}

async fn assert_no_secret(server: &Server, secrets: &[&str]) {
    let stored = postgres::dump(&server.database).await.unwrap();
    let stored = String::from_utf8(stored).unwrap();
    assert!(stored.contains("COPY public.bmc_boots"), "{stored}");
    for secret in secrets {
        assert!(!stored.contains(secret), "{secret}: {stored}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn hosts_boot_the_image_and_a_failure_concerns_its_own_host() {
    let site = BmcSite::of(4).await;
    let (server, path) = site.server().await;
    site.rack.bmcs()[3].add_fault(BmcFaultRule::always(BmcFault::OtherCertificate));
    let mut request = site.request();
    request["bmcs"][2]["password"] = WRONG.into();
    let started = server.post(&path, &request).await.expect(202);
    let first = &started["hosts"][0];
    assert!(
        first["state"] == "waiting" || first["state"] == "running",
        "{started}"
    );
    assert_eq!(first["address"], request["bmcs"][0]["address"]);
    assert_eq!(first["requested_by"], "admin");

    let hosts = all(&server, &path, &["done", "done", "failed", "failed"]).await;
    let reason = |at: usize| hosts[at]["error"].as_str().unwrap();
    assert!(
        reason(2).contains("the user name or the password"),
        "{}",
        reason(2)
    );
    assert!(reason(3).contains("BMC_NETWORKS"), "{}", reason(3));
    let none = json!("0001-01-01T00:00:00.000Z");
    for host in &hosts {
        assert!(
            host["started_at"] != none && host["ended_at"] != none,
            "{host}"
        );
        assert!(host.get("step").is_none(), "{host}");
    }
    let image = path.replace("bmc-boot", "downloads/image-url");
    let image = server.get(&image).await.expect(200)["url"].clone();
    let image = BmcBootSource::VirtualCd(image.as_str().unwrap().to_owned());
    for (at, bmc) in site.rack.bmcs().iter().enumerate() {
        let expected = if at < 2 {
            std::slice::from_ref(&image)
        } else {
            &[]
        };
        assert_eq!(bmc.boots(), expected, "{at}");
        assert_eq!(bmc.open_sessions(), 0);
    }
    // Some BMCs lock an account after few wrong logins.
    assert_eq!(site.rack.bmcs()[2].refused_logins(), 1);
    assert_no_secret(&server, &[PASSWORD, WRONG]).await;

    // Again: the earlier boots of the same hosts are replaced, by name or by address.
    let mut again = json!({ "medium": "uefi-http", "image_type": "minimal-iso", "bmcs": [site.bmc(0), site.bmc(1)] });
    again["bmcs"][1]["name"] = "renamed".into();
    server.post(&path, &again).await.expect(202);
    let hosts = all(&server, &path, &["done", "failed", "failed", "done"]).await;
    assert_eq!(hosts[3]["name"], "renamed");
    for bmc in &site.rack.bmcs()[..2] {
        let boots = bmc.boots();
        let Some(BmcBootSource::Http(Some(uri))) = boots.last() else {
            panic!("{boots:?}");
        };
        assert!(uri.ends_with("/minimal.iso"), "{uri}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn certificates_are_verified_unless_asked_otherwise() {
    let site = BmcSite::of(2).await;
    let server = Server::start().await;
    let path = format!("/v2/infra-envs/{}/bmc-boot", server.infra_env(None).await);
    let mut request = site.request();
    request["bmcs"][1]["disable_certificate_verification"] = true.into();
    server.post(&path, &request).await.expect(202);
    all(&server, &path, &["failed", "done"]).await;
    assert!(site.rack.bmcs()[0].requests().is_empty());
}

/// The origin of a server that answers each request with `response`, after it has read some of it.
async fn other_server(response: &'static str) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let origin = format!("http://{}", listener.local_addr().unwrap());
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let _ = stream.read(&mut [0; 4096]).await;
            let _ = stream.write_all(response.as_bytes()).await;
        }
    });
    origin
}

#[tokio::test(flavor = "multi_thread")]
async fn failures_before_a_bmc_is_known_are_alike() {
    let site = BmcSite::of(2).await;
    let (server, path) = site.server().await;
    site.rack.bmcs()[1].add_fault(BmcFaultRule::always(BmcFault::OtherCertificate));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let closed = format!("http://{}", listener.local_addr().unwrap());
    drop(listener);
    let found = "HTTP/1.1 200 OK\r\ncontent-length: 2\r\nconnection: close\r\n\r\n{}";
    let missing = "HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\nconnection: close\r\n\r\n";
    let redirect = "HTTP/1.1 302 Found\r\nlocation: http://10.0.0.1/\r\ncontent-length: 0\r\nconnection: close\r\n\r\n";
    let login = "HTTP/1.1 401 Unauthorized\r\ncontent-length: 0\r\nconnection: close\r\n\r\n";
    let addresses = [
        closed,
        other_server(found).await,
        other_server(missing).await,
        other_server(redirect).await,
        other_server(login).await,
        other_server("SSH-2.0-OpenSSH_9.9\r\n").await,
        "https://nowhere.invalid".to_owned(),
        "https://192.0.2.1".to_owned(),
    ];
    let bmcs = addresses.iter().enumerate().map(|(at, address)| {
        let login = json!({ "username": "admin", "password": PASSWORD });
        merged(
            login,
            json!({ "name": format!("a{at}"), "address": address }),
        )
    });
    let mut request = json!({ "bmcs": bmcs.collect::<Vec<_>>() });
    request["bmcs"].as_array_mut().unwrap().push(site.bmc(1));
    server.post(&path, &request).await.expect(202);
    let mut hosts = all(&server, &path, &["failed"; 9]).await;

    // In none of the networks, it gets no request at all.
    let other = Server::with(|settings| {
        settings.bmc_networks = Settings::default().bmc_networks;
        settings.bmc_ca_file = Some(site.ca.path().to_owned());
    })
    .await;
    let path = format!("/v2/infra-envs/{}/bmc-boot", other.infra_env(None).await);
    let mut request = site.request();
    request["bmcs"][1]["address"] = "https://localhost".into();
    other.post(&path, &request).await.expect(202);
    hosts.extend(all(&other, &path, &["failed"; 2]).await);
    assert!(site.rack.bmcs()[0].requests().is_empty());

    let texts: BTreeSet<_> = hosts
        .iter()
        .map(|host| host["error"].as_str().unwrap())
        .collect();
    assert_eq!(texts.len(), 1, "{texts:?}");
    assert!(texts.first().unwrap().contains("BMC_NETWORKS"), "{texts:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn no_host_boots_before_the_image_is_there() {
    let site = BmcSite::of(1).await;
    let awaited =
        "HTTP/1.1 503 Service Unavailable\r\ncontent-length: 0\r\nconnection: close\r\n\r\n";
    let redirect = "HTTP/1.1 302 Found\r\nlocation: http://10.0.0.1/\r\ncontent-length: 0\r\nconnection: close\r\n\r\n";
    let found = "HTTP/1.1 206 Partial Content\r\ncontent-length: 1\r\nconnection: close\r\n\r\n.";
    for (answer, is_refused) in [(awaited, true), (redirect, false), (found, false)] {
        let origin = other_server(answer).await;
        let ca = site.ca.path().to_owned();
        let server = Server::with(|settings| {
            settings.bmc_ca_file = Some(ca);
            settings.image_service_base_url.0 = origin;
        })
        .await;
        let path = format!("/v2/infra-envs/{}/bmc-boot", server.infra_env(None).await);
        let reply = server.post(&path, &site.request()).await;
        if is_refused {
            let reason = reply.expect(409)["reason"].to_string();
            assert!(reason.contains("does not have the base image"), "{reason}");
            assert!(site.rack.bmcs()[0].requests().is_empty());
        } else {
            reply.expect(202);
            all(&server, &path, &["done"]).await;
        }
    }
}

// limit: BMCs served at a time
#[tokio::test(flavor = "multi_thread")]
async fn a_host_is_booted_once_at_a_time_until_it_is_cancelled() {
    let site = BmcSite::of(33).await;
    let (server, path) = site.server().await;
    let other = Server::on(server.database.clone(), |_| {}).await;
    other.wait_ready().await;
    site.silence();
    for bmc in site.rack.bmcs() {
        bmc.set_power(SimulatedPower::Off);
    }
    server.post(&path, &site.request()).await.expect(202);
    server
        .until("as many are served as may", async || {
            let list = server.get(&path).await.expect(200);
            let hosts = list["hosts"].as_array().unwrap();
            let count = |state| hosts.iter().filter(|it| it["state"] == state).count();
            if (count("running"), count("waiting")) == (32, 1) {
                Ok(())
            } else {
                Err(list)
            }
        })
        .await;

    let other_path = format!("/v2/infra-envs/{}/bmc-boot", other.infra_env(None).await);
    let one = json!({ "bmcs": [merged(site.bmc(7), json!({ "name": "seven" }))] });
    for (path, place) in [
        (&path, "host-7 is"),
        (&other_path, "host-7 of another infra-env"),
    ] {
        let refused = other.post(path, &one).await.expect(409);
        assert!(
            refused["reason"].as_str().unwrap().contains(place),
            "{refused}"
        );
    }
    let same_name = json!({ "bmcs": [merged(one["bmcs"][0].clone(), json!({ "name": "host-3", "address": "https://192.0.2.1" }))] });
    let refused = other.post(&path, &same_name).await.expect(409);
    assert!(
        refused["reason"].as_str().unwrap().contains("host-3 is"),
        "{refused}"
    );

    // By any replica.
    other.delete(&path).await.expect(202);
    let hosts = all(&server, &path, &["failed"; 33]).await;
    assert!(
        hosts.iter().all(|host| host["error"] == "cancelled"),
        "{hosts:?}"
    );
    site.recover();
    other
        .post(&other_path, &merged(one, json!({})))
        .await
        .expect(202);
    all(&other, &other_path, &["failed"]).await;
    server.post(&path, &site.request()).await.expect(202);
    all(&server, &path, &["done"; 33]).await;
    assert_no_secret(&server, &[PASSWORD]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn boots_of_an_ended_server_fail() {
    let site = BmcSite::of(2).await;
    let (server, path) = site.server().await;
    site.silence();
    server.post(&path, &site.request()).await.expect(202);
    all(&server, &path, &["running"; 2]).await;
    let ca = site.ca.path().to_owned();
    let server = server.restart_with(|it| it.bmc_ca_file = Some(ca)).await;
    let hosts = all(&server, &path, &["failed"; 2]).await;
    assert!(
        hosts.iter().all(|host| host["error"] == SERVER_ENDED),
        "{hosts:?}"
    );
    site.recover();
    server.post(&path, &site.request()).await.expect(202);
    all(&server, &path, &["done"; 2]).await;
}

/// Ends the session that holds the lock of boots, as a restart of PostgreSQL does.
async fn end_session(connection: &mut PgConnection) {
    let statement = "select pg_terminate_backend(pid) from pg_locks
        where locktype = 'advisory' and granted and database = (select oid from pg_database where datname = current_database())";
    sqlx::query(statement).execute(connection).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn without_its_lock_a_server_stops() {
    let site = BmcSite::of(1).await;
    let (server, path) = site.server().await;
    site.silence();
    server.post(&path, &site.request()).await.expect(202);
    all(&server, &path, &["running"]).await;
    let mut foreign = connection(&server).await;
    let key: i64 = sqlx::query_scalar(
        "select (classid::bigint << 32) | objid::bigint from pg_locks where locktype = 'advisory'
            and database = (select oid from pg_database where datname = current_database())",
    )
    .fetch_one(&mut foreign)
    .await
    .unwrap();
    end_session(&mut foreign).await;
    // Before the server takes it again.
    sqlx::query("select pg_advisory_lock($1)")
        .bind(key)
        .execute(&mut foreign)
        .await
        .unwrap();
    let refused = server.post(&path, &site.request()).await;
    assert!(
        refused.status == 409 || refused.status == 503,
        "{}",
        refused.text
    );
    let hosts = all(&server, &path, &["failed"]).await;
    let error = hosts[0]["error"].as_str().unwrap();
    assert!(error.contains("send the request again"), "{error}");
    site.recover();
    server.post(&path, &site.request()).await.expect(202);
    all(&server, &path, &["done"]).await;
    assert_eq!(site.rack.bmcs()[0].boots().len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn boots_outlive_a_restart_of_the_database() {
    let site = site_of_installation().await;
    let (server, _) = site.server().await;
    let (cluster, host) = ready(&server).await;
    let path = boot_for_installation(&server, &site, &host).await;
    end_session(&mut connection(&server).await).await;
    install(&server, &cluster, &host).await;
    all(&server, &path, &["done", "installing"]).await;
    assert!(site.rack.bmcs()[0].images().is_empty());
    server.delete(&path).await.expect(202);
    all(&server, &path, &["done", "failed"]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn boots_of_a_crashed_server_fail() {
    let server = Server::start().await;
    let id = server.infra_env(None).await;
    let path = format!("/v2/infra-envs/{id}/bmc-boot");
    let statement = "insert into bmc_boots
            (infra_env_id, name, address, system, state, request_id, holder, requested_by, requested_at)
        select $1::uuid, state, 'https://192.0.2.1', state, state, $1::uuid, $1::uuid, 'admin', now()
        from unnest(array['installing', 'running']) as state";
    sqlx::query(statement)
        .bind(&id)
        .execute(&mut connection(&server).await)
        .await
        .unwrap();
    let hosts = all(&server, &path, &["failed"; 2]).await;
    let error = hosts[0]["error"].as_str().unwrap();
    assert!(error.contains("eject the medium at the BMC"), "{error}");
    assert_eq!(hosts[1]["error"], SERVER_ENDED);
}

#[tokio::test(flavor = "multi_thread")]
async fn rows_without_a_run_fail_and_deleted_infra_envs_stop_theirs() {
    let site = BmcSite::of(1).await;
    let (server, path) = site.server().await;
    site.silence();
    server.post(&path, &site.request()).await.expect(202);
    all(&server, &path, &["running"]).await;
    // As a lost reply of the database leaves it: rows of this server without a run.
    let statement = "insert into bmc_boots
            (infra_env_id, name, address, system, state, request_id, holder, requested_by, requested_at)
        select infra_env_id, 'lost', address, 'lost', 'waiting', infra_env_id, holder, requested_by, requested_at
        from bmc_boots";
    sqlx::query(statement)
        .execute(&mut connection(&server).await)
        .await
        .unwrap();
    let hosts = all(&server, &path, &["running", "failed"]).await;
    assert_eq!(
        hosts[1]["error"],
        "the request was interrupted: send it again"
    );
    server
        .delete(path.trim_end_matches("/bmc-boot"))
        .await
        .expect(204);
    server.get(&path).await.expect(404);
    server.post(&path, &site.request()).await.expect(404);
    server.delete(&path).await.expect(404);
    let id = server.infra_env(None).await;
    site.recover();
    let path = format!("/v2/infra-envs/{id}/bmc-boot");
    server.post(&path, &site.request()).await.expect(202);
    all(&server, &path, &["done"]).await;
}

// limit: BMCs under way
// limit: earlier boots by BMCs
#[tokio::test(flavor = "multi_thread")]
async fn stored_boots_are_bounded() {
    let server = Server::start().await;
    let id = server.infra_env(None).await;
    let path = format!("/v2/infra-envs/{id}/bmc-boot");
    let mut connection = connection(&server).await;
    sqlx::query("select pg_advisory_lock($1)")
        .bind(HOLDER)
        .execute(&mut connection)
        .await
        .unwrap();
    let mut add = async |state: &str, count: i32| {
        let statement = "insert into bmc_boots
                (infra_env_id, name, address, system, state, request_id, holder, requested_by, requested_at, ended_at)
            select $1::uuid, $2 || number, 'https://192.0.2.1', $2 || number, $2, $1::uuid,
                '00000000-0000-0000-0000-000000000000', 'admin', now() + make_interval(secs => number), case $2 when 'done' then now() end
            from generate_series(1, $3) as number";
        sqlx::query(statement)
            .bind(&id)
            .bind(state)
            .bind(count)
            .execute(&mut connection)
            .await
            .unwrap();
    };
    add("waiting", 999).await;
    let bmc = |number: u32| json!({ "name": format!("new-{number}"), "address": format!("http://127.0.0.1:{number}"), "username": "root", "password": PASSWORD });
    let two = json!({ "bmcs": [bmc(1), bmc(2)] });
    let refused = server.post(&path, &two).await.expect(409);
    assert!(
        refused["reason"]
            .as_str()
            .unwrap()
            .contains("999 BMCs are under way"),
        "{refused}"
    );
    add("done", 1001).await;
    let one = json!({ "bmcs": [bmc(1)] });
    let started = server.post(&path, &one).await.expect(202);
    let hosts = started["hosts"].as_array().unwrap();
    assert_eq!(hosts.len(), 999 + 1000 + 1);
    // The oldest is removed.
    let has = |name: &str| hosts.iter().any(|host| host["name"] == name);
    assert!(!has("done1") && has("done2") && has("new-1"), "{started}");
}

#[tokio::test(flavor = "multi_thread")]
async fn malformed_requests_are_refused_without_their_secrets() {
    let server = Server::start().await;
    let path = format!("/v2/infra-envs/{}/bmc-boot", server.infra_env(None).await);
    let bmc = |more| {
        let bmc = json!({ "name": "a", "address": "redfish://192.0.2.1", "username": "root", "password": PASSWORD });
        json!({ "bmcs": [merged(bmc, more)] })
    };
    let many: Vec<_> = (0..1001)
        .map(|at| json!({ "name": format!("h{at}"), "address": format!("redfish://h{at}"), "username": "u", "password": "p" }))
        .collect();
    for (body, part) in [
        (json!({}), "bmcs"),
        (json!({ "bmcs": [] }), "is empty"),
        (json!({ "bmcs": many }), "at most 1000"),
        (bmc(json!({ "password": 271_828 })), "is not a text"),
        (bmc(json!({ "password": "" })), "password: is empty"),
        (
            bmc(json!({ "address": format!("redfish://root:{PASSWORD}@192.0.2.1") })),
            "username and password",
        ),
        (bmc(json!({ "address": "ipmi://192.0.2.1" })), "IPMI"),
        (bmc(json!({ "name": "A" })), "lower-case"),
        (bmc(json!({ "port": 443 })), "unknown field"),
        (
            merged(bmc(json!({})), json!({ "medium": "floppy" })),
            "virtual-media",
        ),
        (
            merged(bmc(json!({})), json!({ "image_type": "iso" })),
            "full-iso",
        ),
    ] {
        let refused = server.post(&path, &body).await;
        assert_eq!(refused.status, 400, "{body}");
        assert!(refused.text.contains(part), "{}", refused.text);
        assert!(!refused.text.contains(PASSWORD) && !refused.text.contains("271828"));
    }
    let disconnected = merged(bmc(json!({})), json!({ "image_type": "disconnected-iso" }));
    server.post(&path, &disconnected).await.expect(404);
    assert_eq!(server.get(&path).await.expect(200), json!({ "hosts": [] }));
}

#[tokio::test(flavor = "multi_thread")]
async fn administrators_alone_boot_hosts() {
    let site = SecuredServer::oidc(|_| {}).await;
    let own = site.resources("alice").await;
    let path = format!("/v2/infra-envs/{}/bmc-boot", own.infra_env);
    let body = json!({ "bmcs": [] });
    for (user, method, status) in [
        ("alice", Method::POST, 403),
        ("alice", Method::DELETE, 403),
        ("alice", Method::GET, 403),
        ("bob", Method::POST, 403),
        ("auditor", Method::POST, 403),
        ("auditor", Method::DELETE, 403),
        ("auditor", Method::GET, 200),
        ("root", Method::POST, 400),
        ("root", Method::GET, 200),
        ("root", Method::DELETE, 202),
    ] {
        let answer = site.send(user, method.clone(), &path, Some(&body)).await;
        assert_eq!(
            answer.status, status,
            "{user} {method} {AUDIENCE}: {}",
            answer.text
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn tokens_of_images_are_neither_stored_nor_shown() {
    let secured = SecuredServer::local(|_| {}).await;
    let own = secured.resources("root").await;
    let infra_env = format!("/v2/infra-envs/{}", own.infra_env);
    let url = format!("{infra_env}/downloads/image-url");
    let url = secured.get("root", &url).await.expect(200)["url"]
        .as_str()
        .unwrap()
        .to_owned();
    let (_, token) = url.split_once("/byapikey/").unwrap();
    let token = token.split('/').next().unwrap();
    // A BMC that repeats its user name: here it has the token, as a BMC would that repeats the image.
    let mut plan = BmcRackPlan::of(BmcProfile::find("standard").unwrap(), 2);
    plan.user = format!("user of {token}");
    let site = BmcSite::start(plan).await;
    site.rack.bmcs()[1].add_fault(BmcFaultRule::on("POST", "Reset", BmcFault::RepeatsPassword));
    site.rack.bmcs()[1].set_power(SimulatedPower::On);
    let more =
        json!({ "username": format!("user of {token}"), "disable_certificate_verification": true });
    let body = json!({ "bmcs": [merged(site.bmc(0), more.clone()), merged(site.bmc(1), more)] });
    let path = format!("{infra_env}/bmc-boot");
    let started = secured.send("root", Method::POST, &path, Some(&body));
    started.await.expect(202);
    let server = &secured.server;
    let list = server
        .until("they end", async || {
            let list = secured.get("root", &path).await;
            let ended = ["waiting", "running"]
                .iter()
                .all(|it| !list.text.contains(it));
            if ended { Ok(list) } else { Err(list.text) }
        })
        .await;
    let error = list.body["hosts"][1]["error"].as_str().unwrap();
    let shown = "the password [hidden] of user of [hidden] was not used";
    assert!(error.contains(shown), "{error}");
    let boots = site.rack.bmcs()[0].boots();
    let [BmcBootSource::VirtualCd(image)] = boots.as_slice() else {
        panic!("{boots:?}");
    };
    assert!(image.contains(token), "{image}");
    assert_no_secret(server, &[token, PASSWORD]).await;
}

/// BMCs of the machine that [`ready`] installs, and of another one.
async fn site_of_installation() -> BmcSite {
    let mut plan = BmcRackPlan::of(BmcProfile::find("standard").unwrap(), 2);
    plan.bmcs[0].1.macs = vec!["52:54:00:AA:00:01".to_owned()];
    BmcSite::start(plan).await
}

/// Boots the hosts of a site; their path, once the installation is awaited.
async fn boot_for_installation(server: &Server, site: &BmcSite, host: &str) -> String {
    let (infra_env, _) = host.split_once("/hosts/").unwrap();
    let path = format!("{infra_env}/bmc-boot");
    let request = merged(site.request(), json!({ "eject_after_install": true }));
    server.post(&path, &request).await.expect(202);
    all(server, &path, &["installing"; 2]).await;
    path
}

#[tokio::test(flavor = "multi_thread")]
async fn media_are_ejected_after_the_installation() {
    let site = site_of_installation().await;
    let (server, _) = site.server().await;
    let (cluster, host) = ready(&server).await;
    let path = boot_for_installation(&server, &site, &host).await;
    assert_no_secret(&server, &[PASSWORD]).await;
    server.post(&path, &site.request()).await.expect(409);
    let [first, second] = site.rack.bmcs() else {
        panic!("two BMCs");
    };
    assert_eq!((first.images().len(), second.images().len()), (1, 1));
    first.set_cd_first(true);
    install(&server, &cluster, &host).await;
    let hosts = all(&server, &path, &["done", "installing"]).await;
    let warning = hosts[0]["warning"].as_str().unwrap();
    assert!(warning.contains("the boot order starts with"), "{warning}");
    assert_eq!((first.images().len(), second.images().len()), (0, 1));
    assert_eq!(first.boots().len(), 1, "an installed host is left alone");

    server.delete(&path).await.expect(202);
    let hosts = all(&server, &path, &["done", "failed"]).await;
    assert_eq!(hosts[1]["error"], "cancelled");
    assert_eq!(second.images().len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn hosts_that_boot_the_image_again_are_started_from_their_disks() {
    let site = site_of_installation().await;
    let (server, _) = site.server().await;
    let (cluster, host) = ready(&server).await;
    let path = boot_for_installation(&server, &site, &host).await;
    let cluster = format!("/v2/clusters/{cluster}");
    server
        .post(&format!("{cluster}/actions/install"), &json!({}))
        .await
        .expect(202);
    reply_until(&server, &host, "installing").await;
    wait_status(&server, &cluster, "installing").await;
    let stages = [
        "Starting installation",
        "Installing",
        "Waiting for bootkube",
        "Writing image to disk",
        "Rebooting",
    ];
    progress(&server, &host, &stages).await;
    let infra_env = path.split('/').nth(3).unwrap();
    server.host(infra_env, 1).await;
    wait_status(&server, &host, "installing-pending-user-action").await;
    all(&server, &path, &["done", "installing"]).await;
    let boots = site.rack.bmcs()[0].boots();
    assert_eq!(boots.last(), Some(&BmcBootSource::Disk), "{boots:?}");
    assert!(site.rack.bmcs()[0].images().is_empty());
    let server = server.restart().await;
    let hosts = all(&server, &path, &["done", "failed"]).await;
    let error = hosts[1]["error"].as_str().unwrap();
    assert!(error.contains("eject the medium at the BMC"), "{error}");
}

// limit: credentials of BMCs until the installation
#[tokio::test(flavor = "multi_thread")]
async fn credentials_are_forgotten_after_their_lifetime() {
    let site = BmcSite::of(1).await;
    let ca = site.ca.path().to_owned();
    let server = Server::with(|settings| {
        settings.bmc_ca_file = Some(ca);
        settings.bmc_credentials_lifetime = std::time::Duration::from_millis(300);
    })
    .await;
    let path = format!("/v2/infra-envs/{}/bmc-boot", server.infra_env(None).await);
    let request = merged(site.request(), json!({ "eject_after_install": true }));
    server.post(&path, &request).await.expect(202);
    let hosts = all(&server, &path, &["failed"]).await;
    let error = hosts[0]["error"].as_str().unwrap();
    assert!(error.contains("BMC_CREDENTIALS_LIFETIME"), "{error}");
}
