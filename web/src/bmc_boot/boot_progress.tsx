// The progress of the boots, and the actions on them.

import { Button, Card, CardBody, CardTitle, Flex } from "@patternfly/react-core";
import { useState } from "react";
import type { TFunction } from "react-i18next";
import { useTranslation } from "react-i18next";
import { type Action, ActionDialog } from "../components/action_dialog";
import { BootTable } from "./boot_table";
import { type BmcBootHost, isUnderWay } from "./records";

interface Props {
  /** Of the boots of the infra-env. */
  path: string;
  hosts: BmcBootHost[];
  reload: () => void;
  /** Enters the failed hosts in the form. */
  retry: (failed: BmcBootHost[]) => void;
}

function cancelling(t: TFunction, path: string, count: number): Action {
  return {
    title: t("Cancel the boots"),
    body: t("Hosts that wait or boot: {{count}}. They end as failed within seconds. A medium that is inserted stays, and a host that is on stays on.", { count }),
    changes: [{ method: "DELETE", path }],
    isDangerous: true,
    hasNoDryRun: true,
  };
}

export function BootProgress({ path, hosts, reload, retry }: Props) {
  const { t } = useTranslation();
  const [action, setAction] = useState<Action>();
  const failed = hosts.filter(({ state }) => state === "failed");
  const underWay = hosts.filter(isUnderWay).length;
  const done = hosts.length - failed.length - underWay;
  return (
    <Card>
      <CardTitle component="h2">{t("Boots")}</CardTitle>
      <CardBody>
        {hosts.length > 0 && (
          <>
            <p role="status">{t("Under way: {{underWay}}, done: {{done}}, failed: {{failed}}", { underWay, done, failed: failed.length })}</p>
            <Flex className="atoll-row">
              {underWay > 0 && <Button variant="secondary" isDanger onClick={() => setAction(cancelling(t, path, underWay))}>{t("Cancel the boots")}</Button>}
              {failed.length > 0 && <Button variant="secondary" onClick={() => retry(failed)}>{t("Try failed hosts again: {{count}}", { count: failed.length })}</Button>}
            </Flex>
          </>
        )}
        <BootTable hosts={hosts} />
      </CardBody>
      {action && <ActionDialog action={action} close={() => setAction(undefined)} done={reload} />}
    </Card>
  );
}
