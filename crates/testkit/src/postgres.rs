//! Throw-away databases with the schema in place.
//!
//! The server is the one that `DATABASE_URL` names, else one started from the local binaries: once per process, under
//! an unprivileged user when the process is root. It ends with the process, however that ends. Each call gets a
//! database of its own, cloned from a template that was migrated once.

use std::fs;
use std::io::{self, Write as _};
use std::net::Ipv4Addr;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, chown};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use crate::ports::free_port;
use anyhow::{Context as _, Result, bail};
use sqlx::postgres::{PgConnectOptions, PgConnection, PgPoolOptions};
use sqlx::{AssertSqlSafe, ConnectOptions as _, Connection as _};
use tokio::sync::OnceCell;

static MIGRATIONS: sqlx::migrate::Migrator = sqlx::migrate!("../../migrations");

/// How long a server may take to accept connections.
const START_TIMEOUT: Duration = Duration::from_mins(1);
/// Retries with another port when one is in use.
const START_ATTEMPTS: u32 = 5;
/// Lines of the server's log in an error.
const LOG_LINES: usize = 20;
/// Superuser of a server that was started here.
const USER: &str = "atoll";
/// Prefix of database names, before process and number.
const PREFIX: &str = "atoll_test_";

/// An empty database with the schema in place.
#[derive(Debug, Clone)]
pub struct TestDatabase {
    /// Host name or address.
    pub host: String,
    /// TCP port.
    pub port: u16,
    /// Owner of the database.
    pub user: String,
    /// The owner's password.
    pub password: String,
    /// Name of the database.
    pub name: String,
}

impl TestDatabase {
    /// How to connect.
    pub fn options(&self) -> PgConnectOptions {
        PgConnectOptions::new_without_pgpass()
            .host(&self.host)
            .port(self.port)
            .username(&self.user)
            .password(&self.password)
            .database(&self.name)
    }
}

/// A database on the process's server.
///
/// Errors: no server binaries, a server that does not start, a schema that cannot be made.
pub async fn database() -> Result<TestDatabase> {
    shared().await?.database().await
}

/// The process's server.
async fn shared() -> Result<&'static PostgresServer> {
    static SERVER: OnceCell<PostgresServer> = OnceCell::const_new();
    SERVER.get_or_try_init(PostgresServer::open).await
}

/// A database on the process's server, restored from a plain SQL dump of `pg_dump`.
///
/// Errors: no psql, a dump that cannot be loaded.
pub async fn restored(dump: &Path) -> Result<TestDatabase> {
    let database = shared().await?.database_of("template1").await?;
    let mut psql = tokio::process::Command::new(binary("psql")?);
    psql.args(["--no-psqlrc", "--quiet", "--single-transaction"])
        .args(["--set=ON_ERROR_STOP=1", "--host", &database.host])
        .args(["--port", &database.port.to_string()])
        .args(["--username", &database.user, "--dbname", &database.name])
        .arg("--file")
        .arg(dump)
        .env("PGPASSWORD", &database.password);
    let output = psql.output().await?;
    if !output.status.success() {
        let stderr = String::from_utf8_lossy(&output.stderr);
        bail!("loading {}: {stderr}", dump.display());
    }
    Ok(database)
}

/// The content of a database as plain SQL, without owners, for [`restored`].
///
/// Errors: no pg_dump, those of the database.
pub async fn dump(database: &TestDatabase) -> Result<Vec<u8>> {
    let mut command = tokio::process::Command::new(binary("pg_dump")?);
    command
        .args(["--no-owner", "--no-privileges", "--host", &database.host])
        .args(["--port", &database.port.to_string()])
        .args(["--username", &database.user, &database.name])
        .env("PGPASSWORD", &database.password);
    let output = command.output().await?;
    if !output.status.success() {
        bail!("pg_dump: {}", String::from_utf8_lossy(&output.stderr));
    }
    // Newer programs fence their output in with commands that older ones do not know.
    let text = String::from_utf8(output.stdout)?;
    let lines = text
        .lines()
        .filter(|line| !line.starts_with("\\restrict") && !line.starts_with("\\unrestrict"));
    Ok(lines
        .flat_map(|line| [line, "\n"])
        .collect::<String>()
        .into())
}

