// Mistakes of a cluster as a list: each with its hosts, and the link to the step that corrects it.

import { List, ListItem } from "@patternfly/react-core";
import type { ReactNode } from "react";
import { useTranslation } from "react-i18next";
import { Reason } from "../components/reason";
import { FixLink } from "./fix_link";
import { HostNames } from "./host_names";
import type { Mistake } from "./mistakes";
import type { FailedValidation } from "./validations";

interface Props {
  mistakes: Mistake<FailedValidation>[];
  cluster: string;
  /** Replaces the link to the step of time sources, where their dialog can be opened. */
  timeSources?: ReactNode;
}

export function MistakeList({ mistakes, cluster, timeSources }: Props) {
  const { t } = useTranslation();
  return (
    <List isPlain>
      {mistakes.map(({ first, topic, hosts }) => (
        <ListItem key={`${first.id} ${first.observed}`}>
          {hosts.length > 0 && <><HostNames hosts={hosts} />: </>}
          <Reason text={first.observed} /> {topic === "timeSources" && timeSources ? timeSources : <FixLink topic={topic} cluster={cluster} />}
          {first.isWarning && <div className="atoll-muted">{t("It does not prevent the installation.")}</div>}
        </ListItem>
      ))}
    </List>
  );
}
