// The button that offers the OS images of a publication.

import { Alert, Button } from "@patternfly/react-core";
import { useState } from "react";
import { useTranslation } from "react-i18next";
import { type ApiError, asApiError, send } from "../api/client";
import { useResource } from "../api/resource";
import { Failure } from "../components/loaded";
import { OS_IMAGES, type OsImage, type OsImageParams, onOffer } from "./records";

type State = "idle" | "running" | "done" | ApiError;

/** `read` reads the file of the entries. Nothing where the server offers those of its settings only. */
export function OfferOsImages({ read }: { read: () => Promise<string> }) {
  const { t } = useTranslation();
  const images = useResource<OsImage[]>(OS_IMAGES);
  const [state, setState] = useState<State>("idle");
  const present = images.data;
  if (present === undefined) return null;
  const offer = async () => {
    setState("running");
    try {
      for (const { openshift_version, cpu_architecture, version, url, sha256 } of JSON.parse(await read()) as OsImageParams[]) {
        const params: OsImageParams = { openshift_version, cpu_architecture, version, url, sha256 };
        // Those of the settings stay.
        if (onOffer(present, params)?.is_added !== false) await send("POST", OS_IMAGES, params);
      }
      setState("done");
    } catch (failure) {
      setState(asApiError(failure));
    }
    void images.reload();
  };
  return (
    <div className="atoll-row">
      <Button variant="secondary" isLoading={state === "running"} isDisabled={state === "running"} onClick={() => void offer()}>{t("Offer the OS images")}</Button>
      {state === "done" && <Alert isInline isPlain variant="success" variantLabel={t("Success")} title={t("They are on offer; the image service downloads them now.")} />}
      {typeof state === "object" && <Failure error={state} retry={() => void offer()} />}
    </div>
  );
}
