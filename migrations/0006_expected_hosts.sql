-- Machines that an infra-env expects: its hosts are compared with them.

create table infra_env_expected_hosts (
    infra_env_id uuid primary key
        constraint infra_env_expected_hosts_infra_env_id_fkey references infra_envs (id) on delete cascade,
    hosts jsonb not null constraint infra_env_expected_hosts_is_list check (jsonb_typeof(hosts) = 'array'),
    updated_at timestamptz not null
);