/// A Postgres server.
#[derive(Debug)]
pub struct PostgresServer {
    admin: TestDatabase,
    template: String,
    process: Option<Process>,
}

/// A server of this process; it ends with this value or the process, and its folder with it.
#[derive(Debug)]
struct Process {
    folder: PathBuf,
    port: u16,
    child: Option<Child>,
}

impl PostgresServer {
    /// The server that `DATABASE_URL` names, else a new one.
    async fn open() -> Result<Self> {
        #[expect(
            clippy::disallowed_methods,
            reason = "tests have no settings; this variable is sqlx's own"
        )]
        let url = std::env::var("DATABASE_URL").unwrap_or_default();
        if url.is_empty() {
            return Self::start().await;
        }
        let url = url::Url::parse(&url).context("DATABASE_URL is no URL")?;
        let decode = |text: &str| {
            percent_encoding::percent_decode_str(text)
                .decode_utf8_lossy()
                .into_owned()
        };
        let admin = TestDatabase {
            host: url
                .host_str()
                .context("DATABASE_URL names no host")?
                .to_owned(),
            port: url.port().unwrap_or(5432),
            user: decode(url.username()),
            password: decode(url.password().unwrap_or_default()),
            name: decode(url.path().trim_start_matches('/')),
        };
        Self::with_template(admin, None).await
    }

    /// Starts a server of its own from the local binaries.
    pub async fn start() -> Result<Self> {
        Self::start_as(None).await
    }

    /// Starts a server of its own that offers TLS, with a certificate as PEM and its key.
    pub async fn start_with_tls(certificate: &str, key: &str) -> Result<Self> {
        Self::start_as(Some((certificate.to_owned(), key.to_owned()))).await
    }

    async fn start_as(tls: Option<(String, String)>) -> Result<Self> {
        let process = tokio::task::spawn_blocking(move || Process::start(tls.as_ref())).await??;
        let admin = TestDatabase {
            host: Ipv4Addr::LOCALHOST.to_string(),
            port: process.port,
            user: USER.to_owned(),
            password: "none".to_owned(),
            name: "postgres".to_owned(),
        };
        Self::with_template(admin, Some(process)).await
    }

    async fn with_template(admin: TestDatabase, process: Option<Process>) -> Result<Self> {
        let template = format!("{PREFIX}{}_template", std::process::id());
        let server = Self {
            admin,
            template,
            process,
        };
        let mut connection = server.connect().await?;
        sweep(&mut connection).await?;
        create(&mut connection, &server.template, "template1").await?;
        let options = server.admin.options().database(&server.template);
        // A pool, because the migrator wants one connection that it may lose.
        let pool = PgPoolOptions::new()
            .max_connections(1)
            .connect_with(options)
            .await?;
        MIGRATIONS
            .run(&pool)
            .await
            .context("migrating the template database")?;
        pool.close().await;
        Ok(server)
    }

    /// A database of its own.
    pub async fn database(&self) -> Result<TestDatabase> {
        self.database_of(&self.template).await
    }

    async fn database_of(&self, template: &str) -> Result<TestDatabase> {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let name = format!(
            "{PREFIX}{}_{}",
            std::process::id(),
            NUMBER.fetch_add(1, Ordering::Relaxed)
        );
        let mut connection = self.connect().await?;
        create(&mut connection, &name, template).await?;
        Ok(TestDatabase {
            name,
            ..self.admin.clone()
        })
    }

    /// Ends a server that was started here, as a power cut would; its data stays.
    pub fn stop(&mut self) {
        if let Some(process) = &mut self.process {
            process.stop();
        }
    }

    /// Starts a stopped server again on its port.
    pub async fn start_again(&mut self) -> Result<()> {
        if let Some(process) = &mut self.process {
            process.spawn()?;
            if !process.listens()? {
                bail!("the test database does not start again: {}", process.log());
            }
        }
        self.connect().await.map(drop)
    }

    async fn connect(&self) -> Result<PgConnection> {
        let options = self.admin.options().disable_statement_logging();
        let deadline = Instant::now() + START_TIMEOUT;
        loop {
            match PgConnection::connect_with(&options).await {
                Ok(connection) => return Ok(connection),
                Err(error) if Instant::now() > deadline || self.has_ended(&error) => {
                    let log = self.process.as_ref().map(Process::log);
                    let log = log.unwrap_or_default();
                    return Err(error).context(format!(
                        "the test database does not accept connections: {log}"
                    ));
                }
                Err(_) => tokio::time::sleep(Duration::from_millis(20)).await,
            }
        }
    }

    /// A server that was started here listened before its first use.
    fn has_ended(&self, error: &sqlx::Error) -> bool {
        let refused = io::ErrorKind::ConnectionRefused;
        self.process.is_some() && matches!(error, sqlx::Error::Io(io) if io.kind() == refused)
    }
}

