// The draft of a form, and what a person reads about it.

import { Alert, AlertActionLink, HelperText, HelperTextItem } from "@patternfly/react-core";
import { useEffect, useState } from "react";
import { useTranslation } from "react-i18next";
import { changesOf, draftOver, keepDraft } from "./store";

export interface Draft<T> {
  values: T;
  change: (next: T | ((before: T) => T)) => void;
  /** Whether the values were typed before the page was loaded. */
  isRestored: boolean;
  /** Returns to the saved values. */
  end: () => void;
}

/** Values of a form that start as `saved`, and are kept until they are saved. */
export function useDraft<T extends object>(form: string, saved: T): Draft<T> {
  const [typed, setTyped] = useState<T | undefined>(() => draftOver(form, saved));
  const [isRestored, setRestored] = useState(typed !== undefined);
  const end = () => {
    setTyped(undefined);
    setRestored(false);
  };
  useEffect(() => {
    const changes = typed === undefined ? {} : changesOf(typed, saved);
    keepDraft(form, changes);
    // Saved by now.
    if (typed !== undefined && Object.keys(changes).length === 0) end();
  }, [form, typed, saved]);
  return {
    values: typed ?? saved,
    change: (next) => setTyped((before) => (typeof next === "function" ? next(before ?? saved) : next)),
    isRestored,
    end,
  };
}

/** That values were restored; without `discard`, they are saved by now. */
export function DraftNotice({ discard }: { discard?: (() => void) | undefined }) {
  const { t } = useTranslation();
  return (
    <Alert isInline variant="info" variantLabel={t("Info")} title={t("Restored from this browser tab")} className="atoll-draft"
      actionLinks={discard && <AlertActionLink onClick={discard}>{t("Discard")}</AlertActionLink>}>
      {discard ? t("These values are not saved yet.") : t("These values are saved now.")} {t("Pull secrets and passwords are never kept.")}
    </Alert>
  );
}

/** What is kept of a form with secrets. */
export function DraftHint() {
  const { t } = useTranslation();
  return (
    <HelperText className="atoll-draft">
      <HelperTextItem>{t("What you type here is kept in this browser tab, without pull secrets and passwords.")}</HelperTextItem>
    </HelperText>
  );
}
