-- Refused changes have a bound of their own, so that they push out no records of changes. 499 is none: the connection was
-- closed before the response, and the change may have been made.

alter table audit_records
    add column is_refusal boolean generated always as (status >= 400 and status < 499) stored;

-- The records of a user, newest first: when a bound is reached, the user with the most loses the oldest.
create index audit_records_by_user on audit_records (is_refusal, user_name, id desc);
