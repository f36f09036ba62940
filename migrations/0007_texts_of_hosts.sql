-- The large texts of a host have columns of their own: a change of the record neither parses nor rewrites them, and
-- a text is stored compressed, beside the row.

alter table hosts
    add column inventory text not null default '',
    add column connectivity text not null default '',
    add column validations_info text not null default '',
    add column free_addresses text not null default '';

-- lz4 compresses several times faster than the default, but not every server is built with it.
do $$
begin
    execute 'alter table hosts
        alter column inventory set compression lz4,
        alter column connectivity set compression lz4,
        alter column validations_info set compression lz4,
        alter column free_addresses set compression lz4';
exception
    when feature_not_supported or syntax_error or invalid_parameter_value then null;
end
$$;

update hosts
set inventory = coalesce(record ->> 'inventory', ''),
    connectivity = coalesce(record ->> 'connectivity', ''),
    validations_info = coalesce(record ->> 'validations_info', ''),
    free_addresses = coalesce(record ->> 'free_addresses', ''),
    record = record - array['inventory', 'connectivity', 'validations_info', 'free_addresses'];

-- Raised with each change of the record: polls compare it with the one that they have read.
alter table infra_envs add column revision bigint not null default 1;