/// Names cannot be bound; these are made of our prefix and numbers.
async fn create(connection: &mut PgConnection, name: &str, template: &str) -> Result<()> {
    let statement = format!("create database {name} template {template}");
    sqlx::query(AssertSqlSafe(statement))
        .execute(connection)
        .await
        .with_context(|| format!("creating {name}"))?;
    Ok(())
}

/// Drops databases of ended processes on a server that outlives them.
async fn sweep(connection: &mut PgConnection) -> Result<()> {
    let names: Vec<String> = sqlx::query_scalar(
        "select datname::text from pg_database where starts_with(datname::text, $1)",
    )
    .bind(PREFIX)
    .fetch_all(&mut *connection)
    .await?;
    for name in names {
        let process = name
            .trim_start_matches(PREFIX)
            .split('_')
            .next()
            .and_then(|text| text.parse::<u32>().ok());
        let is_ours = name
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
        if let Some(process) = process
            && is_ours
            && (process == std::process::id() || !Path::new(&format!("/proc/{process}")).exists())
        {
            // Another sweeper may have been first.
            let statement = format!("drop database if exists {name} with (force)");
            let _ = sqlx::query(AssertSqlSafe(statement))
                .execute(&mut *connection)
                .await;
        }
    }
    Ok(())
}

/// Puts certificate and key where the server finds them, for its eyes only, and switches TLS on.
fn offer_tls(data: &Path, (certificate, key): &(String, String)) -> Result<()> {
    for (name, text) in [("server.crt", certificate), ("server.key", key)] {
        let path = data.join(name);
        fs::write(&path, text)?;
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600))?;
        if let Some((user, group)) = unprivileged()? {
            chown(&path, Some(user), Some(group))?;
        }
    }
    let mut settings = fs::File::options()
        .append(true)
        .open(data.join("postgresql.conf"))?;
    writeln!(settings, "ssl = on")?;
    Ok(())
}

impl Process {
    fn start(tls: Option<&(String, String)>) -> Result<Self> {
        let folder = tempfile::Builder::new()
            .prefix("atoll-postgres-")
            .permissions(fs::Permissions::from_mode(0o755))
            .tempdir()?
            .keep();
        let data = folder.join("data");
        fs::create_dir(&data)?;
        fs::set_permissions(&data, fs::Permissions::from_mode(0o700))?;
        if let Some((user, group)) = unprivileged()? {
            chown(&data, Some(user), Some(group))?;
            chown(&folder, Some(user), Some(group))?;
        }
        let output = command(&binary("initdb")?)?
            .args([
                "--auth=trust",
                "--no-sync",
                "--encoding=UTF8",
                "--locale=C",
                "--username",
                USER,
                "--pgdata",
            ])
            .arg(&data)
            .output()?;
        if !output.status.success() {
            bail!("initdb failed: {}", String::from_utf8_lossy(&output.stderr));
        }
        if let Some(tls) = tls {
            offer_tls(&data, tls)?;
        }
        let mut process = Self {
            folder,
            port: 0,
            child: None,
        };
        process.spawn_on_free_port()?;
        Ok(process)
    }

    fn spawn_on_free_port(&mut self) -> Result<()> {
        for _ in 0..START_ATTEMPTS {
            self.port = free_port()?;
            self.spawn()?;
            if self.listens()? {
                return Ok(());
            }
            self.stop();
        }
        bail!("the test database does not start: {}", self.log())
    }

