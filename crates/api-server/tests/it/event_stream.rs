//! Streams of events over HTTP: live, resumed, of several replicas, and with transactions that commit late.

use api_server::operations::access::Scheme;
use reqwest::{Method, Response};
use serde_json::{Value, json};
use service::settings::Setting;
use sqlx::ConnectOptions as _;

use crate::harness::Server;
use crate::secured::{SecuredServer, with};

/// A client of a stream.
struct Stream {
    response: Response,
    text: String,
}

impl Stream {
    async fn open(server: &Server, query: &str, last: Option<&str>) -> Self {
        let path = format!("/v2/events/stream?{query}");
        let mut request = server.request(Method::GET, &path);
        request = request.header("accept", "text/event-stream");
        if let Some(last) = last {
            request = request.header("last-event-id", last);
        }
        let response = request.send().await.unwrap();
        assert_eq!(response.status(), 200);
        assert_eq!(response.headers()["content-type"], "text/event-stream");
        Self {
            response,
            text: String::new(),
        }
    }

    /// The next event: its id, and its message.
    async fn next(&mut self) -> (String, String) {
        loop {
            if let Some(end) = self.text.find("\n\n") {
                let event: String = self.text.drain(..end + 2).collect();
                let field = |name: &str| {
                    let mut lines = event.lines();
                    lines
                        .find_map(|line| line.strip_prefix(name))
                        .map(str::to_owned)
                };
                if let Some((id, data)) = field("id: ").zip(field("data: ")) {
                    let data: Value = serde_json::from_str(&data).unwrap();
                    return (id, data["message"].as_str().unwrap().to_owned());
                }
                continue;
            }
            let chunk = self.response.chunk().await.unwrap();
            let chunk = chunk.expect("the stream ended");
            self.text.push_str(std::str::from_utf8(&chunk).unwrap());
        }
    }

    /// The data of the next change.
    async fn next_change(&mut self) -> Value {
        loop {
            if let Some(end) = self.text.find("\n\n") {
                let event: String = self.text.drain(..end + 2).collect();
                let data = event.lines().find_map(|line| line.strip_prefix("data: "));
                let change = data.filter(|_| event.contains("event: change"));
                let change = change.map(|data| serde_json::from_str(data).unwrap());
                if let Some(change) = change {
                    return change;
                }
                continue;
            }
            let chunk = self.response.chunk().await.unwrap();
            let chunk = chunk.expect("the stream ended");
            self.text.push_str(std::str::from_utf8(&chunk).unwrap());
        }
    }

    /// Reads on until the record `id` has changed. Changes of others come
    /// between: the monitor writes a new cluster's status when it comes to it.
    async fn change_of(&mut self, noun: &str, id: &str) {
        while self.next_change().await[noun] != id {}
    }

    async fn expect(&mut self, message: &str) -> String {
        let (id, found) = self.next().await;
        assert_eq!(found, message);
        id
    }
}

async fn trigger(server: &Server, message: &str, severity: &str) {
    let event = json!({
        "name": "reboots_for_node", "severity": severity, "category": "user", "message": message,
        "event_time": "2001-01-01T00:00:00.000Z",
    });
    server.post("/v2/events", &event).await.expect(201);
}

