// Deletion of a tag or manifest, confirmed after its effects are known: other tags of the manifest, and its referrers.

import { Alert, Button, Checkbox, Modal, ModalBody, ModalFooter, ModalHeader, Spinner } from "@patternfly/react-core";
import { useEffect, useState } from "react";
import { useTranslation } from "react-i18next";
import { ApiError } from "../api/client";
import { listedManifests, manifest, referrers, remove, resolve, tags } from "../api/registry";
import { Failure } from "../components/loaded";
import { imageText, isDigest } from "./image_name";
import { called, listing } from "./listed";
import { LogIn } from "./log_in";
import { descriptors, isIndex } from "./manifest";
import { asApiError, loadEach, useRegistryLogin } from "./resource";

/** Tags that are compared with the manifest: beyond, the person would wait too long. */
const COMPARED = 1000;
/** Tags that are shown by name. */
const NAMED = 20;

export interface Effects {
  digest: string;
  /** Tags of the manifest, in the order of the alphabet. */
  tags: string[];
  /** Tags of indexes that name the manifest; digests of those without one. */
  indexes: string[];
  /** Tags that were not compared. */
  uncompared: number;
  referrers: number;
}

/** The manifest of a tag or digest, its tags, indexes and referrers. Errors: `ApiError`. */
export async function effects(name: string, reference: string, signal: AbortSignal): Promise<Effects> {
  return (await listedEffects(name, reference, signal)) ?? comparedEffects(name, reference, signal);
}

/** By the list of all manifests; undefined where there is none, or where it lacks the manifest. */
async function listedEffects(name: string, reference: string, signal: AbortSignal): Promise<Effects | undefined> {
  const list = await listedManifests(name, signal);
  if (list === undefined || list.isCut) return undefined;
  const { known, tagged, indexes } = listing(list.entries);
  const entry = isDigest(reference) ? known.get(reference) : tagged.get(reference);
  if (entry === undefined) return undefined;
  const { digest, tags: own } = entry;
  const { entries: refer } = await referrers(name, digest, signal);
  const named = (indexes.get(digest) ?? []).flatMap((index) => (index.tags.length > 0 ? index.tags : [called(index)]));
  return { digest, tags: own, indexes: named.sort(), uncompared: 0, referrers: refer.length };
}

/** By comparison of the tags, each with a request. */
async function comparedEffects(name: string, reference: string, signal: AbortSignal): Promise<Effects> {
  const target = await resolve(name, reference, signal);
  if (target === undefined) throw new ApiError("The registry does not have this.", "It may have been deleted: return to the list.", 404);
  const { digest } = target;
  const { entries } = await tags(name, signal);
  const [own, indexes]: [string[], string[]] = [[], []];
  const compare = async (tag: string) => {
    const found = await resolve(name, tag, signal);
    if (found?.digest === digest) own.push(tag);
    else if (found && isIndex(found.mediaType, {}) && (await names(name, tag, digest, signal))) indexes.push(tag);
  };
  await loadEach(entries.slice(0, COMPARED), compare, signal);
  const { entries: refer } = await referrers(name, digest, signal);
  return { digest, tags: own.sort(), indexes: indexes.sort(), uncompared: Math.max(0, entries.length - COMPARED), referrers: refer.length };
}

/** Whether the index of a tag names a manifest. */
async function names(name: string, tag: string, digest: string, signal: AbortSignal): Promise<boolean> {
  const { manifest: index } = await manifest(name, tag, signal);
  return descriptors(index.manifests).some((entry) => entry.digest === digest);
}

type State = "looking" | "known" | "running" | ApiError;

