// The way into a cluster: kubeconfig, console, password. Shown on request only.

import { Button, Card, CardBody, DescriptionList, DescriptionListDescription, DescriptionListGroup, DescriptionListTerm } from "@patternfly/react-core";
import { useState } from "react";
import { useTranslation } from "react-i18next";
import { address, get, type ApiError } from "../api/client";
import type { Cluster } from "../api/records";
import { Copyable } from "../components/copyable";
import { Failure } from "../components/loaded";

interface Credentials {
  username?: string;
  password?: string;
  console_url?: string;
}

const WITH_FILES = ["installing", "finalizing", "installed", "adding-hosts", "error", "cancelled"];

/** Whether the cluster has a kubeconfig. */
export function hasAccess({ status, install_started_at: started }: Cluster): boolean {
  return WITH_FILES.includes(status) && !!started && !started.startsWith("0001-");
}

export function Access({ cluster }: { cluster: Cluster }) {
  const { t } = useTranslation();
  const [credentials, setCredentials] = useState<Credentials>();
  const [error, setError] = useState<ApiError>();
  const path = `/clusters/${cluster.id}`;
  const file = (name: string) => address(`${path}/downloads/credentials`, { file_name: name });
  const show = () => get<Credentials>(`${path}/credentials`).then(setCredentials, setError);
  const url = credentials?.console_url ?? "";
  return (
    <Card>
      <CardBody>
        {error && <Failure error={error} />}
        <DescriptionList isHorizontal>
          <DescriptionListGroup>
            <DescriptionListTerm>Kubeconfig</DescriptionListTerm>
            <DescriptionListDescription>
              <Button variant="link" isInline component="a" href={file("kubeconfig")} download>{t("Download")}</Button>
            </DescriptionListDescription>
          </DescriptionListGroup>
          <DescriptionListGroup>
            <DescriptionListTerm>{t("Logs")}</DescriptionListTerm>
            <DescriptionListDescription>
              <Button variant="link" isInline component="a" href={address(`${path}/logs`, { logs_type: "all" })} download>{t("Download")}</Button>
            </DescriptionListDescription>
          </DescriptionListGroup>
          <DescriptionListGroup>
            <DescriptionListTerm>{t("Web console")}</DescriptionListTerm>
            <DescriptionListDescription>
              {credentials === undefined
                ? <Button variant="secondary" onClick={() => void show()}>{t("Show the password")}</Button>
                : (
                  <>
                    {/^https?:\/\//.test(url) && <p><a href={url} rel="noreferrer" target="_blank">{url}</a></p>}
                    <p>{credentials.username}</p>
                    <Copyable label={t("Password")}>{credentials.password ?? ""}</Copyable>
                    <Button variant="link" onClick={() => setCredentials(undefined)}>{t("Hide")}</Button>
                  </>
                )}
            </DescriptionListDescription>
          </DescriptionListGroup>
        </DescriptionList>
      </CardBody>
    </Card>
  );
}
