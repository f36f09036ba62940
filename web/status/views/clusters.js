// All clusters.

import { get } from "../api.js";
import { isMoving, reasons } from "../checks.js";
import { h } from "../dom.js";
import { badge, count, empty, progress, time } from "../format.js";

export const title = "Clusters";

// Without the hosts: their inventories would make megabytes of this list.
export async function load(_, signal) {
  return get("/clusters/", { signal });
}

export function draw(clusters) {
  const heading = h("h1", {}, "Clusters");
  if (clusters.length === 0) {
    return [heading, empty("No clusters yet.", "A cluster that is created through the API appears here by itself.")];
  }
  const newestFirst = [...clusters].sort((a, b) => String(b.created_at).localeCompare(String(a.created_at)));
  return [heading, h("ul", { class: "cards" }, newestFirst.map(card))];
}

function card(cluster) {
  const [first, ...more] = reasons(cluster);
  const total = cluster.progress?.total_percentage;
  return h("li", { class: "card", "data-key": cluster.id },
    h("h2", {}, h("a", { href: `/status/clusters/${cluster.id}` }, cluster.name || cluster.id)),
    h("p", { class: "line" }, badge(cluster.status), h("span", { class: "muted" }, cluster.openshift_version)),
    isMoving(cluster) ? progress(total, "Installation") : "",
    h("p", { class: "clamp", title: [first, ...more].join("\n") }, first),
    more.length > 0 && h("p", { class: "muted small" }, `and ${count(more.length, "more reason")}`),
    h("p", { class: "muted small" }, count(cluster.total_host_count ?? 0, "host"),
      cluster.base_dns_domain ? ` · ${cluster.name}.${cluster.base_dns_domain}` : ""),
    h("p", { class: "muted small" }, "Created ", time(cluster.created_at)));
}
