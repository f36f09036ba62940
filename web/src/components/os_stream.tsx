// The stream of the operating system that hosts boot, where a release has several.

import { DescriptionListDescription, DescriptionListGroup, DescriptionListTerm, FormSelect, FormSelectOption } from "@patternfly/react-core";
import { useState } from "react";
import { useTranslation } from "react-i18next";
import { type ApiError, asApiError, send } from "../api/client";
import type { InfraEnv, OsStream, Versions } from "../api/records";
import { useResource } from "../api/resource";
import { Failure } from "./loaded";

export function OsStreamChoice({ infraEnv, changed }: { infraEnv: InfraEnv; changed: () => void }) {
  const { t } = useTranslation();
  const versions = useResource<Versions>("/openshift-versions", 60_000);
  const [chosen, setChosen] = useState(infraEnv.os_stream ?? "");
  const [refusal, setRefusal] = useState<ApiError>();
  const streams = streamsOf(versions.data ?? {}, infraEnv.openshift_version);
  if (streams.length < 2) return null;

  const choose = async (stream: string) => {
    setRefusal(undefined);
    try {
      // Nodes of the cluster run the stream that their hosts boot.
      if (infraEnv.cluster_id) await send("PATCH", `/clusters/${infraEnv.cluster_id}`, { os_stream: stream });
      await send("PATCH", `/infra-envs/${infraEnv.id}`, { os_stream: stream });
      setChosen(stream);
      changed();
    } catch (error) {
      setRefusal(asApiError(error));
    }
  };
  const title = t("Operating system stream");
  return (
    <DescriptionListGroup>
      <DescriptionListTerm>{title}</DescriptionListTerm>
      <DescriptionListDescription>
        <FormSelect aria-label={title} value={chosen} onChange={(_, stream) => void choose(stream)}>
          {streams.map(({ name, default: isDefault }) => isDefault
            ? <FormSelectOption key={name} value="" label={name ? `${t("Default")} (${name})` : t("Default")} />
            : <FormSelectOption key={name} value={name} label={name} />)}
        </FormSelect>
        {refusal && <Failure error={refusal} />}
      </DescriptionListDescription>
    </DescriptionListGroup>
  );
}

/** The streams of a version, or of the newest release of a minor version. */
export function streamsOf(versions: Versions, version: string | undefined): OsStream[] {
  const [found] = Object.keys(versions)
    .filter((name) => version !== undefined && (name === version || name.startsWith(`${version}.`)) && versions[name]?.os_streams)
    .sort((one, other) => other.localeCompare(one, "en", { numeric: true }));
  return (found && versions[found]?.os_streams) || [];
}
