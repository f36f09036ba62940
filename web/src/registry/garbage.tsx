// Garbage collection: counted by a dry run first, confirmed, and reported.

import { Alert, Button, List, ListItem, Modal, ModalBody, ModalFooter, ModalHeader, Spinner } from "@patternfly/react-core";
import { useEffect, useState } from "react";
import { useTranslation } from "react-i18next";
import type { ApiError } from "../api/client";
import { type Garbage, collectGarbage } from "../api/registry";
import { Facts } from "../components/facts";
import { bytes } from "../components/format";
import { Failure } from "../components/loaded";
import { asApiError, reloadRegistry } from "./resource";

/** Repositories that are shown by name. */
const NAMED = 20;

type State = "counting" | "counted" | "running" | "collected" | ApiError;

/** Whether a collection would remove anything. */
export function isAnything({ retention, manifests, links, blobs, repositories }: Garbage): boolean {
  return (retention?.tags ?? 0) + (retention?.manifests ?? 0) + manifests + links + blobs + repositories > 0;
}

export function GarbageDialog({ close }: { close: () => void }) {
  const { t } = useTranslation();
  const [state, setState] = useState<State>("counting");
  const [garbage, setGarbage] = useState<Garbage>();

  useEffect(() => {
    const stop = new AbortController();
    const counted = (found: Garbage) => {
      setGarbage(found);
      setState("counted");
    };
    collectGarbage(true, stop.signal).then(counted, (error: unknown) => !stop.signal.aborted && setState(asApiError(error)));
    return () => stop.abort();
  }, []);

  const collect = async () => {
    setState("running");
    try {
      setGarbage(await collectGarbage(false));
      setState("collected");
      reloadRegistry();
    } catch (error) {
      setState(asApiError(error));
    }
  };
  const title = t("Collect garbage");
  return (
    <Modal isOpen variant="medium" onClose={close} aria-label={title}>
      <ModalHeader title={title} {...(state !== "collected" && { titleIconVariant: "warning" as const })} />
      <ModalBody tabIndex={0} role="region" aria-label={title}>
        {state === "counting" && <p className="atoll-row"><Spinner size="md" aria-label={t("Loading")} /> {t("Dry run: the registry counts, nothing is removed.")}</p>}
        {state === "running" && <p className="atoll-row"><Spinner size="md" aria-label={t("Loading")} /> {t("This may take minutes. The collection continues when this window is closed.")}</p>}
        {state === "counted" && garbage && <p className="atoll-row">{isAnything(garbage) ? t("Would be removed:") : t("There is nothing to remove. Content younger than REGISTRY_STORAGE_MAINTENANCE_GC_GRACE stays.")}</p>}
        {state === "collected" && <Alert isInline variant="success" variantLabel={t("Success")} title={t("The garbage is collected. Removed:")} />}
        {typeof state === "object" && <Failure error={state} />}
        {garbage && typeof state !== "object" && <Removed garbage={garbage} isDone={state === "collected"} />}
      </ModalBody>
      <ModalFooter>
        {state !== "collected" && (
          <Button variant="danger" isDisabled={state !== "counted" || !garbage || !isAnything(garbage)} isLoading={state === "running"} onClick={() => void collect()}>{title}</Button>
        )}
        <Button variant="link" onClick={close}>{t("Close")}</Button>
      </ModalFooter>
    </Modal>
  );
}

function Removed({ garbage, isDone }: { garbage: Garbage; isDone: boolean }) {
  const { t } = useTranslation();
  const { retention } = garbage;
  const named = retention?.repositories ?? [];
  return (
    <>
      <Facts of={[
        [t("Tags that no rule keeps"), retention?.tags],
        [t("Manifests that no rule keeps"), retention?.manifests],
        [t("Manifests of deleted indexes or subjects"), garbage.manifests],
        [t("Blobs that their repository no longer needs"), garbage.links],
        [t("Contents that no repository has"), garbage.blobs],
        [t("Freed"), garbage.bytes === 0 ? "0 B" : bytes(garbage.bytes)],
        [t("Repositories without content"), garbage.repositories],
      ]} />
      {isDone && retention?.is_dry && (
        <Alert isInline variant="info" variantLabel={t("Info")} title={t("Tags and manifests that no rule keeps were not removed: the policy has dry_run.")} />
      )}
      {named.length > 0 && (
        <List isPlain className="atoll-row">
          {named.slice(0, NAMED).map(({ repository, tags, manifests }) => (
            <ListItem key={repository}>
              <strong>{repository}</strong>: {t("Manifests: {{count}}", { count: manifests.length })}
              {tags.length > 0 && `; ${t("Tags: {{names}}", { names: tags.slice(0, NAMED).join(", ") })}`}
              {tags.length > NAMED && ` ${t("and {{count}} more", { count: tags.length - NAMED })}`}
            </ListItem>
          ))}
          {named.length > NAMED && <ListItem>{t("{{count}} more are not shown", { count: named.length - NAMED })}</ListItem>}
        </List>
      )}
    </>
  );
}
