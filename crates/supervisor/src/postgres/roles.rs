//! Roles of the database: a superuser without login, and the application role, which owns its database.

use service::Error;

use crate::environment::{DB_NAME, DB_USER};

/// Name of the bootstrap superuser. It has no password, so that only single-user sessions can use it.
pub(super) const SUPERUSER: &str = "postgres";

/// Statements that create role and database of a new cluster.
///
/// Source: PostgreSQL, `postgres --single -j`: a statement ends with a semicolon and two newlines.
pub(super) fn first_statements(password: &str) -> Result<String, Error> {
    let password = literal(password)?;
    Ok(format!(
        "create role {DB_USER} login password {password};\n\ncreate database {DB_NAME} owner {DB_USER};\n\n"
    ))
}

/// Migrates data of versions whose application role was the bootstrap superuser. Runs in `postgres`; idempotent.
///
/// A session cannot rename its own role, hence the update of pg_authid. 10 is the oid of the bootstrap superuser in
/// every version (`BOOTSTRAP_SUPERUSERID`).
pub(super) fn split_superuser(password: &str) -> Result<String, Error> {
    let password = literal(password)?;
    Ok(format!(
        "do $atoll$ begin
            if exists (select from pg_authid where oid = 10 and rolname = '{DB_USER}') then
                update pg_authid set rolname = '{SUPERUSER}', rolpassword = null where oid = 10;
            end if;
        end $atoll$;

do $atoll$ begin
            if not exists (select from pg_authid where rolname = '{DB_USER}') then
                create role {DB_USER};
            end if;
        end $atoll$;

alter role {DB_USER} login nosuperuser nocreatedb nocreaterole noreplication nobypassrls password {password};

alter database {DB_NAME} owner to {DB_USER};

"
    ))
}

/// Reassigns objects of the superuser to the application role. Runs in the application's database; idempotent.
pub(super) fn reassign_objects() -> String {
    format!(
        "do $atoll$ declare change text; begin
            for change in
                select format(
                    'alter %s %s owner to {DB_USER}',
                    case relkind when 'v' then 'view' when 'S' then 'sequence' else 'table' end,
                    oid::regclass
                )
                from pg_class as relation
                where relowner = 10
                    and relnamespace = 'public'::regnamespace
                    and relkind in ('r', 'p', 'v', 'S')
                    -- A sequence of a column goes with its table.
                    and not (relkind = 'S' and exists (
                        select from pg_depend
                        where classid = 'pg_class'::regclass and objid = relation.oid and deptype in ('a', 'i')
                    ))
            loop
                execute change;
            end loop;
        end $atoll$;

"
    )
}

/// SQL string literal.
///
/// Errors: a password of several lines, which could end the statement.
fn literal(password: &str) -> Result<String, Error> {
    let password = password.trim_end();
    if password.is_empty() || password.contains(['\n', '\r', '\0', '\\']) {
        return Err(Error::new(
            "reading the database password",
            "expected one line without backslashes: restore the file from a backup",
        ));
    }
    Ok(format!("'{}'", password.replace('\'', "''")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn passwords_are_quoted() {
        assert_eq!(literal("a'b\n").unwrap(), "'a''b'");
        for wrong in ["", "\n", "a\nb", "a\\b"] {
            literal(wrong).unwrap_err();
        }
    }

    #[test]
    fn each_statement_ends_as_a_single_user_session_reads_it() {
        for text in [
            first_statements("x").unwrap(),
            split_superuser("x").unwrap(),
            reassign_objects(),
        ] {
            for statement in text.split_terminator("\n\n") {
                assert!(statement.ends_with(';'), "{statement}");
            }
        }
    }
}
