//! Full disks, which are small file systems in memory: of WORK_DIR, and of the database.

use std::fs::{self, File};
use std::io::Write as _;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::json;
use sqlx::{ConnectOptions as _, PgConnection};
use tempfile::TempDir;
use testkit::postgres::{PostgresServer, TestDatabase};
use testkit::small_disk::SmallDisk;

use crate::faults::{accepted, assert_consistent, connect, execute, registration, report};
use crate::harness::Server;
use crate::installation::upload;

/// Size of the disk: smaller than the limit of an upload. Units: bytes.
const SIZE: usize = 4 << 20;

#[tokio::test(flavor = "multi_thread")]
async fn uploads_to_a_full_disk_are_refused_without_data_loss() {
    let folder = tempfile::tempdir().unwrap();
    let disk = SmallDisk::mount(folder.path(), SIZE).await;
    let work_dir = disk.path().join("work");
    let server = Server::with(|settings| settings.work_dir = work_dir.clone()).await;
    let (one, other) = (
        server.cluster(json!({})).await,
        server.cluster(json!({})).await,
    );
    let [one, other] =
        [one, other].map(|id| format!("/v2/clusters/{id}/logs?logs_type=controller"));
    upload(&server, &one, "upfile", "FIRST").await.expect(204);
    upload(&server, &other, "upfile", "OTHER").await.expect(204);

    disk.fill();
    let large = "x".repeat(100_000);
    for path in [&one, &other] {
        let refused = upload(&server, path, "upfile", &large).await;
        assert!(
            refused.text.contains("space on the disk of WORK_DIR"),
            "{}",
            refused.text
        );
        assert!(
            !refused.header("retry-after").is_empty(),
            "{:?}",
            refused.headers
        );
        refused.expect(503);
    }
    assert_eq!(server.get(&one).await.text, "FIRST");
    assert_eq!(server.get(&other).await.text, "OTHER");

    disk.free_space();
    upload(&server, &one, "upfile", &large).await.expect(204);
    assert_eq!(server.get(&one).await.text, large);
    assert_eq!(server.get(&other).await.text, "OTHER");
}

#[tokio::test(flavor = "multi_thread")]
async fn failed_uploads_release_their_space() {
    let folder = tempfile::tempdir().unwrap();
    let disk = SmallDisk::mount(folder.path(), SIZE).await;
    let work_dir = disk.path().join("work");
    let server = Server::with(|settings| settings.work_dir = work_dir.clone()).await;
    let id = server.cluster(json!({})).await;
    let path = format!("/v2/clusters/{id}/logs?logs_type=controller");
    for _ in 0..2 {
        upload(&server, &path, "upfile", &"x".repeat(SIZE + 1))
            .await
            .expect(503);
        // The space of the partial upload is released.
        upload(&server, &path, "upfile", &"x".repeat(SIZE / 3))
            .await
            .expect(204);
    }
}

/// A disk that other programs see, too; unmounted when dropped.
struct SharedDisk {
    folder: TempDir,
}

impl SharedDisk {
    /// None without the right to mount. It belongs to the owner of `like`.
    fn mount(bytes: u64, like: &Path) -> Option<Self> {
        let folder = tempfile::tempdir().unwrap();
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).unwrap();
        let owner = fs::metadata(like).unwrap();
        let options = format!(
            "size={bytes},mode=700,uid={},gid={}",
            owner.uid(),
            owner.gid()
        );
        let mut mount = Command::new("mount");
        mount.args(["-t", "tmpfs", "-o", &options, "none"]);
        let mounted = mount.arg(folder.path()).output().unwrap();
        if !mounted.status.success() {
            testkit::skipped("mounts are not permitted");
            return None;
        }
        Some(Self { folder })
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn fill(&self) {
        let mut file = File::create(self.path("filler")).unwrap();
        while file.write_all(&[1; 4096]).is_ok() {}
    }

    fn free_space(&self) {
        fs::remove_file(self.path("filler")).unwrap();
    }
}

impl Drop for SharedDisk {
    fn drop(&mut self) {
        let mut unmount = Command::new("umount");
        unmount.arg("--lazy").arg(self.folder.path());
        unmount.status().ok();
    }
}

async fn administrator(database: &TestDatabase) -> PgConnection {
    database
        .options()
        .database("postgres")
        .connect()
        .await
        .unwrap()
}

async fn data_folder(administrator: &mut PgConnection) -> PathBuf {
    let shown: String = sqlx::query_scalar("show data_directory")
        .fetch_one(administrator)
        .await
        .unwrap();
    shown.into()
}

