// A text of the service as one sentence, with the whole text behind a click.

import { useTranslation } from "react-i18next";
import { hasDetails, sentenceOf } from "../api/sentence";

/** The whole text behind a click; nothing where the sentence says all of it. */
export function ReasonDetails({ text }: { text: string }) {
  const { t } = useTranslation();
  if (!hasDetails(text)) return null;
  return (
    <details className="atoll-reason">
      <summary>{t("Details")}</summary>
      <pre>{text.trim()}</pre>
    </details>
  );
}

export function Reason({ text }: { text: string | undefined }) {
  if (!text) return null;
  return <>{sentenceOf(text)}<ReasonDetails text={text} /></>;
}
