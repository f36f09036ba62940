-- Snapshots of clusters are brought up to date by what changed since, and refreshed apart from what made it necessary.

alter table clusters
    -- Validations and statuses have to be computed again: an input of them changed.
    add column refresh_due boolean not null default false,
    -- Revision at which the row itself changed last, not only a host.
    add column record_revision bigint not null default 0,
    -- Revision at which a host left last.
    add column left_revision bigint not null default 0;

create index clusters_refresh_due on clusters (id) where refresh_due;

-- Revision of the cluster at which the host changed last.
alter table hosts add column revision bigint not null default 0;

create index hosts_by_revision on hosts (cluster_id, revision) where cluster_id is not null;

-- Registered hosts: a registration compares it with the limit and must not count rows.
alter table infra_envs add column host_count integer not null default 0 check (host_count >= 0);

update infra_envs
set host_count = (select count(*) from hosts where hosts.infra_env_id = infra_envs.id);
