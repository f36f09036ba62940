// One cluster: where it stands, what holds it up, its hosts, images, files and events.

import { address, get } from "../api.js";
import { h } from "../dom.js";
import { badge, failures, progress, time, words } from "../format.js";
import * as events from "./events.js";
import * as hosts from "./hosts.js";

const STARTED = ["installing", "finalizing", "installed", "error", "adding-hosts", "cancelled", "installing-pending-user-action"];

export const title = "Cluster";

export async function load({ parameters, id }, signal) {
  const [cluster, infraEnvs, happened] = await Promise.all([
    get(`/clusters/${id}`, { signal }),
    get("/infra-envs/", { signal, query: { cluster_id: id } }),
    events.load({ parameters, clusterId: id }, signal),
  ]);
  return { cluster, infraEnvs, happened };
}

export function draw({ cluster, infraEnvs, happened }, page) {
  return [
    h("p", { class: "small" }, h("a", { href: "/" }, "Clusters"), " / ", cluster.name),
    h("h1", {}, cluster.name || cluster.id, " ", badge(cluster.status)),
    h("p", { class: "lead" }, cluster.status_info),
    overview(cluster),
    problems(cluster),
    section("Hosts", cluster.hosts?.length > 0
      ? hosts.table(cluster.hosts)
      : h("p", { class: "muted" }, "No hosts yet: boot them from the discovery image below.")),
    section("Discovery images", infraEnvs.length > 0
      ? infraEnvs.map(image)
      : h("p", { class: "muted" }, "No infra-env belongs to this cluster yet.")),
    files(cluster),
    h("h2", {}, "Events"),
    events.panel(happened, page),
  ];
}

function section(heading, body) {
  return h("section", { class: "panel" }, h("h2", {}, heading), body);
}

function overview(cluster) {
  const state = cluster.progress ?? {};
  const facts = [
    ["Version", cluster.openshift_version],
    ["Domain", cluster.base_dns_domain && `${cluster.name}.${cluster.base_dns_domain}`],
    ["API addresses", (cluster.api_vips ?? []).map(({ ip }) => ip).join(", ")],
    ["Ingress addresses", (cluster.ingress_vips ?? []).map(({ ip }) => ip).join(", ")],
    ["Machine networks", (cluster.machine_networks ?? []).map(({ cidr }) => cidr).join(", ")],
    ["Control plane hosts", cluster.control_plane_count],
    ["Created", time(cluster.created_at)],
    ["Installation began", time(cluster.install_started_at)],
    ["Installation ended", time(cluster.install_completed_at)],
  ];
  const bars = [
    ["Whole", state.total_percentage],
    ["Preparing", state.preparing_for_installation_stage_percentage],
    ["Installing", state.installing_stage_percentage],
    [state.finalizing_stage ? `Finalizing: ${words(state.finalizing_stage)}` : "Finalizing", state.finalizing_stage_percentage],
  ];
  return h("section", { class: "panel split" },
    h("dl", { class: "facts" }, facts.filter(([, value]) => value !== undefined && value !== "")
      .map(([name, value]) => [h("dt", {}, name), h("dd", {}, value)])),
    state.total_percentage ? h("div", { class: "bars" }, h("h2", {}, "Progress"),
      bars.map(([name, value]) => h("div", {}, h("span", {}, name), progress(value, name)))) : null);
}

function problems(cluster) {
  const list = failures(cluster);
  return list && section("Checks that fail", list);
}

function image(infraEnv) {
  const parts = [infraEnv.openshift_version, infraEnv.cpu_architecture, words(infraEnv.type)].filter(Boolean).join(" · ");
  return h("p", { class: "line", "data-key": infraEnv.id },
    infraEnv.download_url
      ? h("a", { class: "button", href: infraEnv.download_url, download: true }, "Download ISO")
      : h("span", { class: "muted" }, "No image yet."),
    h("a", { class: "button plain", download: "discovery.ign",
      href: address(`/infra-envs/${infraEnv.id}/downloads/files`, { file_name: "discovery.ign" }) }, "Ignition"),
    h("a", { class: "button plain", download: "ipxe-script",
      href: address(`/infra-envs/${infraEnv.id}/downloads/files`, { file_name: "ipxe-script" }) }, "iPXE script"),
    h("span", {}, infraEnv.name, h("span", { class: "muted small" }, ` ${parts}`)));
}

function files(cluster) {
  const path = `/clusters/${cluster.id}`;
  const credentials = (name) => address(`${path}/downloads/credentials`, { file_name: name });
  if (!STARTED.includes(cluster.status)) {
    return section("Files", h("p", { class: "muted" }, "Kubeconfig and password can be downloaded once the installation has begun."));
  }
  return section("Files", h("p", { class: "line" },
    h("a", { class: "button", href: credentials("kubeconfig"), download: "kubeconfig" }, "Kubeconfig"),
    h("a", { class: "button plain", href: credentials("kubeadmin-password"), download: "kubeadmin-password" }, "kubeadmin password"),
    h("a", { class: "button plain", download: "install-config.yaml",
      href: address(`${path}/downloads/files`, { file_name: "install-config.yaml" }) }, "install-config.yaml"),
    h("a", { class: "button plain", href: address(`${path}/logs`, { logs_type: "all" }), download: true }, "Logs")));
}
