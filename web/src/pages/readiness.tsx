// Readiness: the checks of the site, each with its remedy.

import { Button, Content, Flex } from "@patternfly/react-core";
import { useTranslation } from "react-i18next";
import type { SiteCheck } from "../api/records";
import { useResource } from "../api/resource";
import { type Column, DataTable } from "../components/data_table";
import { words } from "../components/format";
import { Loaded } from "../components/loaded";
import { PageFrame } from "../components/page";
import { Reason } from "../components/reason";
import { StatusLabel } from "../components/status";

// Most urgent first.
const ORDER = ["failed", "warning", "passed"];

export default function Readiness() {
  const { t } = useTranslation();
  const report = useResource<{ checks: SiteCheck[] }>("/doctor", 60_000);
  const columns: Column<SiteCheck>[] = [
    { id: "status", title: t("Status"), order: ({ status }) => ORDER.indexOf(status), text: ({ status }) => status, cell: ({ status }) => <StatusLabel status={status} /> },
    { id: "check", title: t("Check"), text: ({ id }) => id, cell: ({ id, group }) => <>{id}<div className="atoll-muted">{t(words(group))}</div></> },
    { id: "finding", title: t("Finding"), text: ({ finding }) => finding, cell: ({ finding }) => <Reason text={finding} /> },
    { id: "remedy", title: t("Remedy"), text: ({ remedy }) => remedy ?? "", cell: ({ remedy }) => remedy ?? "–" },
  ];
  return (
    <PageFrame title={t("Readiness")} actions={<Button variant="secondary" onClick={() => void report.reload()}>{t("Check again")}</Button>}>
      <Loaded resource={report}>
        {({ checks }) => (
          <>
            <Flex>
              {ORDER.map((status) => (
                <span key={status}><StatusLabel status={status} /> {checks.filter((check) => check.status === status).length}</span>
              ))}
            </Flex>
            <Content component="p" className="atoll-muted">
              {t("The site as the installer API sees it, at most 30 seconds ago. On the host of the services, atoll doctor checks its disks, ports and time, too.")}
            </Content>
            <DataTable label={t("Checks")} columns={columns} rows={checks} rowId={({ id }) => id}
              choice={{ id: "state", title: t("Status"), of: ({ status }) => status }}
              empty={{ title: t("No checks"), body: t("The settings of the installer API name nothing that can be checked.") }} />
          </>
        )}
      </Loaded>
    </PageFrame>
  );
}
