// Statuses as labels: the word says it, colour and icon repeat it.

import { Label, Progress } from "@patternfly/react-core";
import { useTranslation } from "react-i18next";
import { words } from "./format";

type Kind = "success" | "info" | "danger" | "warning";

const KINDS: Record<Kind, string[]> = {
  success: ["ready", "known", "installed", "known-unbound", "added-to-existing-cluster", "success", "passed", "production",
    "available", "settled", "succeeded", "published", "done", "completed"],
  info: ["installing", "installing-in-progress", "finalizing", "preparing-for-installation", "preparing-successful",
    "discovering", "discovering-unbound", "binding", "unbinding", "resetting", "reclaiming", "reclaiming-rebooting",
    "adding-hosts", "progressing", "info", "in-progress", "waiting", "pending", "queued", "running", "next"],
  danger: ["error", "preparing-failed", "critical", "failure", "failed", "stuck", "overdue", "damaged"],
  warning: [],
};

/** The kind of a status; a warning if it is none of the others. */
export function kindOf(status: string): Kind {
  return (Object.keys(KINDS) as Kind[]).find((kind) => KINDS[kind].includes(status)) ?? "warning";
}

export function StatusLabel({ status }: { status: string | undefined }) {
  const { t } = useTranslation();
  return status ? <Label isCompact status={kindOf(status)}>{t(words(status))}</Label> : null;
}

/** States of hosts whose names in the API say less. */
const HOST_STATES: Record<string, string> = { known: "ready", "known-unbound": "available", "added-to-existing-cluster": "installed" };

/** The state of a host in words: a text of the locale files. */
export const hostState = (status: string) => words(HOST_STATES[status] ?? status);

export function HostStatusLabel({ status }: { status: string }) {
  const { t } = useTranslation();
  return <Label isCompact status={kindOf(status)}>{t(hostState(status))}</Label>;
}

export function Percentage({ value, label }: { value: number | undefined; label: string }) {
  return <Progress value={Math.min(100, Math.max(0, value ?? 0))} aria-label={label} size="sm" />;
}
