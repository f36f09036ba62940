-- Keys of signed links and tokens, of 32 bytes; made at their first use.

alter table clusters add column signing_key bytea check (length(signing_key) = 32);
alter table infra_envs add column signing_key bytea check (length(signing_key) = 32);
