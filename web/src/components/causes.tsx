// Causes that keep a cluster from being ready or installed: what, since when, the allowed time, the remedy.

import { List, ListItem } from "@patternfly/react-core";
import { useTranslation } from "react-i18next";
import type { Cause } from "../api/records";
import { span } from "./format";
import { StatusLabel } from "./status";
import { Age } from "./time";

export function Causes({ causes }: { causes: Cause[] }) {
  const { t } = useTranslation();
  return (
    <List isPlain isBordered>
      {causes.map((cause) => (
        <ListItem key={`${cause.subject.id} ${cause.id}`}>
          <StatusLabel status={cause.status} /> <strong>{cause.subject.name || cause.subject.id}</strong>
          {": "}{cause.observed || cause.id}
          {cause.required && <div>{t("Required")}: {cause.required}</div>}
          {cause.fix && <div>{t("Remedy")}: {cause.fix}</div>}
          <div className="atoll-muted">
            <code>{cause.id}</code> · {t("for")} <Age at={cause.since} />
            {cause.allowed_seconds !== undefined && <> · {t("allowed")}: {span(cause.allowed_seconds * 1000)}</>}
          </div>
        </ListItem>
      ))}
    </List>
  );
}
