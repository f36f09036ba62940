// One cluster: why it is not ready, its hosts, their connectivity, events, discovery images, and the way into it.

import { Button, Card, CardBody, CardTitle, Content, DescriptionList, DescriptionListDescription, DescriptionListGroup, DescriptionListTerm, List, ListItem, Tab, TabContent, TabTitleText, Tabs } from "@patternfly/react-core";
import { useState } from "react";
import { useTranslation } from "react-i18next";
import { Link, useNavigate, useParams, useSearchParams } from "react-router-dom-v5-compat";
import type { Cluster, Explanation, InfraEnv } from "../api/records";
import { useLive, useResource } from "../api/resource";
import { Access, hasAccess } from "../cluster/access";
import { Connections } from "../cluster/connections";
import { Hosts } from "../cluster/hosts";
import { InstallCause } from "../cluster/install_cause";
import { isEditable, isInstallable } from "../cluster/installation";
import { type Action, ActionDialog } from "../components/action_dialog";
import { Causes } from "../components/causes";
import { DiscoveryImage } from "../components/discovery_image";
import { EventsTable } from "../components/events_table";
import { instant } from "../components/format";
import { Loaded } from "../components/loaded";
import { PageFrame } from "../components/page";
import { Reason } from "../components/reason";
import { Percentage, StatusLabel } from "../components/status";
import { Time } from "../components/time";
import { Nodes } from "../nodes/nodes";
import { hasNodes } from "../nodes/resources";

const TABS = ["status", "hosts", "nodes", "connections", "events", "images", "access"] as const;
type TabId = (typeof TABS)[number];
const isShown = (tab: TabId, cluster: Cluster) => (tab === "access" ? hasAccess(cluster) : tab !== "nodes" || hasNodes(cluster));
const MOVING = ["preparing-for-installation", "installing", "finalizing"];

export default function ClusterPage() {
  const { t } = useTranslation();
  const { id = "" } = useParams();
  const [parameters, setParameters] = useSearchParams();
  const path = `/clusters/${id}`;
  const explainPath = `${path}/explain`;
  const cluster = useResource<Cluster>(path);
  const explanation = useResource<Explanation>(explainPath);
  const infraEnvs = useResource<InfraEnv[]>(`/infra-envs/?cluster_id=${id}`);
  useLive({ cluster_id: id }, [path, explainPath]);
  const reload = () => {
    void cluster.reload();
    void explanation.reload();
  };
  const wanted = parameters.get("tab");
  const tabs = TABS.filter((one) => cluster.data && isShown(one, cluster.data));
  const tab = tabs.find((one) => one === wanted) ?? "status";
  const titles: Record<TabId, string> = {
    status: t("Status"), hosts: t("Hosts"), nodes: t("Nodes"), connections: t("Connectivity"), events: t("Events"),
    images: t("Discovery images"), access: t("Access"),
  };
  return (
    <PageFrame title={cluster.data?.name ?? id} beside={<StatusLabel status={cluster.data?.status} />}
      parents={[{ path: "/clusters", title: t("Clusters") }]}
      actions={cluster.data && <Actions cluster={cluster.data} reload={reload} />}>
      <Loaded resource={cluster}>
        {(data) => (
          <>
            <Tabs activeKey={tab} onSelect={(_, key) => setParameters({ tab: String(key) }, { replace: true })} aria-label={t("Parts of the cluster")}>
              {tabs.map((one) => (
                <Tab key={one} eventKey={one} title={<TabTitleText>{titles[one]}</TabTitleText>} tabContentId={`tab-${one}`} />
              ))}
            </Tabs>
            <TabContent id={`tab-${tab}`} activeKey={tab} eventKey={tab} aria-label={titles[tab]}>
              {tab === "status" && <Status cluster={data} explanation={explanation} />}
              {tab === "hosts" && <Hosts hosts={data.hosts ?? []} cluster={data} reload={reload} />}
              {tab === "nodes" && <Nodes cluster={id} />}
              {tab === "connections" && <Connections hosts={data.hosts ?? []} />}
              {tab === "events" && <EventsTable clusterId={id} />}
              {tab === "images" && (
                <Loaded resource={infraEnvs}>
                  {(list) => list.length === 0
                    ? <Content component="p">{t("No discovery image belongs to this cluster: create an infra-env with its cluster_id by the API.")}</Content>
                    : (
                      <div className="atoll-tab">
                        {list.map((infraEnv) => (
                          <Card key={infraEnv.id}>
                            <CardTitle component="h2">{infraEnv.name}</CardTitle>
                            <CardBody><DiscoveryImage infraEnv={infraEnv} /></CardBody>
                          </Card>
                        ))}
                      </div>
                    )}
                </Loaded>
              )}
              {tab === "access" && <Access cluster={data} />}
            </TabContent>
          </>
        )}
      </Loaded>
    </PageFrame>
  );
}

