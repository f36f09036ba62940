// What can be installed, and what the service itself consists of.

import { get } from "../api.js";
import { h } from "../dom.js";
import { badge, empty } from "../format.js";

export const title = "Versions";

export async function load(_, signal) {
  const [versions, components] = await Promise.all([
    get("/openshift-versions", { signal }),
    get("/component-versions", { signal }).catch((error) => {
      if (error.name === "AbortError" || error.isAway) throw error;
      return {};
    }),
  ]);
  return { versions, components };
}

export function draw({ versions, components }) {
  const entries = Object.entries(versions)
    .sort(([a], [b]) => b.localeCompare(a, undefined, { numeric: true }));
  const parts = Object.entries(components.versions ?? {});
  return [h("h1", {}, "Versions"),
    entries.length === 0
      ? empty("No versions.", "Set RELEASE_IMAGES and OS_IMAGES; a version needs an entry in both.")
      : h("section", { class: "panel" }, table(["Version", "Support", "Architectures"], entries.map(([key, version]) => [
        [version.display_name || key, version.default ? h("span", { class: "badge good" }, "Default") : ""],
        badge(version.support_level), (version.cpu_architectures ?? []).join(", ")]))),
    parts.length > 0 && h("section", { class: "panel" }, h("h2", {}, "Service"),
      components.release_tag && h("p", { class: "muted" }, `Release ${components.release_tag}`),
      table(["Component", "Image or version"], parts.map(([name, value]) => [name, h("span", { class: "mono" }, String(value))])))];
}

function table(columns, rows) {
  return h("div", { class: "scroll" }, h("table", {},
    h("thead", {}, h("tr", {}, columns.map((column) => h("th", { scope: "col" }, column)))),
    h("tbody", {}, rows.map(([first, ...rest]) => h("tr", {}, h("th", { scope: "row" }, first),
      rest.map((cell) => h("td", {}, cell)))))));
}
