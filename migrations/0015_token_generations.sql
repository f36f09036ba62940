-- Number of the tokens of an infra-env: those with a smaller one are withdrawn.

alter table infra_envs add column token_generation bigint not null default 0;
