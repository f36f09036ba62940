// The result of a rehearsal: the verdict, and each mistake with its host and remedy.

import { Alert, Button, Flex } from "@patternfly/react-core";
import { useState } from "react";
import { useTranslation } from "react-i18next";
import { copy } from "../components/clipboard";
import { type Column, DataTable } from "../components/data_table";
import { download } from "../components/download";
import { Reason } from "../components/reason";
import { HostNames } from "../mistakes/host_names";
import type { RehearsalFinding, RehearsalResult as Result } from "./records";
import { type Outcome, mistakesOfResult, outcomeOf, reportText, verdictText } from "./report";

type Row = RehearsalFinding & { key: string; hosts: string[] };

export function RehearsalResult({ result }: { result: Result }) {
  const { t } = useTranslation();
  const [isCopied, setCopied] = useState(false);
  const outcome = outcomeOf(result);
  const labels: Record<Outcome, string> = { success: t("Success"), warning: t("Warning"), danger: t("Error") };
  const next: Record<Outcome, string> = {
    success: t("Simulated hosts became a cluster. Switches, firewalls and the hardware itself were not part of it."),
    warning: t("The cluster was installed all the same. Correct the mistakes below before the first real host boots, and rehearse again."),
    danger: t("Correct the mistakes below before the first real host boots, and rehearse again."),
  };
  const rows = mistakesOfResult(result).map(({ first, hosts }, index): Row => ({ ...first, hosts, key: String(index) }));
  const columns: Column<Row>[] = [
    { id: "host", title: t("Host"), text: ({ hosts }) => hosts.join(" "), cell: (finding) => <>{finding.hosts.length > 0 ? <HostNames hosts={finding.hosts} /> : <strong>{t("Cluster")}</strong>}<div className="atoll-muted"><code>{finding.id}</code></div></> },
    { id: "observed", title: t("Observed"), text: ({ observed }) => observed, cell: ({ observed }) => (observed ? <Reason text={observed} /> : "–") },
    { id: "required", title: t("Required"), text: ({ required }) => required, cell: ({ required }) => required || "–" },
    { id: "fix", title: t("Remedy"), text: ({ fix }) => fix, cell: ({ fix }) => fix || "–" },
  ];
  const copyReport = () => {
    copy(reportText(result));
    setCopied(true);
  };
  return (
    <>
      <Alert isInline variant={outcome} variantLabel={labels[outcome]} title={verdictText(t, result)}>{next[outcome]}</Alert>
      <Flex className="atoll-row">
        <Button variant="secondary" onClick={copyReport}>{isCopied ? t("Copied") : t("Copy the report")}</Button>
        <Button variant="secondary" onClick={() => download("rehearsal.json", `${JSON.stringify(result, null, 2)}\n`)}>{t("Download as JSON")}</Button>
      </Flex>
      {rows.length > 0 && (
        <DataTable label={t("Mistakes")} scope="mistake-" columns={columns} rows={rows}
          rowId={({ key }) => key} searched={({ id }) => id} choice={{ id: "id", title: t("Mistake"), of: ({ id }) => id }} empty={{ title: t("Nothing matches the filter."), body: "" }} />
      )}
    </>
  );
}
