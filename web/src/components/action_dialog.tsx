// An action that has to be confirmed. The service is asked first, with a dry run, whether it would do it: its reason is
// shown before the button is pressed, not after. Some actions have no dry run: they are possible until they are refused.

import { Alert, Button, Modal, ModalBody, ModalFooter, ModalHeader, Spinner } from "@patternfly/react-core";
import { useEffect, useState } from "react";
import { useTranslation } from "react-i18next";
import { ApiError, asApiError, send } from "../api/client";
import { Failure } from "./loaded";

export interface Change {
  method: string;
  path: string;
  body?: unknown;
}

export interface Action {
  title: string;
  body: string;
  isDangerous?: boolean;
  /** Requests in their order, of one object each. */
  changes: Change[];
  hasNoDryRun?: boolean;
}

type State = "checking" | "possible" | "running" | ApiError;

export function ActionDialog({ action, close, done }: { action: Action; close: () => void; done: () => void }) {
  const { t } = useTranslation();
  const [state, setState] = useState<State>(action.hasNoDryRun ? "possible" : "checking");
  const [finished, setFinished] = useState(0);

  useEffect(() => {
    if (action.hasNoDryRun) return;
    let isOpen = true;
    const dryRun = ({ method, path, body }: Change) => send(method, `${path}?dry_run=true`, body);
    // One after the other: the first refusal is enough.
    const check = async () => {
      for (const change of action.changes) await dryRun(change);
    };
    check().then(() => isOpen && setState("possible"), (error: unknown) => isOpen && setState(asApiError(error)));
    return () => {
      isOpen = false;
    };
  }, [action]);

  const run = async () => {
    setState("running");
    try {
      for (const [index, { method, path, body }] of action.changes.entries()) {
        await send(method, path, body);
        setFinished(index + 1);
      }
      done();
      close();
    } catch (error) {
      setState(asApiError(error));
      done();
    }
  };
  const isRefused = state instanceof ApiError;
  return (
    <Modal isOpen variant="small" onClose={close} aria-label={action.title}>
      <ModalHeader title={action.title} {...(action.isDangerous && { titleIconVariant: "warning" as const })} />
      {/* Long reasons scroll, also by keyboard. */}
      <ModalBody tabIndex={0} role="region" aria-label={action.title}>
        <p>{action.body}</p>
        {state === "checking" && <Spinner size="md" aria-label={t("Asking the service whether it is possible")} />}
        {isRefused && <Failure error={state} />}
        {state === "running" && action.changes.length > 1 && (
          <Alert isInline isPlain variant="info" variantLabel={t("Info")} title={t("{{done}} of {{all}} done", { done: finished, all: action.changes.length })} />
        )}
      </ModalBody>
      <ModalFooter>
        <Button variant={action.isDangerous ? "danger" : "primary"} isDisabled={state !== "possible"} isLoading={state === "running"} onClick={() => void run()}>
          {action.title}
        </Button>
        <Button variant="link" onClick={close}>{t("Close")}</Button>
      </ModalFooter>
    </Modal>
  );
}
