// All clusters.

import { get } from "../api.js";
import { h } from "../dom.js";
import { badge, empty, failing, progress, time } from "../format.js";

export const title = "Clusters";

export async function load(_, signal) {
  return get("/clusters/", { signal, query: { with_hosts: true } });
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
  const count = cluster.total_host_count ?? cluster.hosts?.length ?? 0;
  const problems = failing(cluster).length + (cluster.hosts ?? []).reduce((sum, host) => sum + failing(host).length, 0);
  return h("li", { class: "card", "data-key": cluster.id },
    h("h2", {}, h("a", { href: `/clusters/${cluster.id}` }, cluster.name || cluster.id)),
    h("p", { class: "line" }, badge(cluster.status), h("span", { class: "muted" }, cluster.openshift_version)),
    h("p", {}, cluster.status_info),
    cluster.progress?.total_percentage ? progress(cluster.progress.total_percentage, "Installation") : "",
    h("p", { class: "muted small" },
      `${count} ${count === 1 ? "host" : "hosts"}`,
      problems > 0 ? ` · ${problems} failing ${problems === 1 ? "check" : "checks"}` : "",
      cluster.base_dns_domain ? ` · ${cluster.name}.${cluster.base_dns_domain}` : ""),
    h("p", { class: "muted small" }, "Created ", time(cluster.created_at)));
}
