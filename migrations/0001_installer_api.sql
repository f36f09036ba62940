-- Clusters, infra-envs, hosts, their check-ins and the events about them.
-- The wire records are kept whole in `record`; a column beside it repeats what statements filter on, or holds
-- what must never be part of an answer.

create table clusters (
    id uuid primary key,
    -- Grows with each saved change of the cluster or of one of its hosts: caches compare it.
    revision bigint not null default 1 check (revision > 0),
    name text not null,
    status text not null constraint clusters_status_known check (status in (
        'insufficient', 'ready', 'error', 'preparing-for-installation', 'pending-for-input', 'installing',
        'finalizing', 'installed', 'adding-hosts', 'cancelled', 'installing-pending-user-action', 'unmonitored'
    )),
    -- The installation files have to be made, and nobody has said yet that they are, or that they cannot be.
    preparation_due boolean not null default false,
    openshift_cluster_id uuid,
    record jsonb not null constraint clusters_record_is_object check (jsonb_typeof(record) = 'object'),
    -- What the release image told about its content, once it has been read.
    release_info jsonb,
    -- What the file store holds for it, as far as decisions ask.
    kubeconfig_stored boolean not null default false,
    user_manifests_stored boolean not null default false,
    pull_secret text not null,
    ui_settings text not null default '',
    created_at timestamptz not null,
    updated_at timestamptz not null,
    deleted_at timestamptz
);

create index clusters_listing on clusters (created_at, id) where deleted_at is null;
create index clusters_by_openshift_cluster_id on clusters (openshift_cluster_id)
    where openshift_cluster_id is not null;
create index clusters_preparation_due on clusters (id) where preparation_due;
-- The monitor looks only at clusters in which a clock runs.
create index clusters_with_timers on clusters (status, id)
    where deleted_at is null and status in (
        'preparing-for-installation', 'installing', 'finalizing', 'installing-pending-user-action', 'error',
        'cancelled'
    );

create table infra_envs (
    id uuid primary key,
    cluster_id uuid constraint infra_envs_cluster_id_fkey references clusters (id),
    name text not null,
    record jsonb not null constraint infra_envs_record_is_object check (jsonb_typeof(record) = 'object'),
    pull_secret text not null,
    created_at timestamptz not null,
    updated_at timestamptz not null
);

create index infra_envs_listing on infra_envs (created_at, id);
create index infra_envs_by_cluster on infra_envs (cluster_id, created_at) where cluster_id is not null;

create table hosts (
    infra_env_id uuid not null constraint hosts_infra_env_id_fkey references infra_envs (id),
    -- Derived from the machine's serial number: unique within an infra-env only.
    id uuid not null,
    -- Order of registration.
    seq bigint generated always as identity,
    cluster_id uuid constraint hosts_cluster_id_fkey references clusters (id),
    status text not null,
    record jsonb not null constraint hosts_record_is_object check (jsonb_typeof(record) = 'object'),
    ignition_endpoint_token text,
    ignition_endpoint_http_headers text,
    created_at timestamptz not null,
    updated_at timestamptz not null,
    primary key (infra_env_id, id)
);

create index hosts_by_cluster on hosts (cluster_id, seq) where cluster_id is not null;
create unique index hosts_once_in_a_cluster on hosts (cluster_id, id) where cluster_id is not null;
create index hosts_in_pool on hosts (status, infra_env_id) where cluster_id is null;

-- When a host was heard of. Written in batches, often: narrow, and with room to stay on the page.
create table host_check_ins (
    infra_env_id uuid not null,
    host_id uuid not null,
    checked_in_at timestamptz not null,
    -- The host's clock minus ours in seconds, as of its last poll.
    clock_offset_s bigint,
    primary key (infra_env_id, host_id),
    constraint host_check_ins_host_fkey foreign key (infra_env_id, host_id)
        references hosts (infra_env_id, id) on delete cascade
) with (fillfactor = 50);

create table events (
    id bigint generated always as identity primary key,
    cluster_id uuid constraint events_cluster_id_fkey references clusters (id) on delete cascade,
    infra_env_id uuid,
    host_id uuid,
    name text not null,
    severity text not null constraint events_severity_known check (
        severity in ('info', 'warning', 'error', 'critical')
    ),
    category text not null constraint events_category_known check (category in ('user', 'metrics')),
    message text not null,
    event_time timestamptz not null,
    request_id uuid,
    props text not null default ''
);

create index events_by_time on events (event_time, id);
create index events_by_cluster on events (cluster_id, event_time, id) where cluster_id is not null;
create index events_by_host on events (host_id, event_time, id) where host_id is not null;
create index events_by_infra_env on events (infra_env_id, event_time, id) where infra_env_id is not null;
