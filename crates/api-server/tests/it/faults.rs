//! Faults around the API server: its database fails, is slow or full; the server is killed; its clock is set; replies
//! come twice or in another order; two machines have one id.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use futures_util::{StreamExt as _, stream};
use serde_json::{Value, json};
use sqlx::{AssertSqlSafe, ConnectOptions as _, PgConnection};
use testkit::postgres;

use crate::harness::{AGENT, Answer, BASE, Server, host_id, inventory, merged};
use crate::installation;
use crate::process::Process;

/// Pause of a client after 503.
const PAUSE: Duration = Duration::from_millis(20);

pub(crate) async fn connect(server: &Server) -> PgConnection {
    server.database.options().connect().await.unwrap()
}

pub(crate) async fn execute(connection: &mut PgConnection, statement: &str) {
    sqlx::query(AssertSqlSafe(statement))
        .execute(connection)
        .await
        .unwrap();
}

async fn count(connection: &mut PgConnection, query: &str) -> i64 {
    sqlx::query_scalar(AssertSqlSafe(query))
        .fetch_one(connection)
        .await
        .unwrap()
}

/// Each statement of these kinds runs `body` first.
async fn trigger(connection: &mut PgConnection, table: &str, kinds: &str, body: &str) {
    for statement in [
        format!(
            "create or replace function fault_{table}() returns trigger language plpgsql as
            $$ begin {body}; return null; end $$"
        ),
        format!(
            "create trigger fault before {kinds} on {table} for each statement execute function fault_{table}()"
        ),
    ] {
        execute(connection, &statement).await;
    }
}

/// Sends until the server accepts; it refuses with 503 and Retry-After only.
pub(crate) async fn accepted(status: u16, send: impl AsyncFn() -> Answer) -> Value {
    loop {
        let answer = send().await;
        if answer.status != 503 {
            return answer.expect(status);
        }
        assert!(!answer.header("retry-after").is_empty(), "{answer:?}");
        tokio::time::sleep(PAUSE).await;
    }
}

pub(crate) fn registration(number: u32) -> Value {
    json!({ "host_id": host_id(number), "discovery_agent_version": AGENT })
}

/// The inventory of a machine, with a name for each report.
pub(crate) fn report(number: u32, round: u32) -> Value {
    merged(
        inventory(number),
        json!({ "hostname": format!("host-{number}-{round}") }),
    )
}

/// Asserts that hosts, their numbers, events and revisions fit together.
pub(crate) async fn assert_consistent(connection: &mut PgConnection) {
    for (claim, query) in [
        (
            "the count of an infra-env is that of its hosts",
            "select count(*) from infra_envs
            where host_count <> (select count(*) from hosts where infra_env_id = infra_envs.id)",
        ),
        (
            "each host has one event of its registration",
            "select count(*) from hosts where 1 <> (
                select count(*) from events where host_id = hosts.id and name = 'host_registration_succeeded'
            )",
        ),
        (
            "each event of a registration has its host",
            "select count(*) from events where name = 'host_registration_succeeded'
            and not exists (select from hosts where id = events.host_id)",
        ),
        (
            "no host is newer than its cluster",
            "select count(*) from hosts join clusters on clusters.id = hosts.cluster_id
            where hosts.revision > clusters.revision",
        ),
    ] {
        assert_eq!(count(connection, query).await, 0, "{claim}");
    }
}

/// Agents of the outage.
const AGENTS: u32 = 40;

