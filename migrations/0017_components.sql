-- Images of a release that the hosts of an infra-env run; null where the settings of the server name them all.

alter table infra_envs add column components jsonb;
