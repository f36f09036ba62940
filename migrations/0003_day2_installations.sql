-- Day-2 hosts are installed one by one, while the status of their cluster stays.

create index hosts_being_installed on hosts (cluster_id)
    where cluster_id is not null
        and status in ('installing', 'installing-in-progress', 'installing-pending-user-action');