/// Registers hosts and reports inventories until `count` requests were refused, each as it should; the acknowledged hosts,
/// with the round of the last report. `before` runs before each host.
async fn write_until_refused(
    server: &Server,
    hosts: &str,
    count: usize,
    mut before: impl AsyncFnMut(),
) -> Vec<(u32, Option<u32>)> {
    let (mut acknowledged, mut refused) = (Vec::new(), 0);
    for number in 100.. {
        before().await;
        let is_taken = |status: u16, answer: &crate::harness::Answer| {
            if answer.status == status {
                return true;
            }
            assert_eq!(answer.status, 503, "{answer:?}");
            assert!(!answer.header("retry-after").is_empty(), "{answer:?}");
            assert!(!answer.text.contains("No space"), "{}", answer.text);
            false
        };
        let registered = server.post(hosts, &registration(number)).await;
        if !is_taken(201, &registered) {
            refused += 1;
            if refused == count {
                return acknowledged;
            }
            continue;
        }
        let host = format!("{hosts}/{}", crate::harness::host_id(number));
        let round = number % 7;
        let reply = server
            .reply(&host, "inventory", &report(number % 200, round))
            .await;
        let round = is_taken(204, &reply).then_some(round);
        acknowledged.push((number, round));
    }
    acknowledged
}

async fn assert_kept(server: &Server, hosts: &str, acknowledged: &[(u32, Option<u32>)]) {
    assert!(!acknowledged.is_empty());
    for (number, round) in acknowledged {
        let host = format!("{hosts}/{}", crate::harness::host_id(*number));
        let found = server.get(&host).await.expect(200);
        let Some(round) = round else { continue };
        let stored: serde_json::Value =
            serde_json::from_str(found["inventory"].as_str().unwrap()).unwrap();
        assert_eq!(
            stored["hostname"],
            report(number % 200, *round)["hostname"],
            "{number}"
        );
    }
    assert_consistent(&mut connect(server).await).await;
}

/// The files of tables cannot grow.
#[tokio::test(flavor = "multi_thread")]
async fn a_full_disk_of_the_database_loses_nothing_acknowledged() {
    let postgres = PostgresServer::start().await.unwrap();
    let database = postgres.database().await.unwrap();
    let mut administrator = administrator(&database).await;
    let data = data_folder(&mut administrator).await;
    let Some(disk) = SharedDisk::mount(64 << 20, &data) else {
        return;
    };
    let (tables, name) = (disk.folder.path().display(), &database.name);
    for statement in [
        format!("create tablespace small location '{tables}'"),
        format!("alter database \"{name}\" set tablespace small"),
    ] {
        execute(&mut administrator, &statement).await;
    }
    let server = Server::on(database, |_| {}).await;
    server.wait_ready().await;
    let cluster = server.cluster(json!({})).await;
    let infra_env = server.infra_env(Some(&cluster)).await;
    let hosts = format!("/v2/infra-envs/{infra_env}/hosts");
    let mut acknowledged = Vec::new();
    for number in 1..10 {
        server.host(&infra_env, number).await;
        acknowledged.push((number, None));
    }
    disk.fill();
    acknowledged.extend(write_until_refused(&server, &hosts, 20, async || {}).await);
    // Reads are answered.
    server
        .get(&format!("/v2/clusters/{cluster}"))
        .await
        .expect(200);
    assert_kept(&server, &hosts, &acknowledged).await;
    disk.free_space();
    let further = registration(100_000);
    accepted(201, async || server.post(&hosts, &further).await).await;
    assert_kept(&server, &hosts, &acknowledged).await;
}

/// The write-ahead log cannot grow: the database ends all connections, and starts again when there is space.
#[tokio::test(flavor = "multi_thread")]
async fn a_full_disk_of_the_write_ahead_log_loses_nothing_acknowledged() {
    let mut postgres = PostgresServer::start().await.unwrap();
    let database = postgres.database().await.unwrap();
    let data = data_folder(&mut administrator(&database).await).await;
    let Some(disk) = SharedDisk::mount(256 << 20, &data) else {
        return;
    };
    postgres.stop();
    let (log, moved) = (data.join("pg_wal"), disk.path("pg_wal"));
    let copied = Command::new("cp").arg("-a").arg(&log).arg(&moved).status();
    assert!(copied.unwrap().success());
    fs::remove_dir_all(&log).unwrap();
    symlink(&moved, &log).unwrap();
    postgres.start_again().await.unwrap();
    let server = Server::on(database.clone(), |_| {}).await;
    server.wait_ready().await;
    let cluster = server.cluster(json!({})).await;
    let infra_env = server.infra_env(Some(&cluster)).await;
    let hosts = format!("/v2/infra-envs/{infra_env}/hosts");
    disk.fill();
    // Each host begins another file of the log.
    let begin_file = async || {
        let options = database.options().database("postgres");
        if let Ok(mut administrator) = options.connect().await {
            let switched = sqlx::query("select pg_switch_wal()");
            switched.execute(&mut administrator).await.ok();
        }
    };
    let acknowledged = write_until_refused(&server, &hosts, 5, begin_file).await;
    disk.free_space();
    postgres.stop();
    postgres.start_again().await.unwrap();
    let further = registration(100_000);
    accepted(201, async || server.post(&hosts, &further).await).await;
    assert_kept(&server, &hosts, &acknowledged).await;
}
