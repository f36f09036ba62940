// A discovery image: its URL for each way to boot from it, and its checksum.

import { Button, DescriptionList, DescriptionListDescription, DescriptionListGroup, DescriptionListTerm } from "@patternfly/react-core";
import { useTranslation } from "react-i18next";
import type { InfraEnv } from "../api/records";
import { useResource } from "../api/resource";
import { BootLink } from "../bmc_boot/boot_link";
import { Copyable } from "./copyable";
import { Loaded } from "./loaded";
import { OsStreamChoice } from "./os_stream";

export function DiscoveryImage({ infraEnv }: { infraEnv: InfraEnv }) {
  const { t } = useTranslation();
  // Links may carry a token that expires: the service makes a new one for this dialog.
  const image = useResource<{ url: string }>(`/infra-envs/${infraEnv.id}/downloads/image-url`, 600_000);
  const script = `${location.origin}/api/assisted-install/v2/infra-envs/${infraEnv.id}/downloads/files?file_name=ipxe-script`;
  return (
    <Loaded resource={image}>
      {({ url }) => {
        const name = `${infraEnv.name ?? infraEnv.id}.iso`;
        const ways: [string, string][] = [
          [t("Virtual media, UEFI HTTP boot"), url],
          [t("Command"), `curl -fL -o '${name}' '${url}'`],
          [t("Checksum"), `curl -f '${withPathSuffix(url, "/sha256")}'`],
          [t("iPXE"), `chain --autofree ${script}`],
        ];
        return (
          <DescriptionList isHorizontal>
            {ways.map(([title, text]) => (
              <DescriptionListGroup key={title}>
                <DescriptionListTerm>{title}</DescriptionListTerm>
                <DescriptionListDescription><Copyable label={title}>{text}</Copyable></DescriptionListDescription>
              </DescriptionListGroup>
            ))}
            <DescriptionListGroup>
              <DescriptionListTerm>{t("Download")}</DescriptionListTerm>
              <DescriptionListDescription>
                <Button variant="link" isInline component="a" href={url} download={name}>{name}</Button>
              </DescriptionListDescription>
            </DescriptionListGroup>
            <BootLink infraEnv={infraEnv.id} />
            <OsStreamChoice infraEnv={infraEnv} changed={() => void image.reload()} />
          </DescriptionList>
        );
      }}
    </Loaded>
  );
}

/** The URL with more at the end of its path, before the query. */
export function withPathSuffix(url: string, suffix: string): string {
  const [path, query] = url.split("?");
  return `${path}${suffix}${query === undefined ? "" : `?${query}`}`;
}
