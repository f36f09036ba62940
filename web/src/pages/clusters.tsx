// All clusters, as a table that stays fast with hundreds of them.

import { useTranslation } from "react-i18next";
import { Link } from "react-router-dom-v5-compat";
import type { Cluster } from "../api/records";
import { useLive, useResource } from "../api/resource";
import { type Column, DataTable } from "../components/data_table";
import { instant } from "../components/format";
import { Loaded } from "../components/loaded";
import { NewCluster } from "../components/new_cluster";
import { PageFrame } from "../components/page";
import { Reason } from "../components/reason";
import { RehearseLink } from "../components/rehearse_link";
import { Percentage, StatusLabel } from "../components/status";
import { Time } from "../components/time";

// Without the hosts: their inventories would make megabytes of this list.
const PATH = "/clusters/";
const MOVING = ["preparing-for-installation", "installing", "finalizing"];

export default function Clusters() {
  const { t } = useTranslation();
  const clusters = useResource<Cluster[]>(PATH);
  useLive({}, [PATH]);
  const columns: Column<Cluster>[] = [
    { id: "name", title: t("Name"), text: ({ name, id }) => name || id, cell: ({ name, id }) => <Link to={`/clusters/${id}`}>{name || id}</Link> },
    { id: "status", title: t("Status"), text: ({ status }) => status, cell: (cluster) => (
      <>
        <StatusLabel status={cluster.status} />
        {MOVING.includes(cluster.status) && <Percentage value={cluster.progress?.total_percentage} label={t("Installation")} />}
      </>
    ) },
    { id: "reason", title: t("Reason"), text: ({ status_info }) => status_info ?? "", cell: ({ status_info }) => <Reason text={status_info} /> },
    { id: "version", title: t("Version"), text: ({ openshift_version }) => openshift_version ?? "", cell: ({ openshift_version }) => openshift_version },
    { id: "hosts", title: t("Hosts"), order: ({ total_host_count }) => total_host_count ?? 0, cell: ({ total_host_count }) => total_host_count ?? 0 },
    { id: "created", title: t("Created"), order: ({ created_at }) => instant(created_at) ?? 0, cell: ({ created_at }) => <Time at={created_at} /> },
  ];
  return (
    <PageFrame title={t("Clusters")} actions={<NewCluster />}>
      <Loaded resource={clusters}>
        {(data) => (
          <DataTable label={t("Clusters")} columns={columns} rows={data} rowId={({ id }) => id}
            searched={({ id, base_dns_domain }) => `${id} ${base_dns_domain}`}
            choice={{ id: "status", title: t("Status"), of: ({ status }) => status }}
            empty={{ title: t("No clusters yet"), body: t("The wizard leads from a name to an installed cluster."), action: <><NewCluster /><RehearseLink /></> }} />
        )}
      </Loaded>
    </PageFrame>
  );
}
