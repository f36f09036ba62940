// Causes that keep a cluster from being ready or installed: what, since when, the allowed time, the remedy.

import { List, ListItem } from "@patternfly/react-core";
import { useTranslation } from "react-i18next";
import type { Cause, Subject } from "../api/records";
import { FixLink } from "../mistakes/fix_link";
import { HostNames } from "../mistakes/host_names";
import { mistakesOf } from "../mistakes/mistakes";
import { span } from "./format";
import { Reason } from "./reason";
import { StatusLabel } from "./status";
import { Age } from "./time";

interface Props {
  /** The cluster or infra-env that is explained. */
  subject: Subject;
  causes: Cause[];
  /** Causes that are shown. */
  limit?: number;
}

const named = ({ name, id }: Subject) => name || id;

/** One entry for each mistake. Checks that wait for an input are behind a click: they end with the mistakes before them. */
export function Causes({ subject, causes, limit }: Props) {
  const { t } = useTranslation();
  const isWaiting = ({ status }: Cause) => status === "pending";
  const failed = causes.filter((cause) => !isWaiting(cause)).map((cause) => ({ ...cause, host: cause.subject.kind === "host" ? named(cause.subject) : "", observed: cause.observed || cause.id }));
  const waiting = causes.filter(isWaiting);
  const mistakes = mistakesOf(failed).slice(0, limit);
  return (
    <>
      <List isPlain isBordered>
        {mistakes.map(({ first, hosts, topic }) => (
          <ListItem key={`${first.subject.id} ${first.id}`}>
            <StatusLabel status={first.status} /> {hosts.length > 0 ? <HostNames hosts={hosts} /> : <strong>{named(first.subject)}</strong>}
            {": "}<Reason text={first.observed} />
            {first.required && <div>{t("Required")}: {first.required}</div>}
            {first.fix && <div>{t("Remedy")}: {first.fix}</div>}
            <FixLink topic={topic} cluster={subject.kind === "cluster" ? subject.id : undefined} />
            <div className="atoll-muted">
              <code>{first.id}</code> · {t("for")} <Age at={first.since} />
              {first.allowed_seconds !== undefined && <> · {t("allowed")}: {span(first.allowed_seconds * 1000)}</>}
            </div>
          </ListItem>
        ))}
      </List>
      {limit === undefined && waiting.length > 0 && (
        <details className="atoll-reason" open={mistakes.length === 0}>
          <summary>{t("Checks that wait for an input: {{count}}", { count: waiting.length })}</summary>
          <ul>{waiting.map((cause) => <li key={`${cause.subject.id} ${cause.id}`}><strong>{named(cause.subject)}</strong>: {cause.observed} <code>{cause.id}</code></li>)}</ul>
        </details>
      )}
    </>
  );
}
