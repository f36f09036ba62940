-- Owners of clusters, infra-envs and events: each has a share of the bounds of the server. Empty, or null for events, for
-- records that were created without an issuer of tokens.

alter table clusters add column owner text not null default '';
alter table infra_envs add column owner text not null default '';

update clusters set owner = record ->> 'user_name' where record ->> 'user_name' <> '';
update infra_envs set owner = record ->> 'user_name' where record ->> 'user_name' <> '';

-- Counts of a registration read the index alone.
create index clusters_by_owner on clusters (owner, deleted_at);
create index infra_envs_by_owner on infra_envs (owner);

-- Events of earlier versions have none, and go as the oldest.
alter table events add column owner text;

create index events_by_owner on events (owner, id) where owner is not null;
