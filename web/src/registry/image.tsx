// One manifest: an image with its configuration and layers, an index with its platforms, or another artifact.

import { Button, Card, CardBody, CardTitle, Label } from "@patternfly/react-core";
import { Table, Tbody, Td, Th, Thead, Tr } from "@patternfly/react-table";
import { type ReactNode, useState } from "react";
import { useTranslation } from "react-i18next";
import { useNavigate } from "react-router-dom-v5-compat";
import { type Descriptor, type StoredManifest, jsonBlob, manifest, resolve } from "../api/registry";
import { useServices } from "../api/site";
import { Copyable } from "../components/copyable";
import { Facts } from "../components/facts";
import { bytes } from "../components/format";
import { PageFrame } from "../components/page";
import { Time } from "../components/time";
import { DeletionDialog } from "./deletion";
import { imagePath, imageText, isDigest, pullCommand } from "./image_name";
import { Account, RegistryLoaded } from "./log_in";
import {
  type ImageConfig, annotatedTime, artifactType, commands, contentSize, descriptors, isImageConfig, isIndex, isTime, pairs, platformName, purpose, shortDigest, texts, variables,
} from "./manifest";
import { DigestLink, PurposeLabel, Referrers } from "./referrers";
import { forgetRegistry, useDetails, useRegistry } from "./resource";

/** Rows of a table: pushed manifests may have a million. */
const ROWS = 200;
/** Larger configurations are not read. Units: bytes. */
const CONFIG_LIMIT = 4 * 1024 ** 2;

export function Image({ name, reference }: { name: string; reference: string }) {
  const { t } = useTranslation();
  const navigate = useNavigate();
  const services = useServices();
  const [isDeleting, setIsDeleting] = useState(false);
  const stored = useRegistry(`manifest ${name} ${reference}`, () => manifest(name, reference));
  const title = isDigest(reference) ? `${name}@${shortDigest(reference)}` : imageText(name, reference);
  const parents = [{ path: "/registry", title: t("Registry") }, { path: imagePath(name), title: name }];
  const leave = () => {
    forgetRegistry();
    navigate(imagePath(name));
  };
  return (
    <PageFrame title={title} parents={parents}
      actions={<>{stored.data && <Button variant="danger" onClick={() => setIsDeleting(true)}>{t("Delete")}</Button>}<Account /></>}>
      <RegistryLoaded resource={stored}>
        {(found) => (
          <div className="atoll-tab">
            <Overview name={name} reference={reference} found={found} />
            <Part title={t("Pull")}><Copyable label={t("Command")}>{pullCommand(services?.registry, name, reference)}</Copyable></Part>
            <Contents name={name} found={found} />
            <Pairs title={t("Annotations")} of={pairs(found.manifest.annotations)} />
            {found.digest !== undefined && <Part title={t("Referrers")}><Referrers name={name} digest={found.digest} /></Part>}
          </div>
        )}
      </RegistryLoaded>
      {isDeleting && <DeletionDialog name={name} reference={reference} close={() => setIsDeleting(false)} done={leave} />}
    </PageFrame>
  );
}

function Part({ title, children }: { title: string; children: ReactNode }) {
  return (
    <Card>
      <CardTitle component="h2">{title}</CardTitle>
      <CardBody>{children}</CardBody>
    </Card>
  );
}

function Overview({ name, reference, found: { digest, mediaType, size, manifest: document } }: { name: string; reference: string; found: StoredManifest }) {
  const { t } = useTranslation();
  const isList = isIndex(mediaType, document);
  const type = artifactType(document);
  const created = annotatedTime(document);
  const [subject] = descriptors([document.subject]);
  return (
    <Part title={t("Manifest")}>
      <Facts of={[
        [t("Kind"), <>{type === undefined ? (isList ? t("Index of several platforms") : t("Image")) : t("Artifact")} <PurposeLabel of={type === undefined ? undefined : purpose({ digest: "", artifactType: type, annotations: document.annotations ?? {} })} /></>],
        [t("Artifact type"), type && <span className="atoll-mono">{type}</span>],
        [t("Digest"), digest !== undefined && <Copyable label={t("Digest")}>{digest}</Copyable>],
        [t("Tag"), !isDigest(reference) && reference],
        [t("Media type"), <span className="atoll-mono">{mediaType}</span>],
        [t("Size of the manifest"), bytes(size)],
        [t("Size of the content"), !isList && bytes(contentSize([document]))],
        [t("Created"), created !== undefined && <Time at={created} />],
        [t("Refers to"), subject && <DigestLink name={name} digest={subject.digest} />],
      ]} />
    </Part>
  );
}

function Contents({ name, found: { mediaType, manifest: document } }: { name: string; found: StoredManifest }) {
  const { config } = document;
  if (isIndex(mediaType, document)) return <Platforms name={name} entries={descriptors(document.manifests)} />;
  if (isImageConfig(config)) return <Configured name={name} config={config} layers={descriptors(document.layers)} />;
  return <Layers layers={descriptors(document.layers)} steps={[]} />;
}

function MoreThanShown({ count }: { count: number }) {
  const { t } = useTranslation();
  return count > ROWS ? <p>{t("{{count}} more are not shown", { count: count - ROWS })}</p> : null;
}

