// Files of a publication by their use, so that people know which of them a cluster takes. Source: crates/mirror/src/results.

import { byName } from "../components/format";
import type { JobFile } from "./records";

const CONTENT_POLICY = "imageContentSourcePolicy.yaml";
const MIRROR_SETS = ["idms-oc-mirror.yaml", "itms-oc-mirror.yaml"];

/** Uses, in the order in which people need them: texts of the locale files. */
export const USES = {
  apply: {
    title: "Apply to clusters",
    text: "Catalogs, signatures of releases, and the names of mirrors: oc apply -f FILE, for each cluster, after each publication.",
  },
  older: {
    title: "Apply to clusters before 4.13",
    text: "These clusters take one policy in place of the mirror sets idms and itms. A cluster takes either of the two.",
  },
  services: {
    title: "Apply to clusters that have the service",
    text: "The update service needs its operator in the cluster, and a ClusterCatalog needs OLM 1.",
  },
  install: {
    title: "Into install-config.yaml",
    text: "For new clusters that other tools install: they have no policies yet while they are installed.",
  },
  site: {
    title: "Settings of sites and hosts",
    text: "registries.conf leads this site's installer (REGISTRIES_CONF_PATH), podman and skopeo to the registry. os-images.json is a value of OS_IMAGES.",
  },
  other: {
    title: "Other files",
    text: "mapping.txt has the name in this registry for each image.",
  },
} satisfies Record<string, { title: string; text: string }>;

export type Use = keyof typeof USES;

function useOf(name: string, hasMirrorSets: boolean): Use {
  if (name.startsWith("release-signatures/") || /^catalogSource-[^/]+\.yaml$/.test(name) || MIRROR_SETS.includes(name)) return "apply";
  if (name === CONTENT_POLICY) return hasMirrorSets ? "older" : "apply";
  if (name === "updateService.yaml" || /^cc-[^/]+\.yaml$/.test(name)) return "services";
  if (name.startsWith("install-config/")) return "install";
  if (name.startsWith("boot-images/") || name === "registries.conf") return "site";
  return "other";
}

/** The files of each use that has some. */
export function byUse(files: JobFile[]): [use: Use, files: JobFile[]][] {
  const hasMirrorSets = files.some(({ name }) => MIRROR_SETS.includes(name));
  return (Object.keys(USES) as Use[]).flatMap((use) => {
    const own = files.filter(({ name }) => useOf(name, hasMirrorSets) === use).sort((one, other) => byName(one.name, other.name));
    return own.length === 0 ? [] : [[use, own] as [Use, JobFile[]]];
  });
}

/** Documents as one file, which `oc apply -f` takes. JSON is YAML, too. */
export function joined(documents: string[]): string {
  return documents.map((text) => `---\n${text.replace(/^---\n/, "").trimEnd()}\n`).join("");
}

/** The last part of a path. */
export function baseName(name: string): string {
  return name.slice(name.lastIndexOf("/") + 1);
}
