// Releases in the site's registry that are not on offer, to choose one from.

import { Content, FormGroup, FormSelect, FormSelectOption } from "@patternfly/react-core";
import { useId, useState } from "react";
import { useTranslation } from "react-i18next";
import { useResource } from "../api/resource";
import { useServices } from "../api/site";
import { ARCHIVES, type ArchiveList } from "../archives/records";
import { CarryInLink } from "../components/carry_in_link";
import { imageText, registryHost } from "../registry/image_name";
import { RegistryLoaded } from "../registry/log_in";
import { useRegistry } from "../registry/resource";
import type { ReleaseImage } from "./records";
import { type MirroredRelease, hostOf, mirroredReleases, suggestions } from "./suggestions";

/** The newest ones: others are entered by hand. */
const SHOWN = 200;
/** The server asks the registry for each answer. Units: milliseconds. */
const REFRESH = 600_000;

export type Suggestion = Pick<ReleaseImage, "version" | "cpu_architecture" | "url">;

export function Suggestions({ images, choose }: { images: ReleaseImage[]; choose: (release: Suggestion) => void }) {
  const { t } = useTranslation();
  const found = useRegistry("releases", mirroredReleases);
  return (
    <section aria-label={t("Releases in the registry of this site")} className="atoll-row">
      <RegistryLoaded resource={found}>
        {({ entries, isCut }) => <Choice all={entries} isCut={isCut} images={images} choose={choose} />}
      </RegistryLoaded>
    </section>
  );
}

interface ChoiceProps {
  all: MirroredRelease[];
  /** The registry has more than were read. */
  isCut: boolean;
  images: ReleaseImage[];
  choose: (release: Suggestion) => void;
}

function Choice({ all, isCut, images, choose }: ChoiceProps) {
  const { t } = useTranslation();
  const id = useId();
  const [chosen, setChosen] = useState("");
  const services = useServices();
  const archives = useResource<ArchiveList>(ARCHIVES, REFRESH);
  const offered = suggestions(all, images);
  if (offered.length === 0) {
    return (
      <Content component="p">
        {all.length === 0 ? t("The registry of this site has no release, or your login may not see it.") : t("All releases in the registry of this site are on offer.")} <CarryInLink />
      </Content>
    );
  }
  const shown = offered.slice(0, SHOWN);
  const take = (image: string) => {
    setChosen(image);
    const release = shown.find(({ repository, tag }) => imageText(repository, tag) === image);
    if (!release) return;
    const { version, cpu_architecture, repository } = release;
    const pages = services?.registry ? registryHost(services.registry) : undefined;
    const host = hostOf(repository, archives.data?.registry, images, pages);
    choose({ version, cpu_architecture, url: `${host}/${image}` });
  };
  // Its registry is the one that hosts reach: chosen before it is known, the image would name another.
  const isReady = archives.data !== undefined || archives.error !== undefined;
  return (
    <FormGroup label={t("Releases in the registry of this site")} fieldId={id}>
      <FormSelect id={id} value={chosen} isDisabled={!isReady} onChange={(_, image) => take(image)}>
        <FormSelectOption value="" label={t("Choose a release, or enter one below")} isPlaceholder />
        {shown.map(({ repository, tag }) => {
          const image = imageText(repository, tag);
          return <FormSelectOption key={image} value={image} label={`${tag} (${repository})`} />;
        })}
      </FormSelect>
      {(isCut || shown.length < offered.length) && <Content component="small">{t("These are the newest {{count}} that were found; the registry has more.", { count: shown.length })}</Content>}
    </FormGroup>
  );
}
