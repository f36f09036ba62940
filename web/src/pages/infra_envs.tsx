// Infra-envs: the discovery images that hosts boot from.

import { useTranslation } from "react-i18next";
import { Link } from "react-router-dom-v5-compat";
import type { Cluster, Host, InfraEnv } from "../api/records";
import { useLive, useResource } from "../api/resource";
import { Hosts } from "../cluster/hosts";
import { type Column, DataTable } from "../components/data_table";
import { DiscoveryImage } from "../components/discovery_image";
import { Loaded } from "../components/loaded";
import { NewCluster } from "../components/new_cluster";
import { PageFrame } from "../components/page";
import { Time } from "../components/time";

export default function InfraEnvs() {
  const { t } = useTranslation();
  const infraEnvs = useResource<InfraEnv[]>("/infra-envs/");
  const clusters = useResource<Cluster[]>("/clusters/");
  useLive({}, ["/infra-envs/"]);
  const clusterName = (id: string | undefined) => clusters.data?.find((cluster) => cluster.id === id)?.name ?? id ?? "";
  const columns: Column<InfraEnv>[] = [
    { id: "name", title: t("Name"), text: ({ name, id }) => name || id, cell: ({ name, id }) => name || id },
    { id: "cluster", title: t("Cluster"), text: ({ cluster_id: id }) => clusterName(id), cell: ({ cluster_id: id }) => id ? <Link to={`/clusters/${id}`}>{clusterName(id)}</Link> : t("none: hosts are bound later") },
    { id: "version", title: t("Version"), text: ({ openshift_version }) => openshift_version ?? "", cell: ({ openshift_version }) => openshift_version },
    { id: "architecture", title: t("Architecture"), text: ({ cpu_architecture }) => cpu_architecture ?? "", cell: ({ cpu_architecture }) => cpu_architecture },
    { id: "type", title: t("Image"), text: ({ type }) => type ?? "", cell: ({ type }) => type },
    { id: "updated", title: t("Updated"), cell: ({ updated_at }) => <Time at={updated_at} /> },
  ];
  return (
    <PageFrame title={t("Discovery images")}>
      <Loaded resource={infraEnvs}>
        {(data) => (
          <DataTable label={t("Discovery images")} columns={columns} rows={data} rowId={({ id }) => id}
            details={(infraEnv) => (
              <>
                <DiscoveryImage infraEnv={infraEnv} />
                {!infraEnv.cluster_id && <UnboundHosts infraEnv={infraEnv} clusters={clusters.data ?? []} />}
              </>
            )}
            empty={{ title: t("No discovery images yet"), body: t("A cluster's discovery image is made with the cluster."), action: <NewCluster /> }} />
        )}
      </Loaded>
    </PageFrame>
  );
}

/** Statuses of clusters that take hosts. Source: openshift/assisted-service, binding of hosts. */
const OPEN = ["insufficient", "ready", "pending-for-input", "adding-hosts"];

function UnboundHosts({ infraEnv, clusters }: { infraEnv: InfraEnv; clusters: Cluster[] }) {
  const path = `/infra-envs/${infraEnv.id}/hosts`;
  const hosts = useResource<Host[]>(path);
  useLive({}, [path]);
  return (
    <Loaded resource={hosts}>
      {(list) => <Hosts hosts={list} clusters={clusters.filter(({ status }) => OPEN.includes(status))} reload={() => void hosts.reload()} />}
    </Loaded>
  );
}
