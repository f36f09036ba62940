use std::net::SocketAddr;
use std::path::PathBuf;

use net::resolve::ResolverOptions;
use service::CancellationToken;
use sqlx::postgres::PgSslMode;
use tempfile::TempDir;
use testkit::postgres::TestDatabase;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

use super::*;

/// Timeout of each condition.
const TIMEOUT: Duration = Duration::from_secs(30);

/// The hosts file of the resolver.
struct HostsFile(TempDir);

impl HostsFile {
    fn new(text: &str) -> Self {
        let hosts = Self(tempfile::tempdir().unwrap());
        hosts.write(text);
        hosts
    }

    fn write(&self, text: &str) {
        std::fs::write(self.path(), text).unwrap();
    }

    fn path(&self) -> PathBuf {
        self.0.path().join("hosts")
    }

    /// A pool for the host `db` on that port.
    fn database(&self, database: &TestDatabase, port: u16) -> Database {
        let settings = Settings {
            db_host: "db".to_owned(),
            db_port: port,
            db_user: database.user.clone(),
            db_pass: database.password.clone().into(),
            db_name: database.name.clone(),
            ..Settings::default()
        };
        let resolver = Resolver::new(ResolverOptions {
            hosts: self.path(),
            resolv_conf: "/nowhere/resolv.conf".into(),
            ..ResolverOptions::default()
        });
        Database::new(&settings, resolver, Keyring::default())
    }
}

/// A TCP relay to a database; when frozen it holds connections open and forwards nothing.
struct Relay {
    address: SocketAddr,
    frozen: CancellationToken,
}

impl Relay {
    async fn start(at: (&str, u16), database: &TestDatabase) -> Self {
        let listener = TcpListener::bind(at).await.unwrap();
        let address = listener.local_addr().unwrap();
        let frozen = CancellationToken::new();
        let freezes = frozen.clone();
        let target = (database.host.clone(), database.port);
        tokio::spawn(async move {
            while let Ok((mut near, _)) = listener.accept().await {
                let (target, freezes) = (target.clone(), freezes.clone());
                tokio::spawn(async move {
                    let mut far = TcpStream::connect(target).await.unwrap();
                    tokio::select! {
                        _ = tokio::io::copy_bidirectional(&mut near, &mut far) => {}
                        () = freezes.cancelled() => std::future::pending().await,
                    }
                });
            }
        });
        Self { address, frozen }
    }
}

async fn query_answer(database: &Database) -> i32 {
    let pool = database.pool().unwrap();
    let query = sqlx::query_scalar("select 41 + 1").fetch_one(pool);
    tokio::time::timeout(TIMEOUT, query).await.unwrap().unwrap()
}