    /// Waits until the server listens; false when it ends or takes too long.
    fn listens(&mut self) -> Result<bool> {
        let deadline = Instant::now() + START_TIMEOUT;
        while Instant::now() < deadline {
            if std::net::TcpStream::connect((Ipv4Addr::LOCALHOST, self.port)).is_ok() {
                return Ok(true);
            }
            if let Some(child) = &mut self.child
                && child.try_wait()?.is_some()
            {
                break;
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        Ok(false)
    }

    /// The last lines that the server logged.
    fn log(&self) -> String {
        let log = fs::read_to_string(self.folder.join("log")).unwrap_or_default();
        let lines: Vec<&str> = log.lines().collect();
        lines[lines.len().saturating_sub(LOG_LINES)..].join("\n")
    }

    /// The shell holds the read end of a pipe to this process: when the process ends, also by a kill, the shell ends the
    /// server and removes its folder, unless it has to keep it.
    fn spawn(&mut self) -> Result<()> {
        let script = r#"
            exec 3<&0
            "$@" 3<&- >>"$0/log" 2>&1 &
            server=$!
            {
                read -r word <&3
                kill -QUIT $server
                while kill -0 $server 2>/dev/null; do sleep 0.05; done
                [ "$word" = keep ] || rm -rf "$0"
            } &
            wait $server
        "#;
        let child = command(Path::new("/bin/sh"))?
            .arg("-c")
            .arg(script)
            .arg(&self.folder)
            .arg(binary("postgres")?)
            .arg("-D")
            .arg(self.folder.join("data"))
            .arg("-k")
            .arg(&self.folder)
            .args(["-h", "127.0.0.1", "-p", &self.port.to_string()])
            // No fsync: a killed server keeps acknowledged commits; only a power cut would lose them.
            .args(["-c", "fsync=off", "-c", "full_page_writes=off"])
            .args(["-c", "max_connections=200", "-c", "shared_buffers=32MB"])
            .stdin(Stdio::piped())
            .spawn()
            .context("starting the test database")?;
        self.child = Some(child);
        Ok(())
    }

    /// Ends the server and keeps its data.
    fn stop(&mut self) {
        if let Some(mut child) = self.child.take() {
            if let Some(mut pipe) = child.stdin.take() {
                pipe.write_all(b"keep\n").ok();
            }
            child.wait().ok();
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        match self.child.take() {
            Some(mut child) => {
                drop(child.stdin.take());
                child.wait().ok();
            }
            None => {
                fs::remove_dir_all(&self.folder).ok();
            }
        }
    }
}

/// A command under an unprivileged user: the server refuses to run as root.
fn command(program: &Path) -> io::Result<Command> {
    let mut command = Command::new(program);
    command.current_dir("/").stdin(Stdio::null());
    if let Some((user, group)) = unprivileged()? {
        command.uid(user).gid(group);
    }
    Ok(command)
}

/// User of the server when the process is root; absent when it is not.
fn unprivileged() -> io::Result<Option<(u32, u32)>> {
    if fs::metadata("/proc/self")?.uid() != 0 {
        return Ok(None);
    }
    let passwd = fs::read_to_string("/etc/passwd")?;
    let find = |name: &str| {
        passwd
            .lines()
            .map(|line| line.split(':').collect::<Vec<_>>())
            .find_map(|fields| match fields[..] {
                [found, _, user, group, ..] if found == name => {
                    Some((user.parse().ok()?, group.parse().ok()?))
                }
                _ => None,
            })
    };
    find("postgres")
        .or_else(|| find("nobody"))
        .map(Some)
        .ok_or_else(|| {
            io::Error::new(
                io::ErrorKind::NotFound,
                "no user to run the test database: neither postgres nor nobody exists",
            )
        })
}

/// The newest server program of that name: Debian's versioned folders, then PATH.
fn binary(name: &str) -> Result<PathBuf> {
    let mut found: Vec<(u32, PathBuf)> = fs::read_dir("/usr/lib/postgresql")
        .into_iter()
        .flatten()
        .flatten()
        .filter_map(|entry| {
            let version = entry.file_name().to_str()?.parse().ok()?;
            Some((version, entry.path().join("bin").join(name)))
        })
        .filter(|(_, path)| path.is_file())
        .collect();
    found.sort();
    if let Some((_, path)) = found.pop() {
        return Ok(path);
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path)
        .map(|folder| folder.join(name))
        .find(|path| path.is_file())
        .with_context(|| {
            format!(
                "no {name} found: install the package postgresql, or name a server in DATABASE_URL"
            )
        })
}
