// Infra-envs: their discovery images, and the hosts that booted them and have no cluster yet.

import { address, get } from "../api.js";
import { h } from "../dom.js";
import { count, empty, time, words } from "../format.js";
import * as embeddedAgent from "./embedded_agent.js";
import * as hosts from "./hosts.js";

// The page asks one list per infra-env without a cluster; more would hold the browser's connections for long.
const ASKED_AT_ONCE = 50;

export const title = "Infra-envs";

/** What must not stay in the page when it is left. */
export const leave = embeddedAgent.forget;

export async function load(_, signal) {
  const [infraEnvs, clusters] = await Promise.all([get("/infra-envs/", { signal }), get("/clusters/", { signal })]);
  const unbound = infraEnvs.filter(({ cluster_id: id }) => !id).slice(0, ASKED_AT_ONCE);
  const lists = await Promise.all(unbound.map(({ id }) => get(`/infra-envs/${id}/hosts/`, { signal })));
  return {
    infraEnvs,
    clusters: new Map(clusters.map((cluster) => [cluster.id, cluster])),
    hosts: new Map(unbound.map(({ id }, index) => [id, lists[index]])),
  };
}

export function draw(data, page) {
  const { infraEnvs } = data;
  const newestFirst = [...infraEnvs].sort((a, b) => String(b.created_at).localeCompare(String(a.created_at)));
  return [h("h1", {}, "Infra-envs"),
    infraEnvs.length === 0
      ? empty("No infra-envs yet.", "An infra-env makes the discovery image that hosts boot from. It appears here once the API has made one.")
      : newestFirst.map((infraEnv) => h("section", { class: "panel", "data-key": infraEnv.id },
        h("h2", {}, infraEnv.name || infraEnv.id), belonging(infraEnv, data), image(infraEnv, page), unboundHosts(infraEnv, data)))];
}

function belonging({ cluster_id: id, created_at: created }, { clusters }) {
  const cluster = clusters.get(id);
  return h("p", { class: "muted small" },
    id ? ["Hosts join cluster ", h("a", { href: `/status/clusters/${id}` }, cluster?.name || id),
      cluster?.total_host_count ? ` (${count(cluster.total_host_count, "host")})` : ""] : "Hosts wait to be bound to a cluster",
    " · created ", time(created));
}

function unboundHosts(infraEnv, data) {
  const list = data.hosts.get(infraEnv.id);
  if (!list) return null;
  return list.length > 0 ? hosts.table(list) : h("p", { class: "muted" }, "No hosts yet: boot them from the image.");
}

/** The discovery image of an infra-env: downloads, the address for boot by a management controller, and the choice of its agent. */
export function image(infraEnv, page) {
  const file = (name) => address(`/infra-envs/${infraEnv.id}/downloads/files`, { file_name: name });
  const parts = [infraEnv.openshift_version, infraEnv.cpu_architecture, words(infraEnv.type).replace(" iso", " ISO"),
    infraEnv.static_network_config && "static network", infraEnv.proxy?.http_proxy && "proxy"];
  return h("div", { "data-key": infraEnv.id },
    h("p", { class: "line" },
      infraEnv.download_url
        ? h("a", { class: "button", href: infraEnv.download_url, download: true }, "Download discovery ISO")
        : h("span", { class: "muted" }, "No image yet."),
      h("a", { class: "button plain", download: "discovery.ign", href: file("discovery.ign") }, "Ignition"),
      h("a", { class: "button plain", download: "ipxe-script", href: file("ipxe-script") }, "iPXE script"),
      h("span", { class: "muted" }, parts.filter(Boolean).join(" · "))),
    infraEnv.download_url && h("p", { class: "small" },
      h("span", { class: "muted" }, "For virtual media: "), h("span", { class: "mono whole" }, infraEnv.download_url)),
    embeddedAgent.option(infraEnv, page));
}
