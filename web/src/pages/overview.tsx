// The site at a glance: what is stuck, how the clusters and the site's checks stand, what happened last.

import { Alert, Card, CardBody, CardTitle, Content, Flex, Gallery, List, ListItem } from "@patternfly/react-core";
import { useTranslation } from "react-i18next";
import { Link } from "react-router-dom-v5-compat";
import type { Cluster, ExplanationList, SiteCheck, SiteEvent, Versions } from "../api/records";
import { useLive, useResource } from "../api/resource";
import { RunningJob } from "../archives/running_job";
import { Causes } from "../components/causes";
import { byName, words } from "../components/format";
import { Loaded } from "../components/loaded";
import { NewCluster } from "../components/new_cluster";
import { PageFrame } from "../components/page";
import { Reason } from "../components/reason";
import { StatusLabel } from "../components/status";
import { Time } from "../components/time";

const CLUSTERS = "/clusters/";
const EXPLANATIONS = "/explain?limit=10";
const EVENTS = "/events?order=descending&limit=10";

function counted(clusters: Cluster[]): [status: string, count: number][] {
  const counts = new Map<string, number>();
  for (const { status } of clusters) counts.set(status, (counts.get(status) ?? 0) + 1);
  return [...counts].sort(([, one], [, other]) => other - one);
}

const URGENCY: SiteCheck["status"][] = ["passed", "warning", "failed"];

/** The worst check of each group. */
function worstByGroup(checks: SiteCheck[]): SiteCheck[] {
  const worst = new Map<string, SiteCheck>();
  for (const check of checks) {
    const known = worst.get(check.group);
    if (!known || URGENCY.indexOf(check.status) > URGENCY.indexOf(known.status)) worst.set(check.group, check);
  }
  return [...worst.values()];
}

export default function Overview() {
  const { t } = useTranslation();
  const clusters = useResource<Cluster[]>(CLUSTERS);
  const explanations = useResource<ExplanationList>(EXPLANATIONS);
  const events = useResource<SiteEvent[]>(EVENTS);
  const checks = useResource<{ checks: SiteCheck[] }>("/doctor", 60_000);
  const versions = useResource<Versions>("/openshift-versions", 60_000);
  useLive({}, [CLUSTERS, EXPLANATIONS, EVENTS]);
  return (
    <PageFrame title={t("Overview")} actions={<NewCluster />}>
      <Gallery hasGutter minWidths={{ default: "18rem" }}>
        <Card isFullHeight>
          <CardTitle component="h2"><Link to="/clusters">{t("Clusters")}</Link></CardTitle>
          <CardBody>
            <Loaded resource={clusters}>
              {(list) => (
                <>
                  <div className="atoll-number">{list.length}</div>
                  <Flex gap={{ default: "gapSm" }}>
                    {counted(list).map(([status, count]) => (
                      <Link key={status} to={`/clusters?status=${status}`} className="atoll-nowrap"><StatusLabel status={status} /> {count}</Link>
                    ))}
                  </Flex>
                </>
              )}
            </Loaded>
          </CardBody>
        </Card>
        <Card isFullHeight>
          <CardTitle component="h2"><Link to="/readiness">{t("Readiness")}</Link></CardTitle>
          <CardBody>
            {checks.error?.status === 403
              ? <Content component="p">{t("Only administrators see the checks of the site.")}</Content>
              : (
                <Loaded resource={checks}>
                  {({ checks: list }) => (
                    <List isPlain>
                      {worstByGroup(list).map(({ group, status, finding }) => (
                        <ListItem key={group}>
                          <StatusLabel status={status} /> {t(words(group))}
                          {status !== "passed" && <div className="atoll-muted"><Reason text={finding} /></div>}
                        </ListItem>
                      ))}
                    </List>
                  )}
                </Loaded>
              )}
          </CardBody>
        </Card>
        <Card isFullHeight>
          <CardTitle component="h2"><Link to="/versions">{t("Versions")}</Link></CardTitle>
          <CardBody>
            <Loaded resource={versions}>
              {(table) => (
                <>
                  <div className="atoll-number">{Object.keys(table).length}</div>
                  {Object.keys(table).sort(byName).slice(-3).join(", ")}
                </>
              )}
            </Loaded>
          </CardBody>
        </Card>
        <RunningJob />
      </Gallery>
      <Card>
        <CardTitle component="h2">{t("Not ready or stuck")}</CardTitle>
        <CardBody>
          <Loaded resource={explanations}>
            {({ items, next }) => items.length === 0
              ? <Alert isInline isPlain variant="success" variantLabel={t("Success")} title={t("Nothing waits for you.")} />
              : (
                <Flex direction={{ default: "column" }}>
                  {items.map(({ subject, causes, outcome }) => (
                    <div key={subject.id}>
                      <Content component="h3">
                        {subject.kind === "cluster" ? <Link to={`/clusters/${subject.id}`}>{subject.name}</Link> : subject.name} <StatusLabel status={outcome} />
                      </Content>
                      <Causes subject={subject} causes={causes} limit={3} />
                    </div>
                  ))}
                  {next && <Link to="/clusters">{t("There are more.")}</Link>}
                </Flex>
              )}
          </Loaded>
        </CardBody>
      </Card>
      <Card>
        <CardTitle component="h2"><Link to="/events">{t("Events")}</Link></CardTitle>
        <CardBody>
          <Loaded resource={events}>
            {(list) => list.length === 0
              ? <Content component="p">{t("No events.")}</Content>
              : (
                <List isPlain>
                  {list.map((event, index) => (
                    <ListItem key={`${event.event_time} ${index}`}>
                      <Time at={event.event_time} /> <StatusLabel status={event.severity} /> <Reason text={event.message} />
                    </ListItem>
                  ))}
                </List>
              )}
          </Loaded>
        </CardBody>
      </Card>
    </PageFrame>
  );
}