#[tokio::test(flavor = "multi_thread")]
async fn agents_continue_after_an_outage_without_lost_replies() {
    let mut database = postgres::PostgresServer::start().await.unwrap();
    let server = Server::on(database.database().await.unwrap(), |_| {}).await;
    server.wait_ready().await;
    let cluster = server.cluster(json!({})).await;
    let infra_env = server.infra_env(Some(&cluster)).await;
    let path = format!("/v2/infra-envs/{infra_env}/hosts");
    let (replies, is_over) = (AtomicUsize::new(0), AtomicBool::new(false));
    let agent = async |number: u32| {
        accepted(201, async || {
            server.post(&path, &registration(number)).await
        })
        .await;
        let host = format!("{path}/{}", host_id(number));
        for round in 0.. {
            let ends = is_over.load(Ordering::SeqCst);
            let instructions = format!("{host}/instructions");
            accepted(200, async || server.get(&instructions).await).await;
            let output = report(number, round);
            accepted(204, async || {
                server.reply(&host, "inventory", &output).await
            })
            .await;
            replies.fetch_add(1, Ordering::SeqCst);
            if ends {
                return (host, output["hostname"].clone());
            }
        }
        unreachable!("rounds do not end")
    };
    let outage = async {
        let replied = async || match replies.load(Ordering::SeqCst) {
            count @ 0..10 => Err(count),
            _ => Ok(()),
        };
        server.until("agents reply", replied).await;
        database.stop();
        let is_away = async || match server.get(&path).await.status.as_u16() {
            503 => Ok(()),
            status => Err(status),
        };
        server.until("requests are refused", is_away).await;
        // Longer than a poll of the service's own health checks.
        tokio::time::sleep(Duration::from_secs(3)).await;
        database.start_again().await.unwrap();
        is_over.store(true, Ordering::SeqCst);
    };
    let agents = stream::iter(1..=AGENTS).map(agent).buffer_unordered(16);
    let (names, ()) = tokio::join!(agents.collect::<BTreeMap<_, _>>(), outage);
    assert_eq!(names.len(), AGENTS as usize);
    for (host, name) in names {
        let found = server.get(&host).await.expect(200);
        let stored: Value = serde_json::from_str(found["inventory"].as_str().unwrap()).unwrap();
        assert_eq!(stored["hostname"], name, "{host}");
    }
    assert_consistent(&mut connect(&server).await).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn registrations_to_a_slow_database_share_transactions() {
    const HOSTS: u32 = 100;
    let server = Server::start().await;
    let cluster = server.cluster(json!({})).await;
    let infra_env = server.infra_env(Some(&cluster)).await;
    let pool = server.infra_env(None).await;
    let other = server.host(&pool, 1000).await;
    let mut connection = connect(&server).await;
    trigger(&mut connection, "hosts", "insert", "perform pg_sleep(0.3)").await;
    for (infra_env, first) in [(&infra_env, 1), (&pool, HOSTS + 1)] {
        let path = format!("/v2/infra-envs/{infra_env}/hosts");
        let numbers = stream::iter(first..first + HOSTS);
        let registering = numbers.map(async |number| {
            server.post(&path, &registration(number)).await.expect(201);
        });
        let registering = registering.buffer_unordered(HOSTS as usize);
        let poll = format!("{other}/instructions");
        let polling = async { server.get(&poll).await.expect(200) };
        let (_, steps) = tokio::join!(registering.collect::<Vec<_>>(), polling);
        assert_eq!(steps["next_instruction_seconds"], 60);
    }
    // Hosts that were stored by one transaction have one time of creation.
    for filter in ["cluster_id is not null", "cluster_id is null"] {
        let query = format!("select count(distinct created_at) from hosts where {filter}");
        let transactions = count(&mut connection, &query).await;
        assert!(
            transactions < i64::from(HOSTS) / 4,
            "{filter}: {transactions}"
        );
    }
    assert_consistent(&mut connection).await;
}

// limit: hosts of a cluster
#[tokio::test(flavor = "multi_thread")]
async fn a_refused_change_fails_alone() {
    let server = Server::with(|settings| settings.max_hosts_per_cluster = 30).await;
    let cluster = server.cluster(json!({})).await;
    let infra_env = server.infra_env(Some(&cluster)).await;
    for number in 1..=10 {
        server.host(&infra_env, number).await;
    }
    let mut connection = connect(&server).await;
    let slow = "perform pg_sleep(0.2)";
    trigger(&mut connection, "hosts", "insert", slow).await;
    let path = format!("/v2/infra-envs/{infra_env}/hosts");
    let registering = stream::iter(11..=50).map(async |number| {
        let answer = server.post(&path, &registration(number)).await;
        answer.status.as_u16()
    });
    // They are not installing.
    let reporting = stream::iter(1..=10).map(async |number| {
        let progress = format!("{path}/{}/progress", host_id(number));
        let stage = json!({ "current_stage": "Rebooting" });
        server.put(&progress, &stage).await.status.as_u16()
    });
    let (registered, reported) = tokio::join!(
        registering.buffer_unordered(40).collect::<Vec<_>>(),
        reporting.buffer_unordered(10).collect::<Vec<_>>()
    );
    let with = |status: u16| registered.iter().filter(|one| **one == status).count();
    assert_eq!((with(201), with(400)), (20, 20), "{registered:?}");
    assert!(reported.iter().all(|status| *status == 409), "{reported:?}");
    let hosts = count(&mut connection, "select count(*) from hosts").await;
    assert_eq!(hosts, 30);
    assert_consistent(&mut connection).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn polls_are_answered_while_the_disk_of_the_database_is_full() {
    const TABLES: [&str; 5] = [
        "clusters",
        "infra_envs",
        "hosts",
        "events",
        "host_check_ins",
    ];
    let server = Server::start().await;
    let cluster = server.cluster(json!({})).await;
    let infra_env = server.infra_env(Some(&cluster)).await;
    let host = server.host(&infra_env, 1).await;
    let reply = server.reply(&host, "inventory", &inventory(1)).await;
    reply.expect(204);
    let mut connection = connect(&server).await;
    let full =
        "raise exception 'could not extend file: No space left on device' using errcode = '53100'";
    for table in TABLES {
        trigger(&mut connection, table, "insert or update or delete", full).await;
    }
    let path = format!("/v2/infra-envs/{infra_env}/hosts");
    for refused in [
        server.post(&path, &registration(2)).await,
        server.reply(&host, "inventory", &report(1, 7)).await,
        server
            .patch(
                &format!("/v2/clusters/{cluster}"),
                &json!({ "name": "other" }),
            )
            .await,
        server.delete(&host).await,
    ] {
        assert_eq!(refused.header("retry-after"), "5", "{}", refused.text);
        assert!(!refused.text.contains("extend file"), "{}", refused.text);
        refused.expect(503);
    }
    // A poll writes nothing.
    let poll = server
        .get(&format!("{host}/instructions"))
        .await
        .expect(200);
    assert!(!poll["instructions"].as_array().unwrap().is_empty());
    let polled = service::clock::now();

    for table in TABLES {
        execute(&mut connection, &format!("drop trigger fault on {table}")).await;
    }
    let heartbeats = async || {
        let query = "select checked_in_at from host_check_ins";
        let at = sqlx::query_scalar(query).fetch_one(&mut connection).await;
        let at: chrono::DateTime<chrono::Utc> = at.unwrap();
        // The poll was received a moment before its answer.
        let late = polled.signed_duration_since(at).num_seconds();
        if late < 5 { Ok(()) } else { Err(late) }
    };
    server.until("the heartbeat is stored", heartbeats).await;
    accepted(201, async || server.post(&path, &registration(2)).await).await;
    accepted(204, async || {
        server.reply(&host, "inventory", &report(1, 7)).await
    })
    .await;
    assert_eq!(
        server
            .get(&format!("/v2/clusters/{cluster}"))
            .await
            .expect(200)["name"],
        "demo"
    );
    assert_consistent(&mut connection).await;
}

/// Concurrent writers when the server is killed.
const WRITERS: u32 = 200;

#[tokio::test(flavor = "multi_thread")]
async fn a_killed_server_leaves_whole_changes() {
    let mut server = Server::start().await;
    let cluster = server.cluster(json!({})).await;
    let infra_env = server.infra_env(Some(&cluster)).await;
    server.stop().await;
    let mut process = Process::start(&server.database, server.work_dir(), &[]);
    let client = service::http_client(None, false).unwrap();
    let ready = format!("{}/ready", process.url);
    let is_ready = async || match client.get(&ready).send().await {
        Ok(answer) if answer.status() == 200 => Ok(()),
        Ok(answer) => Err(answer.status().to_string()),
        Err(error) => Err(error.to_string()),
    };
    server.until("the process is ready", is_ready).await;

    let path = format!("/v2/infra-envs/{infra_env}/hosts");
    let hosts = format!("{}{BASE}{path}", process.url);
    let acknowledged: Mutex<BTreeMap<u32, Option<u32>>> = Mutex::default();
    let is_acknowledged = async |url: String, body: Value| {
        let answer = client.post(url).json(&body).send().await.ok()?;
        answer.status().is_success().then_some(())
    };
    // Registers a host, and reports inventories until the connection breaks.
    let write = async |number: u32| -> Option<()> {
        is_acknowledged(hosts.clone(), registration(number)).await?;
        acknowledged.lock().unwrap().insert(number, None);
        for round in 0.. {
            let output = report(number % 200, round).to_string();
            let reply = json!({ "step_type": "inventory", "step_id": "inventory-0", "exit_code": 0, "output": output });
            let url = format!("{hosts}/{}/instructions", host_id(number));
            is_acknowledged(url, reply).await?;
            acknowledged.lock().unwrap().insert(number, Some(round));
        }
        None
    };
    let writers = stream::iter(1..=WRITERS).map(write);
    let writers = writers.buffer_unordered(WRITERS as usize);
    let kill = async {
        let replies = async || {
            let known = acknowledged.lock().unwrap();
            match known.values().flatten().count() {
                count @ 0..60 => Err(count),
                _ => Ok(()),
            }
        };
        server.until("replies are acknowledged", replies).await;
        process.kill();
    };
    tokio::join!(writers.collect::<Vec<_>>(), kill);

    let server = server.restart().await;
    let acknowledged = acknowledged.into_inner().unwrap();
    for (number, round) in acknowledged {
        let found = server.get(&format!("{path}/{}", host_id(number))).await;
        let found = found.expect(200);
        let Some(round) = round else { continue };
        let stored: Value = serde_json::from_str(found["inventory"].as_str().unwrap()).unwrap();
        // The next one may have been stored, too.
        let names = [round, round + 1].map(|round| report(number % 200, round)["hostname"].clone());
        assert!(names.contains(&stored["hostname"]), "{names:?}: {stored}");
    }
    assert_consistent(&mut connect(&server).await).await;
    server.host(&infra_env, WRITERS + 1).await;
}

/// Heartbeats that the server received before its clock was set back by an hour.
const SET_BACK: [&str; 2] = [
    "update host_check_ins set checked_in_at = checked_in_at + interval '1 hour'",
    "update hosts set record = record || jsonb_build_object(
        'checked_in_at', to_char(now() at time zone 'utc' + interval '1 hour', 'YYYY-MM-DD\"T\"HH24:MI:SS.MS\"Z\"')
    )",
];

#[tokio::test(flavor = "multi_thread")]
async fn heartbeats_count_after_the_clock_was_set_back() {
    let mut server = Server::start().await;
    let cluster = server.cluster(json!({})).await;
    let bound = server.infra_env(Some(&cluster)).await;
    let pool = server.infra_env(None).await;
    let hosts = [
        server.host(&bound, 1).await,
        server.host(&bound, 2).await,
        server.host(&pool, 3).await,
        server.host(&pool, 4).await,
    ];
    for host in &hosts {
        server
            .get(&format!("{host}/instructions"))
            .await
            .expect(200);
    }
    server.stop().await;
    let mut connection = connect(&server).await;
    for statement in SET_BACK {
        execute(&mut connection, statement).await;
    }
    let server = server
        .restart_with(|settings| settings.host_max_disconnection_time = Duration::from_secs(2))
        .await;
    // Two hosts are silent since; the others poll.
    let expected = [
        "discovering",
        "disconnected",
        "discovering-unbound",
        "disconnected-unbound",
    ];
    let states = async || {
        for host in [&hosts[0], &hosts[2]] {
            server
                .get(&format!("{host}/instructions"))
                .await
                .expect(200);
        }
        let mut found = Vec::new();
        for host in &hosts {
            found.push(server.get(host).await.expect(200));
        }
        let states: Vec<&str> = found
            .iter()
            .map(|one| one["status"].as_str().unwrap())
            .collect();
        if states == expected {
            Ok(())
        } else {
            Err(format!("{states:?}"))
        }
    };
    server.until("silent hosts are disconnected", states).await;
    let ahead = "select count(*) from host_check_ins
        join hosts on hosts.id = host_id and hosts.status in ('discovering', 'discovering-unbound')
        where checked_in_at > now()";
    let stored = async || match count(&mut connection, ahead).await {
        0 => Ok(()),
        count => Err(count),
    };
    server.until("newer heartbeats are stored", stored).await;
}

/// A library that sets the clock of a program: it is compiled by the linker's driver, which each Rust toolchain needs.
fn clock_library(folder: &Path) -> PathBuf {
    let source = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/set_clock.c");
    let library = folder.join("set_clock.so");
    let mut compiler = Command::new("cc");
    compiler.args(["-shared", "-fPIC", "-o"]).arg(&library);
    let output = compiler.arg(source).arg("-ldl").output().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{errors}");
    library
}

/// An installation continues, and the server works, while its clock jumps by `seconds`.
async fn jump_of_the_clock(seconds: i64) {
    let mut server = Server::start().await;
    let (cluster, host) = installation::ready(&server).await;
    let path = format!("/v2/clusters/{cluster}");
    let install = format!("{path}/actions/install");
    server.post(&install, &json!({})).await.expect(202);
    installation::reply_until(&server, &host, "installing").await;
    installation::wait_status(&server, &path, "installing").await;
    installation::progress(&server, &host, &["Starting installation"]).await;
    server.stop().await;

    let folder = tempfile::tempdir().unwrap();
    let (library, file) = (clock_library(folder.path()), folder.path().join("set"));
    let settings = [
        ("LD_PRELOAD", library.to_str().unwrap()),
        ("CLOCK_SET_FILE", file.to_str().unwrap()),
        ("CLUSTER_MONITOR_INTERVAL", "100ms"),
        ("METRICS_ON_PUBLIC_PORT", "true"),
    ];
    let process = Process::start(&server.database, server.work_dir(), &settings);
    let client = service::http_client(None, false).unwrap();
    let get = async |path: &str| {
        let answer = client.get(format!("{}{path}", process.url)).send().await;
        let answer = answer.map_err(|error| error.to_string())?;
        answer.text().await.map_err(|error| error.to_string())
    };
    let passes = async || {
        let metrics = get("/metrics").await?;
        let counts = metrics
            .lines()
            .filter(|line| line.contains("monitored_clusters_cycle_duration_ms_count"));
        let counts = counts.filter_map(|line| line.rsplit(' ').next()?.parse::<u64>().ok());
        Ok::<_, String>(counts.sum::<u64>())
    };
    let after = async |count: u64| match passes().await? {
        found if found > count => Ok(found),
        found => Err(format!("{found} passes")),
    };
    let before = server
        .until("the monitor runs", async || after(0).await)
        .await;
    fs::write(&file, seconds.to_string()).unwrap();
    // A pass that runs now may have read the clock before.
    let what = "the monitor has the new clock";
    server.until(what, async || after(before + 2).await).await;
    let seen: Value = serde_json::from_str(&get(&format!("{BASE}{host}")).await.unwrap()).unwrap();
    assert_eq!(seen["status"], "installing-in-progress", "{seen}");
    let explained = get(&format!("{BASE}{path}/explain")).await.unwrap();
    assert!(
        explained.contains("waiting") && !explained.contains("overdue"),
        "{explained}"
    );
    // Its agent is answered, and its reports are the latest.
    let stage = json!({ "current_stage": "Writing image to disk", "progress_info": "50%" });
    let put = client.put(format!("{}{BASE}{host}/progress", process.url));
    let reported = put.json(&stage).send().await.unwrap();
    assert!(reported.status().is_success(), "{reported:?}");
    let polled = get(&format!("{BASE}{host}/instructions")).await.unwrap();
    assert!(polled.contains("instructions"), "{polled}");
    let seen: Value = serde_json::from_str(&get(&format!("{BASE}{host}")).await.unwrap()).unwrap();
    assert_eq!(
        seen["progress"]["current_stage"], stage["current_stage"],
        "{seen}"
    );
    let now = after(0).await.unwrap();
    server.until(what, async || after(now + 2).await).await;
    // Set right again, nothing has ended meanwhile.
    fs::remove_file(&file).unwrap();
    let now = after(0).await.unwrap();
    server.until(what, async || after(now + 2).await).await;
    let seen: Value = serde_json::from_str(&get(&format!("{BASE}{host}")).await.unwrap()).unwrap();
    assert_eq!(seen["status"], "installing-in-progress", "{seen}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_clock_set_forward_ends_no_stage() {
    jump_of_the_clock(3600).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_clock_set_forward_by_days_ends_no_stage() {
    jump_of_the_clock(3 * 24 * 3600).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_clock_set_back_by_days_ends_no_stage() {
    jump_of_the_clock(-3 * 24 * 3600).await;
}

/// The database's clock may jump, too: all times are of the server's.
#[test]
fn no_statement_asks_the_database_for_the_time() {
    const CLOCKS: [&str; 7] = [
        " now()",
        "(now()",
        "current_timestamp",
        "current_date",
        "clock_timestamp",
        "localtimestamp",
        "statement_timestamp",
    ];
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut lines = 0;
    for folder in ["src/db", "../../migrations"] {
        for entry in fs::read_dir(root.join(folder)).unwrap() {
            let text = fs::read_to_string(entry.unwrap().path()).unwrap();
            for line in text.lines() {
                lines += 1;
                let clock = CLOCKS.iter().find(|clock| line.contains(**clock));
                assert_eq!(clock, None, "{line}");
            }
        }
    }
    assert!(lines > 3000, "{lines} lines of statements");
}

type StepOutput = (&'static str, Value);

/// Replies to the steps of a new host.
fn replies(number: u32) -> Vec<StepOutput> {
    vec![
        ("inventory", inventory(number)),
        (
            "ntp-synchronizer",
            json!({ "ntp_sources": [{ "source_name": "192.0.2.1", "source_state": "synced" }] }),
        ),
        (
            "free-network-addresses",
            json!([{ "network": "192.0.2.0/24", "free_addresses": ["192.0.2.200", "192.0.2.201"] }]),
        ),
        ("domain-resolution", json!({ "resolutions": [] })),
        ("connectivity-check", json!({ "remote_hosts": [] })),
    ]
}

/// State of a host without its identity and times, once it is judged.
async fn state(server: &Server, host: &str) -> Value {
    let mut connection = connect(server).await;
    let refreshed = async || {
        let query = "select count(*) from clusters where refresh_due";
        match count(&mut connection, query).await {
            0 => Ok(()),
            count => Err(count),
        }
    };
    server.until("clusters are refreshed", refreshed).await;
    let found = server.get(host).await.expect(200);
    let members = [
        "status",
        "inventory",
        "ntp_sources",
        "free_addresses",
        "domain_name_resolutions",
        "connectivity",
        "requested_hostname",
    ];
    let mut state = json!({ "validations": validations(&found) });
    for member in members {
        state[member] = found[member].clone();
    }
    state
}

/// Outcomes of a host's validations by id.
fn validations(host: &Value) -> BTreeMap<String, String> {
    let text = host["validations_info"].as_str().unwrap_or("{}");
    let groups: BTreeMap<String, Vec<Value>> = serde_json::from_str(text).unwrap_or_default();
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let all = groups.values().flatten();
    all.map(|one| (text(&one["id"]), text(&one["status"])))
        .collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn replies_in_any_order_and_number_have_one_result() {
    let server = Server::start().await;
    let once = replies(1);
    let reversed: Vec<StepOutput> = once.iter().rev().cloned().collect();
    let twice = [once.clone(), once.clone()].concat();
    let mut states = Vec::new();
    for (order, at_once) in [(&once, 1), (&reversed, 1), (&twice, 1), (&twice, 10)] {
        let cluster = server.cluster(json!({})).await;
        let infra_env = server.infra_env(Some(&cluster)).await;
        let host = server.host(&infra_env, 1).await;
        let sending = order.iter().map(async |(step, output)| {
            server.reply(&host, step, output).await.expect(204);
        });
        let sending = stream::iter(sending).buffer_unordered(at_once);
        sending.collect::<Vec<()>>().await;
        states.push(state(&server, &host).await);

        server.delete(&host).await.expect(204);
        let late = server.reply(&host, "inventory", &once[0].1).await;
        late.expect(404);
        let list = server
            .get(&format!("/v2/infra-envs/{infra_env}/hosts"))
            .await;
        assert_eq!(list.expect(200), json!([]), "a late reply makes no host");
    }
    assert_ne!(states[0]["status"], "discovering");
    for state in &states[1..] {
        assert_eq!(*state, states[0]);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn garbage_is_refused_and_changes_nothing() {
    let server = Server::start().await;
    let cluster = server.cluster(json!({})).await;
    let infra_env = server.infra_env(Some(&cluster)).await;
    let host = server.host(&infra_env, 1).await;
    let reply = server.reply(&host, "inventory", &inventory(1)).await;
    reply.expect(204);
    let before = server.get(&host).await.expect(200);
    let path = format!("{host}/instructions");
    for (step, _) in replies(1) {
        for output in [
            "",
            "null",
            "{",
            "[[[[",
            "\"text\"",
            "-1",
            "\u{1}\u{fffd}",
            "{\"interfaces\":1,\"remote_hosts\":1}",
        ] {
            let reply =
                json!({ "step_type": step, "step_id": "x", "exit_code": 0, "output": output });
            let status = server.post(&path, &reply).await.status.as_u16();
            assert!([204, 400].contains(&status), "{step} {output:?}: {status}");
        }
        let failed = json!({ "step_type": step, "step_id": "x", "exit_code": -1, "output": "{", "error": "no" });
        server.post(&path, &failed).await.expect(204);
    }
    for body in [
        json!([]),
        json!({ "step_type": 7 }),
        json!({ "exit_code": "0" }),
    ] {
        server.post(&path, &body).await.expect(400);
    }
    let after = server.get(&host).await.expect(200);
    assert_eq!(after["inventory"], before["inventory"]);
    let steps = server.get(&path).await.expect(200);
    assert!(!steps["instructions"].as_array().unwrap().is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn two_machines_with_one_id_are_one_host_with_a_failed_validation() {
    let server = Server::start().await;
    let cluster = server.cluster(json!({})).await;
    let infra_env = server.infra_env(Some(&cluster)).await;
    let mut host = String::new();
    for _ in 0..2 {
        for machine in [1, 2] {
            let other = merged(
                inventory(machine),
                json!({ "hostname": format!("machine-{machine}") }),
            );
            // Each agent registers, polls and replies in its own time.
            host = server.host(&infra_env, 1).await;
            server
                .get(&format!("{host}/instructions"))
                .await
                .expect(200);
            server.reply(&host, "inventory", &other).await.expect(204);
        }
        let [left, right] = [report(1, 1), report(2, 1)];
        let (left, right) = tokio::join!(
            server.reply(&host, "inventory", &left),
            server.reply(&host, "inventory", &right)
        );
        assert_eq!((left.status.as_u16(), right.status.as_u16()), (204, 204));
    }
    let list = server
        .get(&format!("/v2/infra-envs/{infra_env}/hosts"))
        .await;
    assert_eq!(list.expect(200).as_array().unwrap().len(), 1);
    let failed = async || {
        let found = server.get(&host).await.expect(200);
        let validations = validations(&found);
        match validations.get("host-id-unique").map(String::as_str) {
            Some("failure") => Ok(()),
            _ => Err(format!("{validations:?}")),
        }
    };
    server.until("the validation fails", failed).await;
}
