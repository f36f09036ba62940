//! The check of the database for `atoll doctor`: a login, the schema, and a write that is rolled back.

use doctor::{CheckStatus, ProbeProblem, SiteProbe};
use net::resolve::Resolver;
use sealing::Keyring;
use sqlx::{Connection as _, PgConnection};

use super::{Database, DatabaseUnavailable, schema};
use crate::settings::Settings;

/// A check with the login of `settings`; `password` is the place of its password, for remedies.
pub fn database_probe(settings: &Settings, password: impl Into<String>) -> SiteProbe {
    let (settings, password) = (settings.clone(), password.into());
    let Settings {
        db_host, db_port, ..
    } = &settings;
    let subject = format!("{db_host}:{db_port}/{}", settings.db_name);
    SiteProbe::new(subject, move || {
        let (settings, password) = (settings.clone(), password.clone());
        async move {
            let database = Database::new(&settings, Resolver::system(), Keyring::default());
            let checked = check(&database, &settings.db_user).await;
            database.close().await;
            checked.map_err(|problem| problem.of_site(&password))
        }
    })
}

/// Problem of a database.
#[derive(Debug)]
enum DatabaseProblem {
    Unavailable(DatabaseUnavailable),
    /// Migrations are missing. Units: counts of missing ones, and of all.
    Outdated(usize, usize),
}

impl<E: Into<DatabaseUnavailable>> From<E> for DatabaseProblem {
    fn from(error: E) -> Self {
        Self::Unavailable(error.into())
    }
}

impl DatabaseProblem {
    fn of_site(&self, password: &str) -> ProbeProblem {
        let (finding, remedy) = match self {
            // Their reasons have a remedy each.
            Self::Unavailable(
                unavailable @ (DatabaseUnavailable::Newer { .. } | DatabaseUnavailable::Foreign(_)),
            ) => (unavailable.to_string(), unavailable.remedy(password)),
            Self::Unavailable(unavailable) => (unavailable.reason(), unavailable.remedy(password)),
            Self::Outdated(missing, all) => (
                format!("its schema lacks {missing} of {all} migrations"),
                "start the api-server of this version, which applies them; its log has the reason if it does not"
                    .to_owned(),
            ),
        };
        ProbeProblem {
            status: CheckStatus::Failed,
            finding,
            remedy,
        }
    }
}

async fn check(database: &Database, user: &str) -> Result<String, DatabaseProblem> {
    let mut connection = database.connect().await?;
    let (missing, all) = schema::missing(&mut connection).await?;
    if missing > 0 {
        return Err(DatabaseProblem::Outdated(missing, all));
    }
    write(&mut connection).await?;
    connection.close().await?;
    Ok(format!("accepts the login of {user} and writes"))
}

/// Writes half a MiB, which nothing else sees, and rolls it back: a full disk and a standby accept logins.
async fn write(connection: &mut PgConnection) -> Result<(), sqlx::Error> {
    let mut transaction = connection.begin().await?;
    let written = sqlx::query!(
        "create temporary table atoll_doctor on commit drop as
        select md5(n::text) as text
        from generate_series(1, 8192) as n"
    );
    written.execute(&mut *transaction).await?;
    transaction.rollback().await
}

#[cfg(test)]
mod tests {
    use sqlx::Executor as _;
    use testkit::postgres::{self, PostgresServer, TestDatabase};

    use super::*;

    fn settings(database: &TestDatabase) -> Settings {
        Settings {
            db_host: database.host.clone(),
            db_port: database.port,
            db_user: database.user.clone(),
            db_pass: database.password.clone().into(),
            db_name: database.name.clone(),
            ..Settings::default()
        }
    }

    async fn checked(settings: &Settings) -> Result<String, DatabaseProblem> {
        let database = Database::new(settings, Resolver::system(), Keyring::default());
        check(&database, &settings.db_user).await
    }

    /// Asserts that the check fails with `finding` and a remedy.
    async fn fails(settings: &Settings, finding: &str, remedy: &str) {
        let problem = checked(settings)
            .await
            .unwrap_err()
            .of_site("PASSWORD FILE");
        assert!(problem.finding.contains(finding), "{problem:?}");
        assert!(problem.remedy.contains(remedy), "{problem:?}");
        assert_eq!(problem.status, CheckStatus::Failed);
    }

    #[tokio::test]
    async fn logins_are_tried() {
        let database = postgres::database().await.unwrap();
        let right = settings(&database);
        let found = checked(&right).await.unwrap();
        assert!(found.contains(&database.user), "{found}");
        let missing = Settings {
            db_name: "absent".to_owned(),
            ..right.clone()
        };
        fails(&missing, "no database of that name", "DB_NAME").await;
        let user = Settings {
            db_user: "absent".to_owned(),
            ..right.clone()
        };
        fails(&user, "DB_USER", "DB_USER").await;
        let away = Settings {
            db_port: testkit::ports::free_port().unwrap(),
            ..right
        };
        fails(&away, "does not accept connections", "start the database").await;
    }

    #[tokio::test]
    async fn wrong_passwords_fail_and_are_not_printed() {
        let server = PostgresServer::start().await.unwrap();
        let database = server.database().await.unwrap();
        let mut connection = PgConnection::connect_with(&database.options())
            .await
            .unwrap();
        let rules: String = sqlx::query_scalar("show hba_file")
            .fetch_one(&mut connection)
            .await
            .unwrap();
        let user = "create role strict login superuser password 'right-one'";
        connection.execute(user).await.unwrap();
        let trusting = std::fs::read_to_string(&rules).unwrap();
        let strict = format!("host all strict all scram-sha-256\n{trusting}");
        std::fs::write(&rules, strict).unwrap();
        connection.execute("select pg_reload_conf()").await.unwrap();
        let with = |password: &str| Settings {
            db_user: "strict".to_owned(),
            db_pass: password.to_owned().into(),
            ..settings(&database)
        };
        let wrong = with("wrong-one");
        // The server reads its rules a moment later.
        while checked(&wrong).await.is_ok() {
            tokio::task::yield_now().await;
        }
        fails(&wrong, "refuses the password", "PASSWORD FILE").await;
        let problem = format!("{:?}", checked(&wrong).await);
        assert!(!problem.contains("wrong-one"), "{problem}");
        checked(&with("right-one")).await.unwrap();
    }

    #[tokio::test]
    async fn databases_that_cannot_be_written_fail() {
        let database = postgres::database().await.unwrap();
        let settings = settings(&database);
        let mut connection = PgConnection::connect_with(&database.options())
            .await
            .unwrap();
        let set = "do $$ begin
            execute format('alter database %I set default_transaction_read_only = on', current_database());
        end $$";
        connection.execute(set).await.unwrap();
        fails(&settings, "is read-only", "DB_HOST").await;
    }

    #[tokio::test]
    async fn schemas_of_other_versions_fail() {
        let database = postgres::database().await.unwrap();
        let settings = settings(&database);
        let mut connection = PgConnection::connect_with(&database.options())
            .await
            .unwrap();
        let mut run = async |statement: &'static str| {
            connection.execute(statement).await.unwrap();
        };
        run("delete from _sqlx_migrations where version = (select max(version) from _sqlx_migrations)").await;
        fails(&settings, "lacks 1 of", "start the api-server").await;
        run("delete from _sqlx_migrations").await;
        fails(&settings, "lacks", "start the api-server").await;
        run("drop table _sqlx_migrations").await;
        fails(&settings, "another program", "DB_NAME").await;
    }
}
