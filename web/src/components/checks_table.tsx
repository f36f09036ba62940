// Checks of the site as a plain table: a part of them, on the page of their subject.

import { Table, Tbody, Td, Th, Thead, Tr } from "@patternfly/react-table";
import { useTranslation } from "react-i18next";
import type { SiteCheck } from "../api/records";
import { Reason } from "./reason";
import { StatusLabel } from "./status";

export function ChecksTable({ checks }: { checks: SiteCheck[] }) {
  const { t } = useTranslation();
  return (
    <Table aria-label={t("Checks")} variant="compact">
      <Thead><Tr><Th>{t("Status")}</Th><Th>{t("Check")}</Th><Th>{t("Finding")}</Th><Th>{t("Remedy")}</Th></Tr></Thead>
      <Tbody>
        {checks.map(({ id, status, finding, remedy }) => (
          <Tr key={id}>
            <Td dataLabel={t("Status")}><StatusLabel status={status} /></Td>
            <Td dataLabel={t("Check")}>{id}</Td>
            <Td dataLabel={t("Finding")}><Reason text={finding} /></Td>
            <Td dataLabel={t("Remedy")}>{remedy ?? "–"}</Td>
          </Tr>
        ))}
      </Tbody>
    </Table>
  );
}
