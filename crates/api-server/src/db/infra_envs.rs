//! Statements about infra-envs.

use model::ids::{ClusterId, InfraEnvId};
use model::infra_env::InfraEnv;
use model::release_payload::ComponentImages;
use model::time::Timestamp;
use sealing::{KeySet, SecretTable};
use serde_json::Value;
use sqlx::PgConnection;
use uuid::Uuid;

use super::record_page::{self, PagedRow, RecordPage};
use super::{Error, OwnedSecret, RecordCounts, RecordVersion, record};

const TABLE: SecretTable = SecretTable::InfraEnvs;

/// An infra-env as stored.
#[derive(Debug, Clone)]
pub(crate) struct InfraEnvRow {
    /// The wire record.
    pub(crate) record: InfraEnv,
    /// Pull secret of its hosts.
    pub(crate) pull_secret: String,
    /// Images of its release that hosts run; the settings may replace them.
    pub(crate) components: ComponentImages,
    /// Version of the record.
    pub(crate) version: RecordVersion,
}

/// Columns of [`InfraEnvRow`], sealed.
struct StoredInfraEnv {
    record: String,
    pull_secret: String,
    components: Option<Value>,
    revision: i64,
    updated_at: Timestamp,
}

impl StoredInfraEnv {
    fn open(self, keys: &KeySet, id: InfraEnvId) -> Result<InfraEnvRow, Error> {
        Ok(InfraEnvRow {
            record: record::parse(keys, TABLE, id, &self.record)?,
            pull_secret: keys.open_text(&TABLE.place("pull_secret", id), self.pull_secret)?,
            components: stored_components(id, self.components)?,
            version: RecordVersion {
                revision: self.revision,
                updated_at: self.updated_at,
            },
        })
    }
}

/// None of an infra-env whose images the settings name.
fn stored_components(id: InfraEnvId, json: Option<Value>) -> Result<ComponentImages, Error> {
    let read = json.map(serde_json::from_value).transpose();
    let read = read.map_err(|source| malformed(id, source))?;
    Ok(read.unwrap_or_default())
}

fn malformed(id: InfraEnvId, source: serde_json::Error) -> Error {
    let what = format!("images of infra-env {id}");
    Error::Record { what, source }
}

struct InfraEnvColumns {
    id: Uuid,
    record: String,
}

impl PagedRow for InfraEnvColumns {
    type Id = Uuid;

    fn id(&self) -> Uuid {
        self.id
    }

    fn length(&self) -> usize {
        self.record.len()
    }
}

/// One infra-env.
pub(crate) async fn find(
    connection: &mut PgConnection,
    keys: &KeySet,
    id: InfraEnvId,
) -> Result<Option<InfraEnvRow>, Error> {
    let row = sqlx::query_as!(
        StoredInfraEnv,
        r#"select record::text as "record!", pull_secret, components, revision, updated_at from infra_envs where id = $1"#,
        id.0
    )
    .fetch_optional(connection)
    .await?;
    row.map(|row| row.open(keys, id)).transpose()
}

/// One infra-env, with its row locked until the transaction ends.
pub(crate) async fn find_for_update(
    connection: &mut PgConnection,
    keys: &KeySet,
    id: InfraEnvId,
) -> Result<Option<InfraEnvRow>, Error> {
    let row = sqlx::query_as!(
        StoredInfraEnv,
        r#"select record::text as "record!", pull_secret, components, revision, updated_at from infra_envs where id = $1 for update"#,
        id.0
    )
    .fetch_optional(connection)
    .await?;
    row.map(|row| row.open(keys, id)).transpose()
}

/// Images of the release of an infra-env that hosts run; none of an unknown one.
pub(crate) async fn components(
    connection: &mut PgConnection,
    id: InfraEnvId,
) -> Result<ComponentImages, Error> {
    let found = sqlx::query_scalar!("select components from infra_envs where id = $1", id.0);
    stored_components(id, found.fetch_optional(connection).await?.flatten())
}

/// Stores the images of the release of an infra-env that hosts run.
pub(crate) async fn set_components(
    connection: &mut PgConnection,
    id: InfraEnvId,
    components: &ComponentImages,
) -> Result<(), Error> {
    let json = serde_json::to_value(components).map_err(|source| malformed(id, source))?;
    sqlx::query!(
        "update infra_envs set components = $2 where id = $1",
        id.0,
        json
    )
    .execute(connection)
    .await?;
    Ok(())
}

/// Ids of infra-envs, oldest first: all or those of one cluster.
pub(crate) async fn ids(
    connection: &mut PgConnection,
    cluster: Option<ClusterId>,
) -> Result<Vec<Uuid>, Error> {
    let ids = sqlx::query_scalar!(
        "select id from infra_envs where $1::uuid is null or cluster_id = $1 order by created_at, id",
        cluster.map(|id| id.0)
    );
    Ok(ids.fetch_all(connection).await?)
}

/// Some infra-envs, as many as a page holds; `ids` are in their order, the oldest first.
pub(crate) async fn page(
    connection: &mut PgConnection,
    keys: &KeySet,
    ids: &[Uuid],
) -> Result<RecordPage<InfraEnv>, Error> {
    let rows = sqlx::query_as!(
        InfraEnvColumns,
        r#"select id, record::text as "record!"
        from infra_envs
        where id = any($1)
        order by created_at, id"#,
        ids
    );
    let open = |row: InfraEnvColumns| record::parse(keys, TABLE, row.id, &row.record);
    record_page::read(rows.fetch(connection), ids, open).await
}

