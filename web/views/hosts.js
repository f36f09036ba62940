// Hosts: a table that other views use, and the page of all hosts.

import { get, inner } from "../api.js";
import { h } from "../dom.js";
import { badge, bytes, empty, failing, failures, gigabytes, progress, time, words } from "../format.js";

// The page asks one list per infra-env; more would hold the browser's connections for long.
const INFRA_ENVS_AT_ONCE = 50;

export const title = "Hosts";

export async function load(_, signal) {
  const infraEnvs = (await get("/infra-envs/", { signal })).slice(0, INFRA_ENVS_AT_ONCE);
  const hosts = await Promise.all(infraEnvs.map(({ id }) => get(`/infra-envs/${id}/hosts/`, { signal })));
  return infraEnvs.map((infraEnv, index) => ({ infraEnv, hosts: hosts[index] }));
}

export function draw(groups) {
  const filled = groups.filter(({ hosts }) => hosts.length > 0);
  const body = filled.length === 0
    ? empty("No hosts yet.", "Hosts appear here once they have booted a discovery image and registered.")
    : filled.map(({ infraEnv, hosts }) => h("section", { class: "panel", "data-key": infraEnv.id },
      h("h2", {}, infraEnv.name || infraEnv.id),
      infraEnv.cluster_id && h("p", {}, h("a", { href: `/clusters/${infraEnv.cluster_id}` }, "Open its cluster")),
      table(hosts)));
  return [h("h1", {}, "Hosts"), body];
}

/** Hosts with role, status, stage and what they consist of. */
export function table(hosts) {
  const sorted = [...hosts].sort((a, b) => name(a).localeCompare(name(b), undefined, { numeric: true }));
  const columns = ["Host", "Role", "Status", "Stage", "Processor", "Memory", "Disks", "Addresses", "Last seen"];
  return h("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": "Hosts" }, h("table", {},
    h("thead", {}, h("tr", {}, columns.map((column) => h("th", { scope: "col" }, column)))),
    sorted.map((host) => h("tbody", { "data-key": host.id }, row(host), problems(host, columns.length)))));
}

function name(host) {
  return host.requested_hostname || inner(host.inventory, {}).hostname || host.id || "";
}

function row(host) {
  const inventory = inner(host.inventory, {});
  const addresses = (inventory.interfaces ?? [])
    .flatMap((one) => [...(one.ipv4_addresses ?? []), ...(one.ipv6_addresses ?? [])])
    .map((cidr) => cidr.split("/")[0]);
  const disks = (inventory.disks ?? []).filter(({ is_installation_media: isMedia }) => !isMedia);
  const total = disks.reduce((sum, { size_bytes: size }) => sum + (size ?? 0), 0);
  return h("tr", {},
    h("th", { scope: "row" }, name(host), h("div", { class: "muted small" }, inventory.system_vendor?.product_name)),
    h("td", {}, role(host)),
    h("td", {}, badge(host.status), h("div", { class: "muted small" }, host.status_info)),
    h("td", {}, stage(host)),
    h("td", {}, inventory.cpu ? `${inventory.cpu.count} × ${inventory.cpu.architecture ?? ""}` : "–"),
    h("td", {}, bytes(inventory.memory?.physical_bytes)),
    h("td", {}, disks.length > 0 ? [disks.length > 1 ? `${disks.length}, together ` : "", gigabytes(total)] : "–"),
    h("td", { class: "mono" }, addresses.slice(0, 3).map((address) => h("div", {}, address))),
    h("td", {}, time(host.checked_in_at)));
}

function role(host) {
  const suggested = host.role === "auto-assign" && host.suggested_role && host.suggested_role !== "auto-assign";
  return [words(suggested ? host.suggested_role : host.role),
    suggested ? h("span", { class: "muted small" }, " (suggested)") : "",
    host.bootstrap ? h("div", { class: "muted small" }, "Bootstrap") : ""];
}

function stage(host) {
  const { current_stage: current, installation_percentage: percentage, progress_info: info } = host.progress ?? {};
  if (!current) return h("span", { class: "muted" }, "–");
  return [h("div", {}, current), info ? h("div", { class: "muted small" }, info) : "",
    percentage ? progress(percentage, `Installation of ${name(host)}`) : ""];
}

function problems(host, columns) {
  const count = failing(host).length;
  return count > 0 && h("tr", { class: "problems" }, h("td", { colspan: columns }, h("details", { open: count <= 3 },
    h("summary", {}, `${count} failing ${count === 1 ? "check" : "checks"}`), failures(host))));
}
