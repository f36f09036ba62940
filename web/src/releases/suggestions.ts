// Releases in the site's registry, found by the tags that mirroring gives them.

import { type Listed, repositories, tags } from "../api/registry";
import { type ReleaseImage, architecture, byVersion, onOffer } from "./records";

/** Ends of the names of repositories: those that atoll mirror and oc-mirror make, the original, and older mirrors. */
const REPOSITORIES = ["openshift/release-images", "openshift-release-dev/ocp-release", "/release"];
/** Repositories whose tags are read: mirrors have one or two of them. */
const READ = 10;
/** A version and an architecture. Tags with more after it are of components, and of signatures. */
const TAG = /^(\d+\.\d+\.\d+(?:-[0-9A-Za-z.-]+)?)-(x86_64|aarch64|arm64|ppc64le|s390x|multi)$/;

export interface MirroredRelease {
  version: string;
  cpu_architecture: string;
  repository: string;
  tag: string;
}

/** The release of a tag; undefined where it is of something else. A release of several architectures has them in its version. */
export function releaseOf(repository: string, tag: string): MirroredRelease | undefined {
  const [, version = "", name = ""] = TAG.exec(tag) ?? [];
  if (version === "") return undefined;
  return { version: name === "multi" ? `${version}-multi` : version, cpu_architecture: architecture(name), repository, tag };
}

/** All releases that the registry names, the newest first. */
export async function mirroredReleases(): Promise<Listed<MirroredRelease>> {
  const names = await repositories();
  const found = names.entries.filter((name) => REPOSITORIES.some((end) => name.endsWith(end)));
  const releases: MirroredRelease[] = [];
  let isCut = names.isCut || found.length > READ;
  for (const name of found.slice(0, READ)) {
    const listed = await tags(name);
    isCut ||= listed.isCut;
    releases.push(...listed.entries.flatMap((tag) => releaseOf(name, tag) ?? []));
  }
  return { entries: releases.sort((one, other) => byVersion(other.version, one.version)), isCut };
}

/** Those that are not on offer yet. */
export function suggestions(releases: MirroredRelease[], images: ReleaseImage[]): MirroredRelease[] {
  return releases.filter((release) => onOffer(images, release) === undefined);
}

/**
 * The host by which clusters reach a repository of the site's registry: that of the registry of archives, or else of an
 * image that is on offer, of the same repository at best, or else of the registry's own pages.
 */
export function hostOf(repository: string, archives: string | undefined, images: ReleaseImage[], pages: string | undefined): string {
  const own = images.find(({ url }) => [":", "@"].some((separator) => url.slice(url.indexOf("/") + 1).startsWith(repository + separator)));
  const references = [archives, own?.url, images[0]?.url, pages];
  return references.find((reference) => reference !== undefined && reference !== "")?.split("/")[0] ?? "";
}