/// Infra-envs, oldest first: all or those of one cluster.
pub(crate) async fn list(
    connection: &mut PgConnection,
    keys: &KeySet,
    cluster: Option<ClusterId>,
) -> Result<Vec<InfraEnv>, Error> {
    let rows = sqlx::query!(
        r#"select id, record::text as "record!"
        from infra_envs
        where $1::uuid is null or cluster_id = $1
        order by created_at, id"#,
        cluster.map(|id| id.0)
    )
    .fetch_all(connection)
    .await?;
    rows.into_iter()
        .map(|row| record::parse(keys, TABLE, row.id, &row.record))
        .collect()
}

/// Numbers of infra-envs, in all and of an owner.
pub(crate) async fn count(
    connection: &mut PgConnection,
    owner: &str,
) -> Result<RecordCounts, Error> {
    let counts = sqlx::query_as!(
        RecordCounts,
        r#"select count(*) as "all!", count(*) filter (where owner = $1) as "own!"
        from infra_envs"#,
        owner
    );
    Ok(counts.fetch_one(connection).await?)
}

/// Adds an infra-env.
pub(crate) async fn insert(
    connection: &mut PgConnection,
    keys: &KeySet,
    infra_env: &InfraEnv,
    OwnedSecret { owner, pull_secret }: OwnedSecret<'_>,
    now: Timestamp,
) -> Result<(), Error> {
    sqlx::query!(
        "insert into infra_envs (id, cluster_id, name, record, pull_secret, created_at, updated_at, owner)
        values ($1, $2, $3, $4::text::jsonb, $5, $6, $6, $7)",
        infra_env.id.0,
        infra_env.cluster_id.map(|id| id.0),
        infra_env.name,
        record::print(keys, TABLE, infra_env.id, infra_env)?,
        keys.seal_text(&TABLE.place("pull_secret", infra_env.id), pull_secret)?,
        now,
        owner
    )
    .execute(connection)
    .await?;
    Ok(())
}

/// Stores a changed infra-env.
pub(crate) async fn save(
    connection: &mut PgConnection,
    keys: &KeySet,
    infra_env: &InfraEnv,
    pull_secret: &str,
    now: Timestamp,
) -> Result<(), Error> {
    sqlx::query!(
        "update infra_envs
        set cluster_id = $2, name = $3, record = $4::text::jsonb, pull_secret = $5, updated_at = $6,
            revision = revision + 1
        where id = $1",
        infra_env.id.0,
        infra_env.cluster_id.map(|id| id.0),
        infra_env.name,
        record::print(keys, TABLE, infra_env.id, infra_env)?,
        keys.seal_text(&TABLE.place("pull_secret", infra_env.id), pull_secret)?,
        now
    )
    .execute(connection)
    .await?;
    Ok(())
}

/// Removes an infra-env without hosts; false for an unknown one.
pub(crate) async fn delete(connection: &mut PgConnection, id: InfraEnvId) -> Result<bool, Error> {
    let done = sqlx::query!("delete from infra_envs where id = $1", id.0)
        .execute(connection)
        .await?;
    Ok(done.rows_affected() == 1)
}

/// The generation of the tokens of an infra-env; none for an unknown one.
pub(crate) async fn token_generation(
    connection: &mut PgConnection,
    id: InfraEnvId,
) -> Result<Option<i64>, Error> {
    let found = sqlx::query_scalar!(
        "select token_generation from infra_envs where id = $1",
        id.0
    );
    Ok(found.fetch_optional(connection).await?)
}

/// Replaces the signing key of an infra-env and withdraws its tokens; false for an unknown one.
pub(crate) async fn set_signing_key(
    connection: &mut PgConnection,
    keys: &KeySet,
    id: InfraEnvId,
    key: &[u8],
) -> Result<bool, Error> {
    let done = sqlx::query!(
        "update infra_envs set signing_key = $2, token_generation = token_generation + 1 where id = $1",
        id.0,
        keys.seal(&TABLE.place("signing_key", id), key)?
    )
    .execute(connection)
    .await?;
    Ok(done.rows_affected() == 1)
}

/// The signing key of an infra-env; `new` becomes it if there is none yet. None for an unknown infra-env.
pub(crate) async fn signing_key(
    connection: &mut PgConnection,
    keys: &KeySet,
    id: InfraEnvId,
    new: &[u8],
) -> Result<Option<Vec<u8>>, Error> {
    let place = TABLE.place("signing_key", id);
    // Read first: each check of a token reads it, and only the first use writes it.
    let known = sqlx::query_scalar!("select signing_key from infra_envs where id = $1", id.0)
        .fetch_optional(&mut *connection)
        .await?;
    let stored = match known {
        Some(None) => {
            let made = sqlx::query_scalar!(
                r#"update infra_envs
                set signing_key = coalesce(signing_key, $2)
                where id = $1
                returning signing_key as "signing_key!""#,
                id.0,
                keys.seal(&place, new)?
            );
            made.fetch_optional(connection).await?
        }
        known => known.flatten(),
    };
    Ok(stored.map(|stored| keys.open(&place, stored)).transpose()?)
}

/// Whether hosts are registered in it.
pub(crate) async fn has_hosts(
    connection: &mut PgConnection,
    id: InfraEnvId,
) -> Result<bool, Error> {
    Ok(sqlx::query_scalar!(
        r#"select exists (select 1 from hosts where infra_env_id = $1) as "exists!""#,
        id.0
    )
    .fetch_one(connection)
    .await?)
}

/// Unbinds the infra-envs of a cluster.
pub(crate) async fn leave_cluster(
    connection: &mut PgConnection,
    cluster: ClusterId,
) -> Result<(), Error> {
    sqlx::query!(
        "update infra_envs
        set cluster_id = null, record = record - 'cluster_id', revision = revision + 1
        where cluster_id = $1",
        cluster.0
    )
    .execute(connection)
    .await?;
    Ok(())
}