function Status({ cluster, explanation }: { cluster: Cluster; explanation: ReturnType<typeof useResource<Explanation>> }) {
  const { t } = useTranslation();
  const time = (at: string | undefined) => instant(at) !== undefined && <Time at={at} />;
  const facts: [string, React.ReactNode][] = [
    [t("Version"), [cluster.openshift_version, cluster.cpu_architecture].filter(Boolean).join(", ")],
    [t("Domain"), cluster.base_dns_domain && `${cluster.name}.${cluster.base_dns_domain}`],
    [t("API address"), cluster.api_vips?.map(({ ip }) => ip).join(", ")],
    [t("Ingress address"), cluster.ingress_vips?.map(({ ip }) => ip).join(", ")],
    [t("Machine network"), cluster.machine_networks?.map(({ cidr }) => cidr).join(", ")],
    [t("Created"), time(cluster.created_at)],
    [t("Installation started"), time(cluster.install_started_at)],
    [t("Installation completed"), time(cluster.install_completed_at)],
    [t("Id"), <span key="id" className="atoll-mono">{cluster.id}</span>],
  ];
  const titles: Partial<Record<Explanation["outcome"], string>> = { "in-progress": t("In progress"), stuck: t("Why it is stuck") };
  const operators = (cluster.monitored_operators ?? []).filter(({ status }) => status);
  return (
    <div className="atoll-tab">
      {/* Causes say the same, and more. */}
      {cluster.status_info && explanation.data?.causes.length === 0 && <div><Reason text={cluster.status_info} /></div>}
      {MOVING.includes(cluster.status) && <Percentage value={cluster.progress?.total_percentage} label={t("Installation")} />}
      <Loaded resource={explanation}>
        {({ subject, outcome, causes, omitted_causes: omitted }) => causes.length === 0
          ? null
          : (
            <Card>
              <CardTitle component="h2">{titles[outcome] ?? t("Why it is not ready")} <StatusLabel status={outcome} /></CardTitle>
              <CardBody>
                <Causes subject={subject} causes={causes} />
                {omitted ? <p>{t("{{count}} more are not shown", { count: omitted })}</p> : null}
              </CardBody>
            </Card>
          )}
      </Loaded>
      {operators.length > 0 && (
        <Card>
          <CardTitle component="h2">{t("Operators")}</CardTitle>
          <CardBody>
            <List isPlain>
              {operators.map(({ name, status, status_info: info }) => <ListItem key={name}><StatusLabel status={status} /> {name} <span className="atoll-muted"><Reason text={info} /></span></ListItem>)}
            </List>
          </CardBody>
        </Card>
      )}
      <Card>
        <CardTitle component="h2">{t("Details")}</CardTitle>
        <CardBody>
          <DescriptionList isHorizontal columnModifier={{ lg: "2Col" }}>
            {facts.filter(([, value]) => value).map(([name, value]) => (
              <DescriptionListGroup key={name}>
                <DescriptionListTerm>{name}</DescriptionListTerm>
                <DescriptionListDescription>{value}</DescriptionListDescription>
              </DescriptionListGroup>
            ))}
          </DescriptionList>
        </CardBody>
      </Card>
    </div>
  );
}

function Actions({ cluster, reload }: { cluster: Cluster; reload: () => void }) {
  const { t } = useTranslation();
  const navigate = useNavigate();
  const [action, setAction] = useState<Action>();
  const path = `/clusters/${cluster.id}`;
  const post = (verb: string) => [{ method: "POST", path: `${path}/actions/${verb}` }];
  const actions: (Action & { isShown: boolean })[] = [
    { title: t("Install"), body: t("The hosts' installation disks are overwritten."), changes: post("install"), isShown: isEditable(cluster) },
    { title: t("Abort the installation"), body: t("Hosts stop where they are; the cluster can be reset and installed again."), changes: post("cancel"), isDangerous: true, isShown: MOVING.includes(cluster.status) },
    { title: t("Reset"), body: t("The cluster returns to the state before its installation; hosts boot the discovery image again."), changes: post("reset"), isDangerous: true, isShown: ["error", "cancelled", ...MOVING].includes(cluster.status) },
    { title: t("Add hosts"), body: t("The cluster takes more hosts, which are installed one by one."), changes: post("allow-add-workers"), isShown: cluster.status === "installed" },
  ];
  const remove: Action = {
    title: t("Delete"), body: t("The cluster's record and files are deleted, its kubeconfig among them; installed hosts keep running."),
    changes: [{ method: "DELETE", path }], isDangerous: true,
  };
  const isWaiting = isEditable(cluster) && !isInstallable(cluster);
  return (
    <>
      {isWaiting && <InstallCause cluster={cluster} id="install-cause" />}
      {actions.filter(({ isShown }) => isShown).map((one) => (
        <Button key={one.title} variant={one.isDangerous ? "secondary" : "primary"} isDanger={one.isDangerous ?? false} onClick={() => setAction(one)}
          {...(isWaiting && { isDisabled: true, "aria-describedby": "install-cause" })}>{one.title}</Button>
      ))}
      <Button variant="secondary" component={(props) => <Link {...props} to={`/assisted-installer/clusters/${cluster.id}`} />}>{t("Open in the wizard")}</Button>
      {!MOVING.includes(cluster.status) && <Button variant="secondary" isDanger onClick={() => setAction(remove)}>{remove.title}</Button>}
      {action && (
        <ActionDialog action={action} close={() => setAction(undefined)}
          done={() => (action.title === remove.title ? navigate("/clusters") : reload())} />
      )}
    </>
  );
}
