// One cluster: where it stands, what holds it up, the way in, its hosts, images and events.

import { get } from "../api.js";
import { isMoving, isUndecided, ofCluster, refusal, stuck, waiting } from "../checks.js";
import { h } from "../dom.js";
import { badge, count, instant, progress, since, span, time, words } from "../format.js";
import * as credentials from "./credentials.js";
import * as embeddedAgent from "./embedded_agent.js";
import * as events from "./events.js";
import * as hosts from "./hosts.js";
import { image } from "./infra_envs.js";

// More would push the rest of the page out of sight; the table has them all.
const STUCK_SHOWN = 10;

export const title = "Cluster";

/** What must not stay in the page when it is left. */
export function leave() {
  credentials.forget();
  embeddedAgent.forget();
}

export async function load({ parameters, id }, signal) {
  const [cluster, infraEnvs, happened] = await Promise.all([
    get(`/clusters/${id}`, { signal }),
    get("/infra-envs/", { signal, query: { cluster_id: id } }),
    events.load({ parameters, clusterId: id }, signal),
  ]);
  return { cluster, infraEnvs, happened };
}

/** What the window is called. */
export function name({ cluster }) {
  return cluster.name || cluster.id;
}

export function draw({ cluster, infraEnvs, happened }, page) {
  const list = cluster.hosts ?? [];
  const images = section("Discovery image", infraEnvs.length > 0
    ? infraEnvs.map((infraEnv) => image(infraEnv, page))
    : h("p", { class: "muted" }, "No infra-env belongs to this cluster yet; without one there is no image to boot hosts from."));
  const table = section("Hosts", list.length > 0
    ? [h("p", { class: "muted" }, `${count(list.length, "host")}: ${hosts.summary(list)}`), hosts.table(list)]
    : h("p", { class: "muted" }, "No hosts yet: boot them from the discovery image."));
  const hasFiles = credentials.exist(cluster);
  const access = section("Access", hasFiles
    ? credentials.panel(cluster, page.redraw)
    : h("p", { class: "muted" }, "Kubeconfig and kubeadmin password are here once the installation has begun."));
  return [
    h("p", { class: "small" }, h("a", { href: "/status/" }, "Clusters"), " / ", name({ cluster })),
    h("h1", {}, name({ cluster }), " ", badge(cluster.status)),
    holdup(cluster),
    overview(cluster),
    hasFiles && access,
    list.length > 0 ? [table, images] : [images, table],
    !hasFiles && access,
    h("h2", { id: "events" }, "Events"),
    events.panel(happened, page),
  ];
}

function section(heading, body) {
  return h("section", { class: "panel", "data-key": heading }, h("h2", {}, heading), body);
}

function holdup(cluster) {
  const held = stuck(cluster)
    .map((entry) => ({ ...entry, name: hosts.name(entry.host) }))
    .sort((a, b) => a.name.localeCompare(b.name, undefined, { numeric: true }));
  const checks = isUndecided(cluster) ? ofCluster(cluster, held) : [];
  // Most of what waits, waits for what fails.
  const pending = isUndecided(cluster) && checks.length === 0 ? waiting(cluster) : [];
  const refused = refusal(cluster);
  // The panel says the same as the status of a cluster that its checks hold up, only better.
  const isSaid = isUndecided(cluster) && held.length + checks.length + pending.length > 0;
  const lead = !isSaid && cluster.status_info
    && h("p", { class: cluster.status === "error" ? "lead bad-text" : "lead" }, cluster.status_info);
  if (!isSaid && !refused && held.length === 0) return lead;
  return [lead, h("section", { class: "panel holdup", "data-key": "holdup" }, h("h2", {}, "Blocking issues"),
    refused && h("p", {}, refused),
    hosts.list(checks), held.length > 0 && h("ul", { class: "checks" }, held.slice(0, STUCK_SHOWN).map(stuckHost)),
    held.length > STUCK_SHOWN && h("p", {}, `and ${count(held.length - STUCK_SHOWN, "more host")}`),
    hosts.list(pending, "muted"))];
}

function stuckHost({ host, name: hostname, sentences }) {
  return h("li", { "data-key": host.id },
    h("a", { href: `#${hosts.anchor(host)}` }, hostname), ` – ${sentences.join(" · ")}`);
}

function overview(cluster) {
  const addresses = (list, member) => (list ?? []).map((entry) => entry[member]).join(", ");
  const facts = [
    ["Version", [cluster.openshift_version, cluster.cpu_architecture].filter(Boolean).join(", ")],
    ["Domain", cluster.base_dns_domain && `${cluster.name}.${cluster.base_dns_domain}`],
    ["API address", addresses(cluster.api_vips, "ip")],
    ["Ingress address", addresses(cluster.ingress_vips, "ip")],
    ["Machine network", addresses(cluster.machine_networks, "cidr")],
    ["Control plane hosts", cluster.control_plane_count],
    ["Created", time(cluster.created_at)],
    ["Installation", installation(cluster)],
    ["Id", h("span", { class: "mono whole" }, cluster.id)],
  ];
  return h("section", { class: "panel split", "data-key": "overview" },
    h("dl", { class: "facts" }, facts.filter(([, value]) => value)
      .map(([fact, value]) => [h("dt", {}, fact), h("dd", {}, value)])),
    isMoving(cluster) && bars(cluster));
}

function installation({ status, install_started_at: started, install_completed_at: ended }) {
  const [from, to] = [instant(started), instant(ended)];
  if (from === undefined) return null;
  if (to !== undefined && to >= from) return ["began ", time(started), `, took ${span(to - from)}`];
  return ["began ", time(started), isMoving({ status }) && `, ${since(started)} ago`];
}

function bars(cluster) {
  const state = cluster.progress ?? {};
  const stages = [
    ["Total", state.total_percentage],
    ["Preparing", state.preparing_for_installation_stage_percentage],
    ["Installing", state.installing_stage_percentage],
    [state.finalizing_stage ? `Finalizing: ${words(state.finalizing_stage)}` : "Finalizing", state.finalizing_stage_percentage],
  ];
  const operators = (cluster.monitored_operators ?? []).filter(({ status }) => status);
  return h("div", { class: "bars" }, h("h2", {}, "Progress"),
    stages.map(([stage, value]) => h("div", {}, h("span", {}, stage), progress(value, stage))),
    state.finalizing_stage_timed_out && h("p", { class: "bad-text" }, "This stage takes longer than it should."),
    operators.map((operator) => h("p", { class: "line" }, `Operator ${operator.name}`, badge(operator.status),
      h("span", { class: "muted small" }, operator.status_info))));
}
