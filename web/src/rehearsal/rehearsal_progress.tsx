// The progress of a rehearsal: the state of the cluster, and its simulated hosts by stage.

import { Content, Spinner } from "@patternfly/react-core";
import { Table, Tbody, Td, Th, Thead, Tr } from "@patternfly/react-table";
import { useTranslation } from "react-i18next";
import type { JobProgress } from "../archives/records";
import { words } from "../components/format";
import { StatusLabel, kindOf } from "../components/status";
import { hostStates, stateText } from "./states";

export function RehearsalProgress({ progress }: { progress: JobProgress | undefined }) {
  const { t } = useTranslation();
  if (!progress) return <p role="status"><Spinner size="md" aria-label={t("Starting the server of the rehearsal")} /> {t("Starting the server of the rehearsal")}</p>;
  const { phase, items, items_total: all, hosts } = progress;
  const states = hostStates(hosts);
  const absent = Math.max(0, all - items);
  const phaseText = phase === "" ? t("Simulated hosts boot") : stateText(t, phase);
  return (
    <>
      <p role="status"><Spinner size="md" aria-hidden aria-label={t("Loading")} /> {t("Cluster")}: {phaseText}</p>
      <Content component="p">{t("Hosts that have registered: {{done}} of {{all}}", { done: items, all })}</Content>
      {all > 0 && (
        <div className="atoll-bar" aria-hidden>
          {states.map(({ status, stage, count }) => <span key={`${status} ${stage}`} className={`atoll-bar-${kindOf(status)}`} style={{ flexGrow: count }} />)}
          <span style={{ flexGrow: absent }} />
        </div>
      )}
      {states.length > 0 && (
        <Table aria-label={t("Hosts by stage")} variant="compact">
          <Thead><Tr><Th>{t("Status")}</Th><Th>{t("Stage")}</Th><Th>{t("Hosts")}</Th></Tr></Thead>
          <Tbody>
            {states.map(({ status, stage, count }) => (
              <Tr key={`${status} ${stage}`}>
                <Td dataLabel={t("Status")}><StatusLabel status={status} /></Td>
                <Td dataLabel={t("Stage")}>{stage === "" ? "–" : t(words(stage))}</Td>
                <Td dataLabel={t("Hosts")}>{count}</Td>
              </Tr>
            ))}
          </Tbody>
        </Table>
      )}
    </>
  );
}
