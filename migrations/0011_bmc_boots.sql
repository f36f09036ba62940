-- Boots of hosts by their BMCs. The credentials are in the memory of the server alone that accepted the request.

create table bmc_boots (
    infra_env_id uuid not null constraint bmc_boots_infra_env_id_fkey references infra_envs (id) on delete cascade,
    name text not null,
    -- As it was given.
    address text not null,
    -- Host, port and system of the BMC: the same for all spellings of its address.
    system text not null,
    state text not null
        constraint bmc_boots_state_check check (state in ('waiting', 'running', 'installing', 'done', 'failed')),
    step text not null default '',
    error text not null default '',
    warning text not null default '',
    request_id uuid not null,
    -- Session lock of the server that has the credentials.
    holder uuid not null,
    cancel_requested boolean not null default false,
    requested_by text not null,
    requested_at timestamptz not null,
    started_at timestamptz,
    ended_at timestamptz,
    constraint bmc_boots_pkey primary key (infra_env_id, name),
    constraint bmc_boots_end_check check ((ended_at is not null) = (state in ('done', 'failed')))
);

-- Two boots of one host at a time would undo each other's steps.
create unique index bmc_boots_once_at_a_time on bmc_boots (system) where ended_at is null;
create index bmc_boots_by_holder on bmc_boots (holder) where ended_at is null;
