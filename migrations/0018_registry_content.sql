-- Releases that the registry of the site holds, as a replica read them last: one row, derived from the registry.

create table registry_content (
    is_only boolean primary key default true constraint registry_content_is_one_row check (is_only),
    registry text not null,
    content jsonb not null default '{}',
    read_at timestamptz,
    failure text
);
