// A mirror plan: the image-set configuration that `atoll mirror` takes on the connected side.

export interface ReleaseChannel {
  name: string;
  minVersion: string;
  maxVersion: string;
}

export interface PlannedPackage {
  name: string;
  channel: string;
  minVersion: string;
}

export interface PlannedCatalog {
  catalog: string;
  packages: PlannedPackage[];
}

export interface Plan {
  architectures: string[];
  channels: ReleaseChannel[];
  hasGraph: boolean;
  catalogs: PlannedCatalog[];
  additionalImages: string[];
}

export const ARCHITECTURES = ["amd64", "arm64", "ppc64le", "s390x", "multi"];
export const EMPTY: Plan = { architectures: ["amd64"], channels: [], hasGraph: true, catalogs: [], additionalImages: [] };

/** The address of the editor that adds a package. */
export function planWith(catalog: string, name: string, channel: string | undefined): string {
  return `/mirror-plan?${new URLSearchParams({ catalog, package: name, channel: channel ?? "" }).toString()}`;
}

/** The plan with a package more; one of the same name takes the new channel. */
export function withPackage(plan: Plan, catalog: string, added: PlannedPackage): Plan {
  const present = plan.catalogs.find((one) => one.catalog === catalog);
  const packages = [...(present?.packages ?? []).filter(({ name }) => name !== added.name), added];
  const others = plan.catalogs.filter((one) => one.catalog !== catalog);
  return { ...plan, catalogs: [...others, { catalog, packages }] };
}

const VERSION = /^\d+\.\d+\.\d+([-+].+)?$/;
const RELEASE_CHANNEL = /^[a-z-]+-\d+\.\d+$/;
// Without spaces and control characters, with at least a name: the tool checks the rest, with better words.
const IMAGE = /^[a-z0-9][^\s"]*$/i;

/** A text of the locale files, and its values. */
export interface Problem {
  problem: string;
  values: Record<string, string>;
}

/** Problems of the plan, each with its place; none when it can be mirrored. */
export function problems(plan: Plan): Problem[] {
  const found: Problem[] = [];
  for (const { name, minVersion, maxVersion } of plan.channels) {
    if (!RELEASE_CHANNEL.test(name)) found.push({ problem: "{{name}}: a release channel is named as in stable-4.18", values: { name: name || "?" } });
    for (const one of [minVersion, maxVersion]) if (one && !VERSION.test(one)) found.push({ problem: "{{name}}: {{version}} is no version as in 4.18.30", values: { name, version: one } });
  }
  for (const { catalog, packages } of plan.catalogs) {
    if (!IMAGE.test(catalog)) found.push({ problem: "{{catalog}}: a catalog is an image, as in registry.example.org/catalog:v4.18", values: { catalog: catalog || "?" } });
    for (const { name, minVersion } of packages) {
      if (!name) found.push({ problem: "{{catalog}}: a package has no name", values: { catalog } });
      if (minVersion && !VERSION.test(minVersion)) found.push({ problem: "{{name}}: {{version}} is no version", values: { name, version: minVersion } });
    }
  }
  for (const image of plan.additionalImages) if (!IMAGE.test(image)) found.push({ problem: "{{image}}: an image is HOST/PATH:TAG or HOST/PATH@DIGEST", values: { image: image || "?" } });
  return found;
}

/** The configuration as YAML. Source: the format v2alpha1 of image-set configurations. */
export function toYaml(plan: Plan): string {
  const lines = ["apiVersion: mirror.openshift.io/v2alpha1", "kind: ImageSetConfiguration", "mirror:"];
  const add = (indent: number, text: string) => lines.push(" ".repeat(indent) + text);
  const member = (indent: number, name: string, value: string) => value && add(indent, `${name}: ${quoted(value)}`);
  if (plan.channels.length > 0) {
    add(2, "platform:");
    if (plan.hasGraph) add(4, "graph: true");
    if (plan.architectures.length > 0) add(4, `architectures: [${plan.architectures.join(", ")}]`);
    add(4, "channels:");
    for (const { name, minVersion, maxVersion } of plan.channels) {
      add(6, `- name: ${quoted(name)}`);
      member(8, "minVersion", minVersion);
      member(8, "maxVersion", maxVersion);
    }
  }
  if (plan.catalogs.length > 0) add(2, "operators:");
  for (const { catalog, packages } of plan.catalogs) {
    add(4, `- catalog: ${quoted(catalog)}`);
    if (packages.length > 0) add(6, "packages:");
    for (const { name, channel, minVersion } of packages) {
      add(8, `- name: ${quoted(name)}`);
      if (!channel) {
        member(10, "minVersion", minVersion);
        continue;
      }
      add(10, "channels:");
      add(12, `- name: ${quoted(channel)}`);
      member(14, "minVersion", minVersion);
    }
  }
  if (plan.additionalImages.length > 0) add(2, "additionalImages:");
  for (const image of plan.additionalImages) add(4, `- name: ${quoted(image)}`);
  // A member without content would be null, which is no selection.
  if (lines.length === 3) lines[2] = "mirror: {}";
  return `${lines.join("\n")}\n`;
}

/** Plain where YAML reads it as a text anyway, else quoted as JSON, which YAML reads. */
function quoted(text: string): string {
  return /^[a-z][\w./@:-]*$/i.test(text) && !/:$|^(true|false|yes|no|on|off|null|y|n)$/i.test(text) ? text : JSON.stringify(text);
}
