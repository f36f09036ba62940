// Nodes of an installed cluster: their Machines and hosts, requests that wait for a decision, certificates that end soon,
// and the replacement of a control node.

import { Alert, Card, CardBody, CardTitle, EmptyState, EmptyStateBody } from "@patternfly/react-core";
import { useState } from "react";
import { useTranslation } from "react-i18next";
import { Copyable } from "../components/copyable";
import { Facts } from "../components/facts";
import { Loaded } from "../components/loaded";
import { Certificates, endingSoon } from "./certificates";
import { NodeTable } from "./node_table";
import { PendingCsrs } from "./pending_csrs";
import { PlanDialog } from "./plan_dialog";
import { type ClusterNode, type NodeList, isActive } from "./records";
import { Replacement } from "./replacement";
import { useNodes, useReplacement } from "./resources";

export function Nodes({ cluster }: { cluster: string }) {
  const nodes = useNodes(cluster);
  const replacement = useReplacement(cluster);
  // Without any data, the nodes have the same failure.
  const card = replacement.data && <Loaded resource={replacement}>{(data) => <Replacement cluster={cluster} replacement={data} />}</Loaded>;
  if (nodes.data === undefined && nodes.error?.status === 404) return <NoNodes />;
  // One that has ended is history.
  const isFirst = replacement.data !== undefined && isActive(replacement.data);
  return (
    <div className="atoll-tab">
      {isFirst && card}
      <Loaded resource={nodes}>{(list) => <Parts cluster={cluster} list={list} />}</Loaded>
      {!isFirst && card}
    </div>
  );
}

function Parts({ cluster, list }: { cluster: string; list: NodeList }) {
  const { t } = useTranslation();
  const [planned, setPlanned] = useState<ClusterNode>();
  const { url, version, topology, upgrade, nodes, etcd, rolling_out: rollingOut, pending_csrs: csrs, certificates } = list;
  const ending = endingSoon(certificates);
  return (
    <>
      {upgrade && (
        <Alert isInline variant="warning" variantLabel={t("Warning")} title={t("An upgrade is under way: {{upgrade}}", { upgrade })}>
          {t("No control node can be replaced until it has ended.")}
        </Alert>
      )}
      <Card>
        <CardTitle component="h2">{t("Nodes")}</CardTitle>
        <CardBody>
          <Facts of={[
            [t("API address"), url],
            [t("Version"), version],
            [t("Topology"), topology],
            ["etcd", etcd],
            [t("Rolling out"), rollingOut.join(", ")],
          ]} />
          <NodeTable nodes={nodes} plan={setPlanned} />
        </CardBody>
      </Card>
      {csrs.length > 0 && (
        <Card>
          <CardTitle component="h2">{t("Pending certificate requests")}</CardTitle>
          <CardBody><PendingCsrs csrs={csrs} /></CardBody>
        </Card>
      )}
      {ending.length > 0 && (
        <Card>
          <CardTitle component="h2">{t("Certificates that end soon")}</CardTitle>
          <CardBody><Certificates certificates={ending} /></CardBody>
        </Card>
      )}
      {planned && <PlanDialog cluster={cluster} node={planned} nodes={nodes} close={() => setPlanned(undefined)} />}
    </>
  );
}

function NoNodes() {
  const { t } = useTranslation();
  return (
    <EmptyState titleText={t("This version of the server reads no nodes")} headingLevel="h2">
      <EmptyStateBody>
        {t("Upgrade it, or look at them on the command line:")} <Copyable label={t("Command")}>atoll node status --kubeconfig kubeconfig</Copyable>
      </EmptyStateBody>
    </EmptyState>
  );
}