#[tokio::test(flavor = "multi_thread")]
async fn events_are_streamed_filtered_and_resumed() {
    let server = Server::start().await;
    trigger(&server, "before", "info").await;
    let mut all = Stream::open(&server, "", None).await;
    let mut warnings = Stream::open(&server, "severities=warning", None).await;
    trigger(&server, "first", "info").await;
    trigger(&server, "second", "warning").await;
    let first = all.expect("first").await;
    let second = all.expect("second").await;
    warnings.expect("second").await;
    trigger(&server, "third", "info").await;
    all.expect("third").await;
    let mut resumed = Stream::open(&server, "", Some(&first)).await;
    resumed.expect("second").await;
    resumed.expect("third").await;
    trigger(&server, "fourth", "warning").await;
    resumed.expect("fourth").await;
    warnings.expect("fourth").await;
    let mut resumed = Stream::open(&server, "severities=warning", Some(&second)).await;
    resumed.expect("fourth").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_mark_far_beyond_is_now() {
    let server = Server::start().await;
    trigger(&server, "before", "info").await;
    let mut stream = Stream::open(&server, "", Some("9000000000")).await;
    trigger(&server, "after", "info").await;
    stream.expect("after").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_event_that_commits_late_is_in_every_stream() {
    let server = Server::start().await;
    trigger(&server, "before", "info").await;
    let mut stream = Stream::open(&server, "", None).await;
    let mut late = server.database.options().connect().await.unwrap();
    let statements = "begin; insert into events (name, severity, category, message, event_time)
        values ('reboots_for_node', 'info', 'user', 'late', now())";
    sqlx::raw_sql(statements).execute(&mut late).await.unwrap();
    trigger(&server, "early", "info").await;
    let early = stream.expect("early").await;
    sqlx::raw_sql("commit").execute(&mut late).await.unwrap();
    // Its transaction was not the server's, and sent no notification.
    trigger(&server, "last", "info").await;
    let found = [stream.next().await.1, stream.next().await.1];
    assert_eq!(found, ["late", "last"]);
    let mut resumed = Stream::open(&server, "", Some(&early)).await;
    let found = [resumed.next().await.1, resumed.next().await.1];
    assert_eq!(found, ["late", "early"], "the mark is below both");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_replica_streams_the_events_of_another() {
    let first = Server::start().await;
    let second = Server::on(first.database.clone(), |_| {}).await;
    second.wait_ready().await;
    let mut stream = Stream::open(&second, "", None).await;
    trigger(&first, "from the first", "info").await;
    stream.expect("from the first").await;
}

// limit: event streams
#[tokio::test(flavor = "multi_thread")]
async fn streams_are_limited_and_end_with_the_server() {
    let mut server = Server::with(|settings| settings.max_event_streams = 8).await;
    let mut first = Stream::open(&server, "", None).await;
    let second = Stream::open(&server, "", None).await;
    let refused = server.get("/v2/events/stream").await;
    assert_eq!(refused.header("retry-after"), "5");
    refused.expect(503);
    drop(second);
    let third = server
        .until("a stream is free", async || {
            let answer = server
                .request(Method::GET, "/v2/events/stream")
                .send()
                .await
                .unwrap();
            if answer.status() == 200 {
                Ok(answer)
            } else {
                Err(answer.status())
            }
        })
        .await;
    drop(third);
    let malformed = server.request(Method::GET, "/v2/events/stream");
    let malformed = Server::send(malformed.header("last-event-id", "seven")).await;
    malformed.expect(400);
    server.stop().await;
    assert_eq!(first.response.chunk().await.ok().flatten(), None);
}

// share: event streams
#[tokio::test(flavor = "multi_thread")]
async fn clients_with_few_streams_always_get_one() {
    let server = Server::with(|settings| {
        settings.max_event_streams = 8;
        settings.http.trusted_proxies = Setting::parse("127.0.0.1").unwrap();
    })
    .await;
    let open = async |client: u8| {
        let request = server.request(Method::GET, "/v2/events/stream");
        let request = request.header("x-forwarded-for", format!("192.0.2.{client}"));
        request.send().await.unwrap()
    };
    // Four clients take all, a quarter each.
    let mut streams = Vec::new();
    for number in 0..8 {
        let stream = open(number / 2).await;
        assert_eq!(stream.status(), 200);
        streams.push(stream);
    }
    assert_eq!(open(0).await.status(), 503, "one above its quarter");
    let mut newcomers = Vec::new();
    for client in 4..8 {
        let stream = open(client).await;
        assert_eq!(stream.status(), 200, "client {client}");
        newcomers.push(stream);
    }
    // Each of the four has one left, the older one.
    let newer = streams.iter_mut().skip(1).step_by(2);
    for stream in newer {
        while stream.chunk().await.unwrap().is_some() {}
    }
    assert_eq!(open(4).await.status(), 503, "nobody has more than it would");
    trigger(&server, "after", "info").await;
    let older = streams.iter_mut().step_by(2);
    for stream in older.chain(&mut newcomers) {
        let mut text = String::new();
        while !text.contains("after") {
            let chunk = stream.chunk().await.unwrap();
            text.push_str(&String::from_utf8_lossy(&chunk.unwrap()));
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_user_has_one_share_at_all_addresses() {
    let site = SecuredServer::oidc(|settings| {
        settings.max_event_streams = 8;
        settings.http.trusted_proxies = Setting::parse("127.0.0.1").unwrap();
    })
    .await;
    let alice = site.resources("alice").await;
    let open = async |user: &str, client: u8| {
        let path = format!("/v2/events/stream?cluster_id={}", alice.cluster);
        let request = site.server.request(Method::GET, &path);
        let request = request.header("x-forwarded-for", format!("192.0.2.{client}"));
        let request = with(request, Scheme::User, &site.user(user));
        request.send().await.unwrap()
    };
    let _own = [open("alice", 1).await, open("alice", 2).await];
    assert_eq!(open("alice", 3).await.status(), 503);
    assert_eq!(open("root", 1).await.status(), 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn changes_without_an_event_are_streamed_from_every_replica() {
    let server = Server::start().await;
    let other = Server::on(server.database.clone(), |_| {}).await;
    other.wait_ready().await;
    let cluster = server.cluster(json!({})).await;
    let second = server.cluster(json!({})).await;
    let infra_env = server.infra_env(Some(&cluster)).await;
    let pool = server.infra_env(None).await;
    let host = server.host(&infra_env, 1).await;
    let pool_host = server.host(&pool, 2).await;
    // Longer ago than those that a stream begins with.
    let mut connection = server.database.options().connect().await.unwrap();
    for table in ["clusters", "infra_envs", "hosts"] {
        let statement = format!("update {table} set updated_at = now() - interval '1 hour'");
        sqlx::query(sqlx::AssertSqlSafe(statement))
            .execute(&mut connection)
            .await
            .unwrap();
    }
    let mut all = Stream::open(&other, "changes=true", None).await;
    let filter = format!("changes=true&cluster_id={cluster}");
    let mut of_one = Stream::open(&other, &filter, None).await;
    let rename = |name: &str| json!({ "name": name });
    let path = |id: &str| format!("/v2/clusters/{id}");
    server.patch(&path(&second), &rename("b")).await.expect(201);
    all.change_of("cluster_id", &second).await;
    server
        .patch(&path(&cluster), &rename("a"))
        .await
        .expect(201);
    all.change_of("cluster_id", &cluster).await;
    assert_eq!(of_one.next_change().await, json!({ "cluster_id": cluster }));
    // Of a host in the cluster, and of one in the pool.
    let change = json!({ "host_name": "renamed" });
    server.patch(&host, &change).await.expect(201);
    assert_eq!(of_one.next_change().await, json!({ "cluster_id": cluster }));
    server.patch(&pool_host, &change).await.expect(201);
    all.change_of("infra_env_id", &pool).await;
}
