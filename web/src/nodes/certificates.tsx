// Certificates of etcd that end soon, or have ended.

import { Content } from "@patternfly/react-core";
import { Table, Tbody, Td, Th, Thead, Tr } from "@patternfly/react-table";
import { useTranslation } from "react-i18next";
import { StatusLabel } from "../components/status";
import { Time } from "../components/time";
import type { ClusterCertificate } from "./records";

/** The platform renews them at 80 % of their three years. Units: days. */
const SOON = 90;

/** Those that end soon, the first one first. */
export function endingSoon(certificates: ClusterCertificate[]): ClusterCertificate[] {
  return certificates.filter(({ days_left: days }) => days < SOON).sort((one, other) => one.days_left - other.days_left);
}

export function Certificates({ certificates }: { certificates: ClusterCertificate[] }) {
  const { t } = useTranslation();
  return (
    <>
      <Content component="p">{t("etcd's operator renews them by itself while it runs: if they end in a few days, look at its status.")}</Content>
      <Table aria-label={t("Certificates that end soon")} variant="compact">
        <Thead><Tr><Th>{t("Secret")}</Th><Th>{t("Ends")}</Th><Th>{t("Days left")}</Th></Tr></Thead>
        <Tbody>
          {certificates.map(({ secret, not_after: end, days_left: days }) => (
            <Tr key={secret}>
              <Td dataLabel={t("Secret")}>{secret}</Td>
              <Td dataLabel={t("Ends")}><Time at={end} /></Td>
              <Td dataLabel={t("Days left")}>{days < 0 ? <StatusLabel status="overdue" /> : days}</Td>
            </Tr>
          ))}
        </Tbody>
      </Table>
    </>
  );
}
