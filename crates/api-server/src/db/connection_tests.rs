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

/// How long a condition may take to come true.
const PATIENCE: Duration = Duration::from_secs(30);

/// The hosts file that the resolver reads.
struct Hosts(TempDir);

impl Hosts {
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

    /// `db` on that port.
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
        Database::new(&settings, resolver)
    }
}

/// An address at which a database answers, until it is frozen: then nothing is heard from there any more.
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

async fn answer(database: &Database) -> i32 {
    let pool = database.pool().unwrap();
    let asked = sqlx::query_scalar("select 41 + 1").fetch_one(pool);
    tokio::time::timeout(PATIENCE, asked)
        .await
        .unwrap()
        .unwrap()
}

#[tokio::test]
async fn a_pool_follows_a_database_that_moved() {
    let real = testkit::postgres::database().await.unwrap();
    let old = Relay::start(("127.0.0.2", 0), &real).await;
    let port = old.address.port();
    let _new = Relay::start(("127.0.0.3", port), &real).await;
    let hosts = Hosts::new("127.0.0.2 db");
    let database = hosts.database(&real, port);
    let mut connection = database.connect().await.unwrap();
    database.migrate(&mut connection).await.unwrap();
    assert_eq!(answer(&database).await, 42);
    assert!(!database.has_moved().await);
    hosts.write("");
    assert!(
        !database.has_moved().await,
        "a name that is lost has not moved"
    );
    hosts.write("127.0.0.3 db");
    assert!(database.has_moved().await);
    // The connection is put back in the background.
    let put_back = async {
        while database.pool.num_idle() == 0 {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(PATIENCE, put_back).await.unwrap();
    old.frozen.cancel();
    database.connect().await.unwrap();
    assert!(!database.has_moved().await);
    assert_eq!(
        answer(&database).await,
        42,
        "on a connection to the new address"
    );
}

#[tokio::test]
async fn each_address_is_tried_and_the_good_one_kept() {
    let real = testkit::postgres::database().await.unwrap();
    let relay = Relay::start(("127.0.0.3", 0), &real).await;
    let hosts = Hosts::new("127.0.0.2 db\n127.0.0.3 db\n127.0.0.4 db");
    let database = hosts.database(&real, relay.address.port());
    database.connect().await.unwrap();
    assert_eq!(database.pool.connect_options().get_host(), "127.0.0.3");
    let places = database.location.places("127.0.0.3").await.unwrap();
    let places: Vec<_> = places.iter().map(PgConnectOptions::get_host).collect();
    assert_eq!(places, ["127.0.0.3", "127.0.0.2", "127.0.0.4"]);
}

#[tokio::test]
async fn a_name_that_is_not_known_is_the_reason() {
    let real = testkit::postgres::database().await.unwrap();
    let away = Hosts::new("").database(&real, real.port).connect().await;
    let away = away.unwrap_err();
    assert_eq!(
        away.reason(),
        "not found: the name db cannot be looked up: no name server is set (DB_HOST)"
    );
    assert!(away.to_string().contains("/nowhere/resolv.conf"), "{away}");
    assert!(!away.is_refusal());
}

/// A server that refuses each login with `code`.
async fn refusing(at: &str, code: &'static str) -> SocketAddr {
    let listener = TcpListener::bind((at, 0)).await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            // The wish for TLS is declined, then comes the greeting.
            stream.read_exact(&mut [0; 8]).await.unwrap();
            stream.write_all(b"N").await.unwrap();
            let length = stream.read_u32().await.unwrap();
            let mut greeting = vec![0; usize::try_from(length).unwrap() - 4];
            stream.read_exact(&mut greeting).await.unwrap();
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
async fn a_refusal_is_told_without_the_password() {
    let nobody = TestDatabase {
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
        // Behind the one that refuses nobody listens: that is not what is told.
        let hosts = Hosts::new("127.0.0.2 db\n127.0.0.3 db");
        let database = hosts.database(&nobody, address.port());
        let away = database.connect().await.unwrap_err();
        if is_refusal {
            assert_eq!(away.reason(), reason);
        } else {
            assert_eq!(
                away.reason(),
                "does not accept connections (DB_HOST, DB_PORT)"
            );
            hosts.write("127.0.0.2 db");
            assert_eq!(database.connect().await.unwrap_err().reason(), reason);
        }
        assert_eq!(away.is_refusal(), is_refusal);
        assert!(!format!("{away} {away:?}").contains("very-secret"));
    }
}

#[tokio::test]
async fn without_a_name_nothing_is_looked_up() {
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
        // The certificate is checked against the name.
        base.clone().host("db").ssl_mode(PgSslMode::VerifyFull),
    ] {
        let host = options.get_host().to_owned();
        let location = Location::new(options, resolver());
        let places = location.places(&host).await.unwrap();
        assert_eq!(places.len(), 1);
        assert_eq!(places[0].get_host(), host);
        assert!(!location.has_left(&host).await);
    }
    let named = Location::new(base.host("db"), resolver());
    named.places("db").await.unwrap_err();
}