/** The manifests of an index; some may not have been mirrored. */
function Platforms({ name, entries }: { name: string; entries: Descriptor[] }) {
  const { t } = useTranslation();
  const isHere = useDetails(`index ${name}`, entries.slice(0, ROWS).map(({ digest }) => digest), async (digest, signal) => (await resolve(name, digest, signal)) !== undefined);
  return (
    <Part title={t("Platforms")}>
      <Table aria-label={t("Platforms")} variant="compact">
        <Thead><Tr><Th>{t("Platform")}</Th><Th>{t("Digest")}</Th><Th>{t("Media type")}</Th><Th>{t("Size of the manifest")}</Th></Tr></Thead>
        <Tbody>
          {entries.slice(0, ROWS).map((entry, index) => (
            <Tr key={`${entry.digest} ${index}`}>
              <Td dataLabel={t("Platform")}>{platformName(entry.platform) ?? <PurposeLabel of={purpose(entry)} />}</Td>
              <Td dataLabel={t("Digest")}><DigestLink name={name} digest={entry.digest} /> {isHere.get(entry.digest) === false && <Label isCompact status="warning">{t("Missing")}</Label>}</Td>
              <Td dataLabel={t("Media type")}><span className="atoll-mono">{entry.mediaType}</span></Td>
              <Td dataLabel={t("Size of the manifest")}>{bytes(entry.size)}</Td>
            </Tr>
          ))}
        </Tbody>
      </Table>
      <MoreThanShown count={entries.length} />
    </Part>
  );
}

/** An image with its configuration. Only the names of environment variables are shown: values may be secrets. */
function Configured({ name, config, layers }: { name: string; config: Descriptor; layers: Descriptor[] }) {
  const { t } = useTranslation();
  const isLarge = (config.size ?? 0) > CONFIG_LIMIT;
  const image = useRegistry(isLarge ? undefined : `config ${name} ${config.digest}`, () => jsonBlob<ImageConfig>(name, config.digest));
  const words = (list: unknown) => {
    const found = texts(list);
    return found.length > 0 && <code className="atoll-mono">{found.slice(0, ROWS).join(" ")}</code>;
  };
  return (
    <>
      <Part title={t("Configuration")}>
        {isLarge
          ? <p>{t("The configuration is too large to be shown: {{size}}.", { size: bytes(config.size) })}</p>
          : (
            <RegistryLoaded resource={image}>
              {(data) => {
                const { config: run } = data;
                const names = variables(data);
                return (
                  <Facts of={[
                    [t("Platform"), platformName(data)],
                    [t("Created"), isTime(data.created) && <Time at={data.created} />],
                    [t("Entrypoint"), words(run?.Entrypoint)],
                    [t("Command"), words(run?.Cmd)],
                    [t("Environment, without values"), names.length > 0 && <span className="atoll-mono">{names.slice(0, ROWS).join(", ")}</span>],
                    [t("User"), texts([run?.User])[0]],
                    [t("Working directory"), texts([run?.WorkingDir])[0]],
                    [t("Digest"), <span className="atoll-digest" title={config.digest}>{shortDigest(config.digest)}</span>],
                  ]} />
                );
              }}
            </RegistryLoaded>
          )}
      </Part>
      <Pairs title={t("Labels")} of={pairs(image.data?.config?.Labels)} />
      <Layers layers={layers} steps={commands(image.data, layers.length)} />
    </>
  );
}

function Layers({ layers, steps }: { layers: Descriptor[]; steps: string[] }) {
  const { t } = useTranslation();
  if (layers.length === 0) return null;
  return (
    <Part title={t("Layers")}>
      <Table aria-label={t("Layers")} variant="compact">
        <Thead><Tr><Th>{t("No.")}</Th><Th>{t("Digest")}</Th><Th>{t("Size")}</Th><Th>{t("Media type")}</Th>{steps.length > 0 && <Th>{t("Made by")}</Th>}</Tr></Thead>
        <Tbody>
          {layers.slice(0, ROWS).map((layer, index) => (
            <Tr key={`${layer.digest} ${index}`}>
              <Td dataLabel={t("No.")}>{index + 1}</Td>
              <Td dataLabel={t("Digest")}><span className="atoll-digest" title={layer.digest}>{shortDigest(layer.digest)}</span></Td>
              <Td dataLabel={t("Size")}><span className="atoll-nowrap">{bytes(layer.size)}</span></Td>
              <Td dataLabel={t("Media type")}><span className="atoll-mono">{layer.mediaType}</span></Td>
              {steps.length > 0 && <Td dataLabel={t("Made by")}><code className="atoll-clamp" title={steps[index]}>{steps[index]}</code></Td>}
            </Tr>
          ))}
        </Tbody>
      </Table>
      <MoreThanShown count={layers.length} />
    </Part>
  );
}

function Pairs({ title, of }: { title: string; of: [string, string][] }) {
  if (of.length === 0) return null;
  return (
    <Part title={title}>
      <Facts of={of.slice(0, ROWS).map(([key, value]) => [key, <span key={key} className="atoll-clamp" title={value}>{value}</span>])} />
      <MoreThanShown count={of.length} />
    </Part>
  );
}
