// Names of the hosts that share a mistake.

import { useTranslation } from "react-i18next";
import { byName } from "../components/format";

/** Names that are read at a glance. */
const SHOWN = 5;

export function HostNames({ hosts }: { hosts: string[] }) {
  const { t } = useTranslation();
  const sorted = [...hosts].sort(byName);
  const omitted = sorted.length - SHOWN;
  return (
    <>
      <strong title={omitted > 0 ? sorted.join(", ") : undefined}>{sorted.slice(0, SHOWN).join(", ")}</strong>
      {omitted > 0 && <> {t("and {{count}} more", { count: omitted })}</>}
    </>
  );
}
