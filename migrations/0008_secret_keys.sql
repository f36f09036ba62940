-- Secrets may be stored sealed, under a key of SECRETS_KEY_FILE.

-- Keys that stored secrets are sealed with, by the hash of the key.
create table secret_keys (
    id text primary key check (length(id) = 16),
    -- No secret is plain or sealed with another key, as of the last pass.
    complete boolean not null default false
);

-- A plain key has 32 bytes, a sealed one is longer.
alter table clusters
    drop constraint clusters_signing_key_check,
    add constraint clusters_signing_key_check check (length(signing_key) >= 32);
alter table infra_envs
    drop constraint infra_envs_signing_key_check,
    add constraint infra_envs_signing_key_check check (length(signing_key) >= 32);
