// Certificate requests that wait for a decision.

import { Content } from "@patternfly/react-core";
import { Table, Tbody, Td, Th, Thead, Tr } from "@patternfly/react-table";
import { useTranslation } from "react-i18next";
import { Copyable } from "../components/copyable";
import { Age } from "../components/time";
import type { PendingCsr } from "./records";

/** Shown rows: a fault of the network can leave thousands of requests. */
const SHOWN = 50;

export function PendingCsrs({ csrs }: { csrs: PendingCsr[] }) {
  const { t } = useTranslation();
  return (
    <>
      <Content component="p">{t("A node that joins waits for their approval. This command approves those of one node, and no other:")}</Content>
      <Copyable label={t("Command")}>atoll node approve NODE --kubeconfig kubeconfig --wait</Copyable>
      <Table aria-label={t("Pending certificate requests")} variant="compact">
        <Thead><Tr><Th>{t("Name")}</Th><Th>{t("Signer")}</Th><Th>{t("Requestor")}</Th><Th>{t("Since")}</Th></Tr></Thead>
        <Tbody>
          {csrs.slice(0, SHOWN).map(({ name, signer, requestor, created_at: created }) => (
            <Tr key={name}>
              <Td dataLabel={t("Name")}>{name}</Td>
              <Td dataLabel={t("Signer")}>{signer}</Td>
              <Td dataLabel={t("Requestor")}>{requestor}</Td>
              <Td dataLabel={t("Since")}><Age at={created} /></Td>
            </Tr>
          ))}
        </Tbody>
      </Table>
      {csrs.length > SHOWN && <p>{t("{{count}} more are not shown", { count: csrs.length - SHOWN })}</p>}
    </>
  );
}
