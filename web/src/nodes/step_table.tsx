// Steps of a replacement with their marks, and the effect of an abort after each.

import { Label } from "@patternfly/react-core";
import { Table, Tbody, Td, Th, Thead, Tr } from "@patternfly/react-table";
import { useTranslation } from "react-i18next";
import type { ReplacementReport, ReplacementStep } from "./records";
import { UNDO, markOf } from "./states";

interface Props {
  steps: ReplacementStep[];
  /** The replacement that they belong to, in place of a plan. */
  report?: ReplacementReport;
}

export function StepTable({ steps, report }: Props) {
  const { t } = useTranslation();
  return (
    <Table aria-label={t("Steps")} variant="compact">
      <Thead><Tr><Th>{t("Step")}</Th><Th>{t("Status")}</Th><Th>{t("After a stop")}</Th></Tr></Thead>
      <Tbody>
        {steps.map((step, index) => {
          const { title } = step;
          return (
            <Tr key={step.step}>
              <Td dataLabel={t("Step")}>{index + 1}. {t(title)}</Td>
              <Td dataLabel={t("Status")}><Mark step={step} report={report} /></Td>
              <Td dataLabel={t("After a stop")}><Undo undo={step.undo} /></Td>
            </Tr>
          );
        })}
      </Tbody>
    </Table>
  );
}

function Mark({ step, report }: { step: ReplacementStep; report: ReplacementReport | undefined }) {
  const { t } = useTranslation();
  const { title, status } = markOf(step, report);
  return <Label isCompact {...(status && { status })}>{t(title)}</Label>;
}

function Undo({ undo }: Pick<ReplacementStep, "undo">) {
  const { t } = useTranslation();
  const { title } = UNDO[undo];
  return <>{t(title)}</>;
}
