//! Whether the schema that is there is this program's: older, current, newer, or foreign.

use std::collections::BTreeMap;

use sqlx::PgConnection;
use sqlx::migrate::{AppliedMigration, Migrate as _, Migrator};

use super::DatabaseUnavailable;

static MIGRATIONS: Migrator = sqlx::migrate!("../../migrations");
/// Where the driver records which migrations were applied.
const APPLIED: &str = "_sqlx_migrations";

/// Brings the schema up to date; replicas that start together wait for each other. After an error the connection is to
/// be dropped: it may hold the lock that the others wait for.
///
/// Errors: Newer, Foreign – nothing was changed then. Schema – a migration failed, and left nothing behind.
pub(super) async fn migrate(connection: &mut PgConnection) -> Result<(), DatabaseUnavailable> {
    // "relation … already exists, skipping" comes with each attempt otherwise, and the driver logs it.
    sqlx::query!("set client_min_messages = warning")
        .execute(&mut *connection)
        .await?;
    // First: the migrator would add its table to a database of another program.
    check(connection).await?;
    // `run` does the same; the compiler cannot tell of it that it may move to another thread.
    MIGRATIONS.run_direct(None, connection, false).await?;
    Ok(())
}

async fn check(connection: &mut PgConnection) -> Result<(), DatabaseUnavailable> {
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
        (false, false) => Ok(()),
        (false, true) => Err(DatabaseUnavailable::Foreign(
            "has tables and no record of migrations".into(),
        )),
        (true, _) => compare(&connection.list_applied_migrations(APPLIED).await?),
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
        let text = format!("its migration {} is another one", changed.version);
        return Err(DatabaseUnavailable::Foreign(text));
    }
    let newest = own.keys().next_back().copied().unwrap_or_default();
    let beyond = applied.iter().map(|migration| migration.version).max();
    match beyond.filter(|version| *version > newest) {
        // A newer version of this program has all migrations that this one has.
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
    fn newer_schemas_are_told_from_foreign_ones() {
        let mut newer = own();
        newer.push(later());
        let away = compare(&newer).unwrap_err();
        assert!(
            matches!(away, DatabaseUnavailable::Newer { found: 9999, .. }),
            "{away}"
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