/** `done` is called after the deletion, before the dialog is closed. */
export function DeletionDialog({ name, reference, close, done }: { name: string; reference: string; close: () => void; done: () => Promise<void> | void }) {
  const { t } = useTranslation();
  const [state, setState] = useState<State>("looking");
  const [found, setFound] = useState<Effects>();
  const [isWhole, setIsWhole] = useState(isDigest(reference));
  const login = useRegistryLogin();

  useEffect(() => {
    const stop = new AbortController();
    const isOpen = () => !stop.signal.aborted;
    setState("looking");
    effects(name, reference, stop.signal).then((known) => {
      if (!isOpen()) return;
      setFound(known);
      setState("known");
    }, (error: unknown) => isOpen() && setState(asApiError(error)));
    return () => stop.abort();
  }, [name, reference, login]);

  const run = async () => {
    if (!found) return;
    setState("running");
    try {
      await remove(name, isWhole ? found.digest : reference);
      await done();
      close();
    } catch (error) {
      setState(asApiError(error));
    }
  };
  const title = isWhole ? t("Delete the manifest") : t("Delete the tag");
  const isRefused = typeof state === "object";
  return (
    <Modal isOpen variant="small" onClose={close} aria-label={title}>
      <ModalHeader title={title} titleIconVariant="warning" />
      <ModalBody tabIndex={0} role="region" aria-label={title}>
        <p className="atoll-mono atoll-row">{imageText(name, reference)}</p>
        {state === "looking" && <p><Spinner size="md" aria-label={t("Loading")} /> {t("Looking for other tags of the manifest.")}</p>}
        {found && <Consequences effects={found} tag={isDigest(reference) ? undefined : reference} isWhole={isWhole} />}
        {found && !isDigest(reference) && (
          <Checkbox id="whole" className="atoll-row" label={t("Delete the manifest, too, with all of its tags")} isChecked={isWhole} isDisabled={state === "running"}
            onChange={(_, isChecked) => setIsWhole(isChecked)} />
        )}
        {isRefused && (state.status === 401 ? <LogIn refused={state} /> : <Failure error={state} />)}
      </ModalBody>
      <ModalFooter>
        <Button variant="danger" isDisabled={!found || state === "looking" || state === "running"} isLoading={state === "running"} onClick={() => void run()}>{title}</Button>
        <Button variant="link" onClick={close}>{t("Close")}</Button>
      </ModalFooter>
    </Modal>
  );
}

function Consequences({ effects: { tags: all, indexes, uncompared, referrers: count }, tag, isWhole }: { effects: Effects; tag: string | undefined; isWhole: boolean }) {
  const { t } = useTranslation();
  const others = all.filter((one) => one !== tag);
  const named = (list: string[]) => [...list.slice(0, NAMED), ...(list.length > NAMED ? [t("and {{count}} more", { count: list.length - NAMED })] : [])].join(", ");
  return (
    <>
      {isWhole && others.length > 0 && <Alert isInline isPlain variant="warning" variantLabel={t("Warning")} title={t("These tags of the manifest are deleted with it: {{names}}", { names: named(others) })} />}
      {isWhole && others.length === 0 && <p className="atoll-row">{tag === undefined ? t("The manifest has no tag.") : t("The manifest has no other tag.")}</p>}
      {isWhole && indexes.length > 0 && <Alert isInline isPlain variant="warning" variantLabel={t("Warning")} title={t("These indexes of several platforms need it, and lose a platform: {{names}}", { names: named(indexes) })} />}
      {isWhole && count > 0 && <p className="atoll-row">{t("Artifacts that refer to it, such as signatures, become garbage: {{count}}.", { count })}</p>}
      {isWhole && <p className="atoll-row">{t("Its content is removed by the next garbage collection, unless other images need it.")}</p>}
      {!isWhole && others.length > 0 && <p className="atoll-row">{t("The manifest stays, with these tags: {{names}}", { names: named(others) })}</p>}
      {!isWhole && others.length === 0 && <p className="atoll-row">{t("The manifest stays without a tag, and is reached by its digest only.")}</p>}
      {uncompared > 0 && <p className="atoll-row">{t("Tags that were not compared: {{count}}.", { count: uncompared })}</p>}
    </>
  );
}
