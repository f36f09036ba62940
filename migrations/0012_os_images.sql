-- OS images that administrators offer beside those of OS_IMAGES.

create table os_images (
    openshift_version text not null,
    cpu_architecture text not null,
    record jsonb not null constraint os_images_record_is_object check (jsonb_typeof(record) = 'object'),
    added_by text not null,
    added_at timestamptz not null,
    primary key (openshift_version, cpu_architecture)
);
