//! Migrations, and the check of the schema: older, current, newer, or foreign.

use std::collections::BTreeMap;

use sqlx::migrate::{AppliedMigration, Migrate as _, Migrator};
use sqlx::{AssertSqlSafe, PgConnection};

use uuid::Uuid;

use super::{DatabaseUnavailable, Error};

static MIGRATIONS: Migrator = sqlx::migrate!("../../migrations");
/// The driver's table of applied migrations.
const APPLIED: &str = "_sqlx_migrations";

/// Prefix of the schemas of rehearsals.
const REHEARSAL: &str = "rehearsal_";

/// Makes an empty schema for a rehearsal; returns its name.
pub(crate) async fn create_of_rehearsal(connection: &mut PgConnection) -> Result<String, Error> {
    let name = format!("{REHEARSAL}{}", Uuid::new_v4().simple());
    execute_with_name(connection, "create schema %I", &name).await?;
    Ok(name)
}

/// Drops the schemas of all rehearsals.
pub(crate) async fn drop_of_rehearsals(connection: &mut PgConnection) -> Result<(), Error> {
    let names = sqlx::query_scalar!(
        r#"select nspname::text as "name!" from pg_namespace where starts_with(nspname::text, $1)"#,
        REHEARSAL
    );
    for name in names.fetch_all(&mut *connection).await? {
        execute_with_name(connection, "drop schema %I cascade", &name).await?;
    }
    Ok(())
}

/// Executes a statement with a name, which PostgreSQL quotes: names are no values that can be bound.
async fn execute_with_name(
    connection: &mut PgConnection,
    form: &str,
    name: &str,
) -> Result<(), Error> {
    let statement =
        sqlx::query_scalar!(r#"select format($1, $2::text) as "statement!""#, form, name);
    let statement = statement.fetch_one(&mut *connection).await?;
    sqlx::query(AssertSqlSafe(statement))
        .execute(connection)
        .await?;
    Ok(())
}

/// Migrates the schema; replicas that start together wait for each other. After an error, drop the connection: it may
/// hold the lock that the others wait for.
///
/// Errors: Newer, Foreign – nothing changed. Schema – a migration failed and was rolled back.
pub(super) async fn migrate(connection: &mut PgConnection) -> Result<(), DatabaseUnavailable> {
    // Suppresses "relation … already exists, skipping", which the driver would log at each start.
    sqlx::query!("set client_min_messages = warning")
        .execute(&mut *connection)
        .await?;
    // Checked first: the migrator would add its table to a database of another program.
    check(connection).await?;
    // `run` does the same, but its future is not provably `Send`.
    MIGRATIONS.run_direct(None, connection, false).await?;
    Ok(())
}

/// Number of migrations that are still to be applied, and number of all. Changes nothing.
///
/// Errors: Newer, Foreign.
pub(super) async fn missing(
    connection: &mut PgConnection,
) -> Result<(usize, usize), DatabaseUnavailable> {
    let applied = check(connection).await?;
    let own = MIGRATIONS.iter().map(|own| own.version);
    let missing = own.filter(|own| !applied.iter().any(|one| one.version == *own));
    Ok((missing.count(), MIGRATIONS.iter().count()))
}

/// The applied migrations.
async fn check(
    connection: &mut PgConnection,
) -> Result<Vec<AppliedMigration>, DatabaseUnavailable> {
    let found = sqlx::query!(
        r#"
        select
            to_regclass('_sqlx_migrations') is not null as "has_record!",
            exists (
                select
                from pg_class
                where relnamespace = current_schema()::regnamespace
                    and relkind in ('r', 'p')
            ) as "has_tables!"
        "#
    )
    .fetch_one(&mut *connection)
    .await?;
    match (found.has_record, found.has_tables) {
        (false, false) => Ok(Vec::new()),
        (false, true) => Err(DatabaseUnavailable::Foreign(
            "has tables, but no applied migrations".into(),
        )),
        (true, _) => {
            let applied = connection.list_applied_migrations(APPLIED).await?;
            compare(&applied)?;
            Ok(applied)
        }
    }
}

fn compare(applied: &[AppliedMigration]) -> Result<(), DatabaseUnavailable> {
    let own: BTreeMap<i64, &[u8]> = MIGRATIONS
        .iter()
        .map(|migration| (migration.version, &*migration.checksum))
        .collect();
    let changed = applied.iter().find(|migration| {
        let known = own.get(&migration.version);
        known.is_some_and(|checksum| **checksum != *migration.checksum)
    });
    if let Some(changed) = changed {
        let text = format!("its migration {} has another checksum", changed.version);
        return Err(DatabaseUnavailable::Foreign(text));
    }
    let newest = own.keys().next_back().copied().unwrap_or_default();
    let beyond = applied.iter().map(|migration| migration.version).max();
    match beyond.filter(|version| *version > newest) {
        // A newer version of this program has all migrations of this one.
        Some(found)
            if own
                .keys()
                .all(|own| applied.iter().any(|a| a.version == *own)) =>
        {
            Err(DatabaseUnavailable::Newer { found, newest })
        }
        Some(found) => Err(DatabaseUnavailable::Foreign(format!(
            "it has migration {found}, and lacks older ones"
        ))),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn own() -> Vec<AppliedMigration> {
        let copy = |version, checksum: &[u8]| AppliedMigration {
            version,
            checksum: checksum.to_vec().into(),
        };
        let migrations = MIGRATIONS.iter();
        migrations
            .map(|migration| copy(migration.version, &migration.checksum))
            .collect()
    }

    fn later() -> AppliedMigration {
        AppliedMigration {
            version: 9999,
            checksum: vec![1].into(),
        }
    }

    #[test]
    fn older_schemas_are_migrated() {
        compare(&[]).unwrap();
        compare(&own()).unwrap();
    }

    #[test]
    fn newer_and_foreign_schemas_are_distinguished() {
        let mut newer = own();
        newer.push(later());
        let unavailable = compare(&newer).unwrap_err();
        assert!(
            matches!(unavailable, DatabaseUnavailable::Newer { found: 9999, .. }),
            "{unavailable}"
        );
        let mut changed = own();
        changed[0].checksum = vec![2].into();
        assert!(matches!(
            compare(&changed),
            Err(DatabaseUnavailable::Foreign(_))
        ));
        assert!(matches!(
            compare(&[later()]),
            Err(DatabaseUnavailable::Foreign(_))
        ));
    }
}
