-- Codes of log-in links that were used. A code is valid without a row: its signature and its expiry are in itself.

create table used_log_in_codes (
    id uuid primary key,
    expires_at timestamptz not null
);
