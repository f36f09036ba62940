-- Release images that administrators offer beside those of RELEASE_IMAGES.

create table release_images (
    version text not null,
    cpu_architecture text not null,
    record jsonb not null constraint release_images_record_is_object check (jsonb_typeof(record) = 'object'),
    added_by text not null,
    added_at timestamptz not null,
    primary key (version, cpu_architecture)
);
