//! Jobs, without a registry: the whole way of archives is a test of the system.

use std::path::Path;

use serde_json::{Value, json};
use sqlx::{Connection as _, PgConnection};

use crate::harness::Server;

/// Key of the runner's lock.
const RUNNER: i64 = 0x6a6f_6273_6a6f_6273;
const SET: &str = "stick/mirror_seq1_000000.tar";

async fn server(folder: &Path) -> Server {
    std::fs::create_dir_all(folder.join("stick")).unwrap();
    std::fs::write(folder.join(SET), "no archive").unwrap();
    Server::with(|settings| settings.archives_dir = Some(folder.to_owned())).await
}

async fn connection(server: &Server) -> PgConnection {
    PgConnection::connect_with(&server.database.options())
        .await
        .unwrap()
}

/// Takes the runner's lock, so that jobs wait; it is free again when the connection is closed.
async fn hold_runner(server: &Server) -> PgConnection {
    let mut connection = connection(server).await;
    sqlx::query("select pg_advisory_lock($1)")
        .bind(RUNNER)
        .execute(&mut connection)
        .await
        .unwrap();
    connection
}

fn verification() -> Value {
    json!({ "kind": "verify-archives", "archives": SET })
}

fn path(job: &Value) -> String {
    format!("/v2/jobs/{}", job["id"].as_str().unwrap())
}

