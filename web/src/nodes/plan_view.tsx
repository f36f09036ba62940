// A plan: voters of etcd, steps, closed gates. Nothing is changed by it.

import { Alert, Content, List, ListItem } from "@patternfly/react-core";
import { useTranslation } from "react-i18next";
import { Facts } from "../components/facts";
import { Reason } from "../components/reason";
import type { ReplacedNode, ReplacementPlan } from "./records";
import { KINDS, isCritical } from "./states";
import { StepTable } from "./step_table";

const place = ({ name, address }: ReplacedNode) => `${name} (${address})`;

export function PlanView({ plan }: { plan: ReplacementPlan }) {
  const { t } = useTranslation();
  const { kind, old, new: joining, machine, host, is_operator_managed: isManaged, has_machine_api: hasMachines, voters, fewest_voters: fewest, steps } = plan;
  const { title } = KINDS[kind];
  const isSame = old.name === joining.name && old.address === joining.address;
  return (
    <>
      {isCritical(fewest) && (
        <Alert isInline variant="warning" variantLabel={t("Warning")} title={t("No voter can be spared: do not reboot a control node")}>
          {t("etcd has {{fewest}} voters at fewest during the replacement: if another one fails, the cluster stops.", { fewest })}
        </Alert>
      )}
      <Gates plan={plan} />
      <Facts of={[
        [t("Node that leaves"), place(old)],
        [t("Order"), t(title)],
        [t("New node"), isSame ? t("the same name and address") : place(joining)],
        [t("Voters of etcd now"), t("{{healthy}} of {{voters}} healthy", { healthy: voters.healthy, voters: voters.voters })],
        [t("Fewest voters"), fewest],
        [t("Members of etcd"), isManaged ? t("changed by etcd's operator") : t("changed by the command")],
        ["Machine", machine ?? (hasMachines ? t("none") : t("none: the cluster has no Machine API"))],
        ["BareMetalHost", host ?? t("none: you switch the machine off and on")],
      ]} />
      <StepTable steps={steps} />
    </>
  );
}

/** Conditions that keep the next step from its begin. */
function Gates({ plan: { closed } }: { plan: ReplacementPlan }) {
  const { t } = useTranslation();
  if (closed.length === 0) return null;
  const needsPerson = closed.some(({ may_open: mayOpen }) => !mayOpen);
  return (
    <Alert isInline variant={needsPerson ? "danger" : "info"} variantLabel={needsPerson ? t("Error") : t("Info")} title={t("The next step cannot begin yet")}>
      <List>
        {closed.map(({ reason, may_open: mayOpen }) => <ListItem key={reason}><Reason text={reason} /> <strong>{mayOpen ? t("It may pass by itself.") : t("It needs you.")}</strong></ListItem>)}
      </List>
      <Content component="p">{t("Each condition is checked again right before its step.")}</Content>
    </Alert>
  );
}
