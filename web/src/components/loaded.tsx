// A resource on a page: skeleton, content, or the failure with its remedy. Content stays while the service is unavailable.

import { Alert, AlertActionLink, Skeleton } from "@patternfly/react-core";
import type { ReactNode } from "react";
import { useTranslation } from "react-i18next";
import type { ApiError } from "../api/client";
import type { Resource } from "../api/resource";
import { Reason, ReasonDetails } from "./reason";
import { sentenceOf } from "../api/sentence";

/** The cause, as one sentence. */
export function Cause({ error }: { error: ApiError }) {
  const { t } = useTranslation();
  return <Reason text={t(error.message, { status: error.status, ...error.values })} />;
}

export function Failure({ error, retry, isStale = false }: { error: ApiError; retry?: () => void; isStale?: boolean }) {
  const { t } = useTranslation();
  const cause = t(error.message, { status: error.status, ...error.values });
  return (
    <Alert isInline variant={error.isUnavailable ? "warning" : "danger"} title={sentenceOf(cause)} variantLabel={error.isUnavailable ? t("Warning") : t("Error")}
      actionLinks={retry && <AlertActionLink onClick={retry}>{t("Try again")}</AlertActionLink>}>
      {t(error.remedy, error.values)} {isStale && t("The data shown may be out of date.")}
      <ReasonDetails text={cause} />
    </Alert>
  );
}

export function Loaded<T>({ resource, children }: { resource: Resource<T>; children: (data: T) => ReactNode }) {
  const { t } = useTranslation();
  const { data, error, reload } = resource;
  return (
    <>
      {error && <Failure error={error} retry={() => void reload()} isStale={data !== undefined} />}
      {data === undefined
        ? !error && <Skeleton height="12rem" screenreaderText={t("Loading")} />
        : children(data)}
    </>
  );
}
