// Names of images as clients write them: `NAME`, `NAME:TAG`, `NAME@DIGEST`. Source: distribution-spec.

export interface ImageName {
  repository: string;
  /** A tag or digest. */
  reference?: string;
}

const NAME = /^[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*(?:\/[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*)*$/;
const NAME_LIMIT = 255;
const TAG = /^\w[\w.-]{0,127}$/;
const DIGEST = /^[a-z0-9]+(?:[.+_-][a-z0-9]+)*:[0-9a-f]{32,128}$/;

export function isDigest(text: string): boolean {
  return DIGEST.test(text);
}

/** An image by its name; undefined where it cannot be one, so that no other address is asked for. */
export function parseImage(text: string): ImageName | undefined {
  const [, repository = "", separator, reference = ""] = /^([^:@]*)(?:([:@])(.*))?$/.exec(text) ?? [];
  if (repository.length > NAME_LIMIT || !NAME.test(repository)) return undefined;
  if (separator === undefined) return { repository };
  return (separator === "@" ? DIGEST : TAG).test(reference) ? { repository, reference } : undefined;
}

export function imageText(repository: string, reference?: string): string {
  if (reference === undefined) return repository;
  return `${repository}${isDigest(reference) ? "@" : ":"}${reference}`;
}

/** The page of a repository or image. */
export function imagePath(repository: string, reference?: string): string {
  return `/registry/${imageText(repository, reference)}`;
}

/** Host and port of the registry whose pages are at `url`; a word to fill in where the site does not name them. */
export function registryHost(url: string | null | undefined): string {
  return url ? new URL(url).host : "REGISTRY";
}

export function pullCommand(url: string | null | undefined, repository: string, reference: string): string {
  const option = url?.startsWith("http:") ? "--tls-verify=false " : "";
  return `podman pull ${option}${registryHost(url)}/${imageText(repository, reference)}`;
}

/** Repositories that are asked for an image at the most. */
const CANDIDATES = 5;

/**
 * The repositories that may hold a mirrored image, the likeliest first. Mirroring puts `HOST/PATH` below a namespace, and
 * may join the last components of PATH by dashes.
 */
export function mirrorCandidates(repositories: string[], image: string): string[] {
  const path = imagePathOf(image);
  if (path === undefined) return [];
  const joined = path.replaceAll("/", "-");
  const endsWith = (name: string, ending: string, separator: string) => name === ending || name.endsWith(separator + ending);
  const whole = repositories.filter((name) => endsWith(name, path, "/"));
  const others = repositories.filter((name) => !whole.includes(name) && endsWith(name.replaceAll("/", "-"), joined, "-"));
  return [...whole.sort(byLength), ...others.sort(byLength)].slice(0, CANDIDATES);
}

const byLength = (one: string, other: string) => one.length - other.length;

/** The digest that a reference names. */
export function digestOf(image: string): string | undefined {
  const [, digest] = image.split("@");
  return digest !== undefined && isDigest(digest) ? digest : undefined;
}

/** The path of a reference in its registry, without host, tag and digest. */
function imagePathOf(image: string): string | undefined {
  const [named = ""] = image.split("@");
  const path = named.split("/").slice(1).join("/").replace(/:[^/]*$/, "");
  return NAME.test(path) ? path : undefined;
}