#[tokio::test]
async fn the_pool_fails_over_when_the_address_changes() {
    let real = testkit::postgres::database().await.unwrap();
    let old = Relay::start(("127.0.0.2", 0), &real).await;
    let port = old.address.port();
    let _new = Relay::start(("127.0.0.3", port), &real).await;
    let hosts = HostsFile::new("127.0.0.2 db");
    let database = hosts.database(&real, port);
    let mut connection = database.connect().await.unwrap();
    database.migrate(&mut connection).await.unwrap();
    assert_eq!(query_answer(&database).await, 42);
    assert!(!database.has_moved().await);
    hosts.write("");
    assert!(
        !database.has_moved().await,
        "an unresolvable name is no move"
    );
    hosts.write("127.0.0.3 db");
    assert!(database.has_moved().await);
    // The connection is put back in the background.
    let put_back = async {
        while database.pool.num_idle() == 0 {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(TIMEOUT, put_back).await.unwrap();
    old.frozen.cancel();
    database.connect().await.unwrap();
    assert!(!database.has_moved().await);
    assert_eq!(
        query_answer(&database).await,
        42,
        "on a connection to the new address"
    );
}

#[tokio::test]
async fn each_address_is_tried_and_the_working_one_kept() {
    let real = testkit::postgres::database().await.unwrap();
    let relay = Relay::start(("127.0.0.3", 0), &real).await;
    let hosts = HostsFile::new("127.0.0.2 db\n127.0.0.3 db\n127.0.0.4 db");
    let database = hosts.database(&real, relay.address.port());
    database.connect().await.unwrap();
    assert_eq!(database.pool.connect_options().get_host(), "127.0.0.3");
    let candidates = database.location.candidates("127.0.0.3").await.unwrap();
    let candidates: Vec<_> = candidates.iter().map(PgConnectOptions::get_host).collect();
    assert_eq!(candidates, ["127.0.0.3", "127.0.0.2", "127.0.0.4"]);
}

#[tokio::test]
async fn an_unresolvable_name_is_reported() {
    let real = testkit::postgres::database().await.unwrap();
    let unavailable = HostsFile::new("")
        .database(&real, real.port)
        .connect()
        .await;
    let unavailable = unavailable.unwrap_err();
    assert_eq!(
        unavailable.reason(),
        "not found: the name db cannot be looked up: no name server is set (DB_HOST)"
    );
    assert!(
        unavailable.to_string().contains("/nowhere/resolv.conf"),
        "{unavailable}"
    );
    assert!(!unavailable.is_refusal());
}

/// A server that refuses each login with `code`.
async fn refusing(at: &str, code: &'static str) -> SocketAddr {
    let listener = TcpListener::bind((at, 0)).await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            // SSLRequest is declined; the startup message follows.
            stream.read_exact(&mut [0; 8]).await.unwrap();
            stream.write_all(b"N").await.unwrap();
            let length = stream.read_u32().await.unwrap();
            let mut startup = vec![0; usize::try_from(length).unwrap() - 4];
            stream.read_exact(&mut startup).await.unwrap();
            let fields = format!("SFATAL\0VFATAL\0C{code}\0Mno entry for you\0\0");
            let mut answer = vec![b'E'];
            answer.extend(u32::try_from(fields.len() + 4).unwrap().to_be_bytes());
            answer.extend(fields.as_bytes());
            stream.write_all(&answer).await.unwrap();
        }
    });
    address
}

#[tokio::test]
async fn refusals_are_reported_without_the_password() {
    let unreachable = TestDatabase {
        host: String::new(),
        port: 0,
        user: "admin".to_owned(),
        password: "very-secret".to_owned(),
        name: "installer".to_owned(),
    };
    for (code, reason, is_refusal) in [
        ("28P01", "refuses the password (DB_USER, DB_PASS)", true),
        ("28000", "refuses the user (DB_USER)", true),
        ("3D000", "has no database of that name (DB_NAME)", true),
        ("53300", "has no connection left", false),
        ("57P03", "is starting or stopping", false),
        ("XX000", "refuses connections, see the log", false),
    ] {
        let address = refusing("127.0.0.2", code).await;
        // Nothing listens at the second address: a refusal takes precedence in the report.
        let hosts = HostsFile::new("127.0.0.2 db\n127.0.0.3 db");
        let database = hosts.database(&unreachable, address.port());
        let unavailable = database.connect().await.unwrap_err();
        if is_refusal {
            assert_eq!(unavailable.reason(), reason);
        } else {
            assert_eq!(
                unavailable.reason(),
                "does not accept connections (DB_HOST, DB_PORT)"
            );
            hosts.write("127.0.0.2 db");
            assert_eq!(database.connect().await.unwrap_err().reason(), reason);
        }
        assert_eq!(unavailable.is_refusal(), is_refusal);
        assert!(!format!("{unavailable} {unavailable:?}").contains("very-secret"));
    }
}

#[tokio::test]
async fn fixed_addresses_need_no_dns() {
    let base = PgConnectOptions::new_without_pgpass();
    let resolver = || {
        Resolver::new(ResolverOptions {
            hosts: "/nowhere/hosts".into(),
            resolv_conf: "/nowhere/resolv.conf".into(),
            ..ResolverOptions::default()
        })
    };
    for options in [
        base.clone().host("/run/postgresql"),
        base.clone().host("192.0.2.1"),
        base.clone().host("fd00::1"),
        // The certificate is verified against the name.
        base.clone().host("db").ssl_mode(PgSslMode::VerifyFull),
    ] {
        let host = options.get_host().to_owned();
        let location = Location::new(options, resolver());
        let candidates = location.candidates(&host).await.unwrap();
        assert_eq!(candidates.len(), 1);
        assert_eq!(candidates[0].get_host(), host);
        assert!(!location.has_moved_from(&host).await);
    }
    let named = Location::new(base.host("db"), resolver());
    named.candidates("db").await.unwrap_err();
}
