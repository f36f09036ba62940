-- One record for each change that a user requested: time, user, operation, outcome. Records outlive their clusters.

create table audit_records (
    id bigint generated always as identity primary key,
    recorded_at timestamptz not null,
    user_name text not null,
    org_id text not null,
    operation text not null,
    method text not null,
    path text not null,
    cluster_id uuid,
    infra_env_id uuid,
    host_id uuid,
    -- Status of the response; 499 if the connection was closed before it.
    status smallint not null,
    request_id uuid
);

create function refuse_change_of_audit_record() returns trigger
    language plpgsql
    as $$ begin raise exception 'audit records are append-only'; end $$;

create trigger audit_records_are_append_only
    before update on audit_records
    for each statement execute function refuse_change_of_audit_record();