/// The job once it has ended.
async fn ended(server: &Server, job: &Value) -> Value {
    server
        .until("the job ends", async || {
            let job = server.get(&path(job)).await.expect(200);
            match job["state"].as_str().unwrap() {
                "queued" | "running" => Err(job.to_string()),
                _ => Ok(job),
            }
        })
        .await
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_folder_the_missing_setting_is_named() {
    let server = Server::start().await;
    let list = server.get("/v2/archives").await.expect(200);
    assert_eq!(
        list,
        json!({ "folder": "", "registry": "", "sets": [], "omitted_sets": 0 })
    );
    let refused = server.post("/v2/jobs", &verification()).await.expect(409);
    let reason = refused["reason"].as_str().unwrap();
    assert!(reason.contains("ARCHIVES_DIR"), "{reason}");
    assert_eq!(server.get("/v2/jobs").await.expect(200), json!([]));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_damaged_set_is_listed_and_its_jobs_fail_with_a_reason() {
    let dir = tempfile::tempdir().unwrap();
    let server = server(dir.path()).await;
    let list = server.get("/v2/archives").await.expect(200);
    let set = &list["sets"][0];
    assert_eq!(set["name"], SET, "{list}");
    assert_eq!(
        (&set["step"], &set["bytes"]),
        (&json!("damaged"), &json!(10))
    );
    assert!(
        set["reason"]
            .as_str()
            .unwrap()
            .contains("mirror_seq1_000000.tar")
    );
    for (name, status) in [("../secret", 404), ("stick", 404), ("", 404), (SET, 202)] {
        let mut params = verification();
        params["archives"] = name.into();
        server.post("/v2/jobs", &params).await.expect(status);
    }
    let publication = json!({ "kind": "publish-archives", "archives": SET });
    let refused = server.post("/v2/jobs", &publication).await.expect(409);
    assert!(
        refused["reason"]
            .as_str()
            .unwrap()
            .contains("ARCHIVES_REGISTRY")
    );
    let jobs = server.get("/v2/jobs").await.expect(200);
    let job = ended(&server, &jobs[0]).await;
    assert_eq!(job["state"], "failed", "{job}");
    assert!(job["reason"].as_str().unwrap().contains("damaged"));
    let fault = job["verification"]["faults"][0].as_str().unwrap();
    assert!(fault.contains("mirror_seq1_000000.tar"), "{fault}");
    assert_eq!(job["created_by"], "admin");
    for (kinds, count) in [
        ("verify-archives", 1),
        ("publish-archives,rehearsal", 0),
        ("rehearsal,verify-archives", 1),
    ] {
        let listed = server.get(&format!("/v2/jobs?kinds={kinds}")).await;
        assert_eq!(
            listed.expect(200).as_array().unwrap().len(),
            count,
            "{kinds}"
        );
    }
    server.get("/v2/jobs?kinds=unknown").await.expect(400);
    let file = format!("{}/downloads/files", path(&job));
    server.get(&file).await.expect(400);
    server.get(&format!("{file}?file_name=x")).await.expect(404);
    server.delete(&path(&job)).await.expect(204);
    server.get(&path(&job)).await.expect(404);
    server.delete(&path(&job)).await.expect(404);
}

// limit: archive sets in a list
#[tokio::test(flavor = "multi_thread")]
async fn sets_beyond_the_longest_list_are_counted() {
    let dir = tempfile::tempdir().unwrap();
    let server = server(dir.path()).await;
    for sequence in 2..=201 {
        let name = format!("stick/mirror_seq{sequence}_000000.tar");
        std::fs::write(dir.path().join(name), "").unwrap();
    }
    let list = server.get("/v2/archives").await.expect(200);
    assert_eq!(list["sets"].as_array().unwrap().len(), 200);
    assert_eq!(list["omitted_sets"], 1);
}

// limit: jobs that wait or run
#[tokio::test(flavor = "multi_thread")]
async fn as_many_jobs_wait_as_may() {
    let dir = tempfile::tempdir().unwrap();
    let server = server(dir.path()).await;
    let runner = hold_runner(&server).await;
    let mut jobs = Vec::new();
    for _ in 0..20 {
        jobs.push(server.post("/v2/jobs", &verification()).await.expect(202));
    }
    let refused = server.post("/v2/jobs", &verification()).await.expect(409);
    assert!(refused["reason"].as_str().unwrap().contains("20 jobs"));
    server.delete(&path(&jobs[0])).await.expect(409);
    let cancel = format!("{}/actions/cancel", path(&jobs[0]));
    let cancelled = server.post(&cancel, &json!({})).await.expect(202);
    assert_eq!(cancelled["state"], "cancelled");
    server.post("/v2/jobs", &verification()).await.expect(202);
    runner.close().await.unwrap();
    for job in &jobs[1..] {
        assert_eq!(ended(&server, job).await["state"], "failed");
    }
    assert_eq!(ended(&server, &jobs[0]).await["state"], "cancelled");
}

// limit: jobs of a list
#[tokio::test(flavor = "multi_thread")]
async fn a_list_has_at_most_so_many_jobs() {
    let server = Server::start().await;
    for (limit, status) in [(0, 400), (1, 200), (200, 200), (201, 400)] {
        let path = format!("/v2/jobs?limit={limit}");
        server.get(&path).await.expect(status);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_interrupted_job_continues_but_not_forever() {
    let dir = tempfile::tempdir().unwrap();
    let server = server(dir.path()).await;
    let runner = hold_runner(&server).await;
    let first = server.post("/v2/jobs", &verification()).await.expect(202);
    let second = server.post("/v2/jobs", &verification()).await.expect(202);
    // As servers leave them that were killed.
    let mut connection = connection(&server).await;
    for (job, attempts) in [(&first, 1), (&second, 5)] {
        let statement = "update jobs set state = 'running', started_at = now(), attempts = $1 where id = $2::uuid";
        sqlx::query(statement)
            .bind(attempts)
            .bind(job["id"].as_str().unwrap())
            .execute(&mut connection)
            .await
            .unwrap();
    }
    runner.close().await.unwrap();
    let first = ended(&server, &first).await;
    assert!(
        first["reason"].as_str().unwrap().contains("damaged"),
        "{first}"
    );
    let second = ended(&server, &second).await;
    assert!(
        second["reason"].as_str().unwrap().contains("5 times"),
        "{second}"
    );
}

/// Names of schemas of rehearsals.
async fn schemas(server: &Server) -> Vec<String> {
    let query = "select nspname::text from pg_namespace where nspname::text like 'rehearsal%'";
    let mut connection = connection(server).await;
    let names = sqlx::query_scalar(query).fetch_all(&mut connection);
    names.await.unwrap()
}

fn rehearsal(rehearsal: &Value) -> Value {
    json!({ "kind": "rehearsal", "rehearsal": rehearsal })
}

#[tokio::test(flavor = "multi_thread")]
async fn a_rehearsal_leaves_nothing_but_its_result() {
    let server = Server::start().await;
    let options = server.get("/v2/rehearsal-options").await.expect(200);
    assert_eq!(options["profiles"][0]["control_plane"], 3, "{options}");
    for (wrong, part) in [
        (json!({}), "site"),
        (json!({ "profile": "9+9" }), "9+9"),
        (json!({ "site": "a: [", "profile": "" }), "site"),
        (
            json!({ "profile": "3+0", "faults": ["nonsense"] }),
            "nonsense",
        ),
    ] {
        let refused = server
            .post("/v2/jobs", &rehearsal(&wrong))
            .await
            .expect(400);
        assert!(refused.to_string().contains(part), "{refused}");
    }
    let params = rehearsal(&json!({ "profile": "3+0", "faults": ["ram"] }));
    let job = server.post("/v2/jobs", &params).await.expect(202);
    let mut seen = false;
    let job = loop {
        let job = server.get(&path(&job)).await.expect(200);
        seen |= job["progress"]["items_total"] == 3;
        if !["queued", "running"].contains(&job["state"].as_str().unwrap()) {
            break job;
        }
        tokio::time::sleep(std::time::Duration::from_millis(100)).await;
    };
    assert!(seen, "no progress was shown");
    assert_eq!(job["state"], "succeeded", "{job}");
    let result = &job["rehearsal"];
    assert_eq!(result["good"], false, "{result}");
    let findings = result["findings"].as_array().unwrap();
    let of_memory = findings
        .iter()
        .find(|one| one["id"] == "has-memory-for-role");
    let fix = of_memory.unwrap_or_else(|| panic!("{result}"))["fix"].as_str();
    assert!(!fix.unwrap().is_empty());
    let listed = server.get("/v2/jobs").await.expect(200);
    assert_eq!(listed[0]["rehearsal"]["verdict"], result["verdict"]);
    assert_eq!(listed[0]["rehearsal"]["subject"], "3+0");
    assert_eq!(listed[0]["rehearsal"]["findings"], json!([]));
    assert_eq!(schemas(&server).await, [""; 0]);
    let clusters = server.get("/v2/clusters").await.expect(200);
    assert_eq!(clusters, json!([]));
}

#[tokio::test(flavor = "multi_thread")]
async fn secrets_of_a_site_are_not_stored_and_a_cancelled_rehearsal_ends() {
    let server = Server::start().await;
    let site = "apiVersion: v1\nmetadata: {name: lab}\nbaseDomain: example.com\n\
        controlPlane: {name: master, replicas: 3}\nplatform: {none: {}}\n\
        pullSecret: '{\"auths\":{\"registry.example.com:5000\":{\"auth\":\"aGlkZGVuOmhpZGRlbg==\"}}}'\n---\n\
        apiVersion: v1beta1\nkind: AgentConfig\nmetadata: {name: lab}\nhosts:\n\
        - {hostname: m0, role: master, interfaces: [{name: enp1s0, macAddress: '52:54:00:00:00:01'}]}\n";
    let job = rehearsal(&json!({ "site": site }));
    let job = server.post("/v2/jobs", &job).await.expect(202);
    let stored: String = sqlx::query_scalar("select params::text from jobs")
        .fetch_one(&mut connection(&server).await)
        .await
        .unwrap();
    assert!(stored.contains("registry.example.com"), "{stored}");
    assert!(!stored.contains("aGlkZGVu"), "{stored}");
    server
        .until("it has begun", async || {
            let job = server.get(&path(&job)).await.expect(200);
            let has_begun = job["progress"]["items_total"] == 1;
            if has_begun { Ok(()) } else { Err(job) }
        })
        .await;
    let cancel = format!("{}/actions/cancel", path(&job));
    server.post(&cancel, &json!({})).await.expect(202);
    assert_eq!(ended(&server, &job).await["state"], "cancelled");
    let stored: String = sqlx::query_scalar("select params::text from jobs")
        .fetch_one(&mut connection(&server).await)
        .await
        .unwrap();
    assert!(!stored.contains("registry.example.com"), "{stored}");
    // The schema of a cancelled rehearsal is dropped with it, or else by the next one.
    let next = rehearsal(&json!({ "profile": "sno" }));
    let next = server.post("/v2/jobs", &next).await.expect(202);
    let next = ended(&server, &next).await;
    assert_eq!(
        next["rehearsal"]["verdict"], "installed, no mistakes",
        "{next}"
    );
    assert_eq!(schemas(&server).await, [""; 0]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_result_that_cannot_be_stored_is_a_failure() {
    let dir = tempfile::tempdir().unwrap();
    let server = server(dir.path()).await;
    let constraint =
        "alter table jobs add check (result is null or result -> 'verification' = 'null')";
    sqlx::query(constraint)
        .execute(&mut connection(&server).await)
        .await
        .unwrap();
    let job = server.post("/v2/jobs", &verification()).await.expect(202);
    let job = ended(&server, &job).await;
    let reason = job["reason"].as_str().unwrap();
    assert!(reason.contains("cannot be stored"), "{reason}");
}
