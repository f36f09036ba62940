// Images that a bundle needs, and whether the site's registry has them.

import { ExpandableSection, Label } from "@patternfly/react-core";
import { useState } from "react";
import { useTranslation } from "react-i18next";
import { Link } from "react-router-dom-v5-compat";
import { ApiError } from "../api/client";
import { repositories, resolve } from "../api/registry";
import { useServices } from "../api/site";
import { Copyable } from "../components/copyable";
import { Cause } from "../components/loaded";
import { digestOf, imagePath, mirrorCandidates } from "../registry/image_name";
import { type Details, useDetails, useRegistry } from "../registry/resource";

/** The repository that has the image; null: none has it. */
type Holder = string | null;

/** Asks the repositories that may have an image for its digest. */
async function holder(names: string[], image: string, signal: AbortSignal): Promise<Holder> {
  const digest = digestOf(image);
  if (digest === undefined) throw new ApiError("It is named by a tag, not by its digest.", "Try again.");
  for (const name of mirrorCandidates(names, image)) {
    if ((await resolve(name, digest, signal)) !== undefined) return name;
  }
  return null;
}

export function Images({ images }: { images: string[] }) {
  const { t } = useTranslation();
  const [isExpanded, setIsExpanded] = useState(false);
  const services = useServices();
  return (
    <ExpandableSection toggleText={t("{{count}} images", { count: images.length })} isExpanded={isExpanded} onToggle={(_, value) => setIsExpanded(value)}>
      {isExpanded && (services?.registry_api ? <MirroredImages images={images} /> : images.map((image) => <div key={image}><Copyable label={image}>{image}</Copyable></div>))}
    </ExpandableSection>
  );
}

function MirroredImages({ images }: { images: string[] }) {
  const { t } = useTranslation();
  const names = useRegistry("repositories", repositories);
  const entries = names.data?.entries;
  const holders = useDetails("mirrored", entries ? images : [], (image, signal) => holder(entries ?? [], image, signal));
  const count = images.filter((image) => typeof holders.get(image) === "string").length;
  return (
    <>
      {names.error
        ? <div><Cause error={names.error} /> {names.error.status === 401 && <Link to="/registry">{t("Log in at the registry")}</Link>}</div>
        : <p>{t("In the registry: {{count}} of {{all}}", { count, all: images.length })}</p>}
      {images.map((image) => (
        <div key={image}>
          <Mirrored holders={holders} image={image} isUnknown={names.error !== undefined} /> <Copyable label={image}>{image}</Copyable>
        </div>
      ))}
    </>
  );
}

function Mirrored({ holders, image, isUnknown }: { holders: Details<Holder>; image: string; isUnknown: boolean }) {
  const { t } = useTranslation();
  const found = holders.get(image);
  if (found === undefined && !isUnknown) return <Label isCompact>{t("Asking the registry")}</Label>;
  if (found === undefined) return <Label isCompact>{t("Unknown")}</Label>;
  if (found instanceof ApiError) return <><Label isCompact>{t("Unknown")}</Label> <div className="atoll-muted"><Cause error={found} /></div></>;
  if (found === null) return <Label isCompact status="warning">{t("Missing")}</Label>;
  return <Label isCompact status="success" render={({ className, content }) => <Link className={className} to={imagePath(found, digestOf(image))}>{content}</Link>}>{t("In the registry")}</Label>;
}
