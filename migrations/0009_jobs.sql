-- Jobs: long work of the site that continues without the person who started it, also after a restart.

create table jobs (
    id uuid primary key,
    kind text not null,
    state text not null
        constraint jobs_state_check check (state in ('queued', 'running', 'succeeded', 'failed', 'cancelled')),
    params jsonb not null,
    created_by text not null,
    created_at timestamptz not null,
    started_at timestamptz,
    ended_at timestamptz,
    -- Starts by any replica: a job that ends its server each time is not started forever.
    attempts integer not null default 0,
    cancel_requested boolean not null default false,
    progress jsonb,
    reason text not null default '',
    result jsonb
);

create index jobs_due on jobs (created_at, id) where state in ('queued', 'running');
create index jobs_by_time on jobs (created_at, id);

-- Files of the results.
create table job_files (
    job_id uuid not null constraint job_files_job_id_fkey references jobs (id) on delete cascade,
    name text not null,
    content bytea not null,
    primary key (job_id, name)
);
