// A command or URL with a button that copies it.

import { ClipboardCopy } from "@patternfly/react-core";
import { useTranslation } from "react-i18next";
import { copy } from "./clipboard";

export function Copyable({ label, children }: { label: string; children: string }) {
  const { t } = useTranslation();
  return (
    <ClipboardCopy isReadOnly onCopy={() => copy(children)} hoverTip={t("Copy")} clickTip={t("Copied")} textAriaLabel={label} variant="inline-compact" isCode>
      {children}
    </ClipboardCopy>
  );
}
