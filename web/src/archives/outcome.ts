// Jobs in words: their kind, and their end in one sentence.

import type { TFunction } from "react-i18next";
import { bytes } from "../components/format";
import type { Job, JobKind } from "./records";

export function kindText(t: TFunction, kind: JobKind): string {
  return kind === "verify-archives" ? t("Verification") : t("Publication");
}

export function outcome(t: TFunction, { verification, publication, reason = "" }: Job): string {
  if (verification) {
    const { fault_count: count } = verification;
    return count === 0 ? t("Every byte was compared with its digest: no faults.") : t("Faults: {{count}}. Copy the archives again.", { count });
  }
  if (!publication) return reason;
  const { is_unchanged: isUnchanged, unconfirmed_prunes: prunes, images, sent_bytes: sent } = publication;
  if (prunes > 0) return t("It would remove {{count}} images from the registry, which has to be confirmed. Nothing was published.", { count: prunes });
  if (isUnchanged) return t("The registry has this sequence already.");
  return reason || t("Images in the registry: {{images}}; sent: {{size}}", { images, size: bytes(sent) });
}
