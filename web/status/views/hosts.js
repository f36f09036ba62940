// Hosts as a table: role, state, stage, what they consist of, and which of their checks fail.

import { address, inner } from "../api.js";
import { failing, isUndecided, waiting } from "../checks.js";
import { h } from "../dom.js";
import { ago, badge, bytes, count, gigabytes, instant, progress, since, words } from "../format.js";

const COLUMNS = ["Host", "Role", "Status", "Stage", "Processor", "Memory", "Disks", "Addresses", "Last seen"];
const ADDRESSES_SHOWN = 3;

/** The name people know a host by. */
export function name(host, inventory = inner(host.inventory, {})) {
  return host.requested_hostname || inventory.hostname || host.id || "";
}

/** The anchor of a host's row. */
export function anchor(host) {
  return `host-${host.id}`;
}

/** How many hosts there are in which state. */
export function summary(hosts) {
  const states = new Map();
  for (const { status } of hosts) states.set(status, (states.get(status) ?? 0) + 1);
  return [...states].map(([status, number]) => `${number} ${words(status).toLowerCase()}`).join(", ");
}

/** The hosts, by name. */
export function table(hosts) {
  const read = hosts.map((host) => {
    const inventory = inner(host.inventory, {});
    return { host, inventory, name: name(host, inventory) };
  });
  read.sort((a, b) => a.name.localeCompare(b.name, undefined, { numeric: true }));
  return h("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": "Hosts" }, h("table", { class: "hosts" },
    h("thead", {}, h("tr", {}, COLUMNS.map((column) => h("th", { scope: "col" }, column)))),
    read.map((entry) => h("tbody", { "data-key": entry.host.id, id: anchor(entry.host) }, row(entry), problems(entry.host)))));
}

function row({ host, inventory, name: hostname }) {
  const disks = (inventory.disks ?? []).filter(({ is_installation_media: isMedia }) => !isMedia);
  const total = disks.reduce((sum, { size_bytes: size }) => sum + (size ?? 0), 0);
  const cells = [
    role(host),
    [badge(host.status), h("div", { class: "muted small" }, information(host))],
    stage(host, hostname),
    inventory.cpu ? [count(inventory.cpu.count, "CPU"), h("div", { class: "muted small" }, inventory.cpu.architecture)] : "–",
    bytes(inventory.memory?.physical_bytes),
    disks.length > 0 ? [gigabytes(total), disks.length > 1 && h("div", { class: "muted small" }, `${disks.length} disks`)] : "–",
    h("span", { class: "mono" }, addresses(inventory)),
    [ago(host.checked_in_at), logs(host)],
  ];
  return h("tr", {},
    h("th", { scope: "row" }, hostname, h("div", { class: "muted small" }, inventory.system_vendor?.product_name)),
    // Narrow windows have no row of headings; each cell says what it is.
    cells.map((cell, index) => h("td", { "data-label": COLUMNS[index + 1] }, h("div", {}, cell))));
}

// What the stage or the list of failing checks says already is not said twice.
function information(host) {
  const isSaid = host.status_info === host.progress?.current_stage || (isUndecided(host) && failing(host).length > 0);
  return isSaid ? "" : host.status_info;
}

function addresses(inventory) {
  const all = (inventory.interfaces ?? [])
    .flatMap((one) => [...(one.ipv4_addresses ?? []), ...(one.ipv6_addresses ?? [])])
    .map((cidr) => cidr.split("/")[0]);
  const more = all.length - ADDRESSES_SHOWN;
  return [all.slice(0, ADDRESSES_SHOWN).map((one) => h("div", {}, one)), more > 0 && h("div", { class: "muted", title: all.join("\n") }, `and ${more} more`)];
}

function role(host) {
  const isSuggested = host.role === "auto-assign" && host.suggested_role && host.suggested_role !== "auto-assign";
  return [words(isSuggested ? host.suggested_role : host.role),
    isSuggested && h("div", { class: "muted small" }, "suggested"),
    host.bootstrap && h("div", { class: "muted small" }, "bootstrap")];
}

function stage(host, hostname) {
  const { current_stage: current, installation_percentage: percentage, progress_info: info, ...rest } = host.progress ?? {};
  if (!current) return h("span", { class: "muted" }, "–");
  const isOver = host.status === "installed" || host.status === "added-to-existing-cluster";
  return [h("div", {}, current, info && ` ${info}`),
    percentage && !isOver ? progress(percentage, `Installation of ${hostname}`) : "",
    instant(rest.stage_started_at) !== undefined && !isOver && h("div", { class: rest.stage_timed_out ? "bad-text small" : "muted small" },
      `for ${since(rest.stage_started_at)}`, rest.stage_timed_out && ", longer than it should")];
}

function logs(host) {
  if (!host.cluster_id || instant(host.logs_collected_at) === undefined) return null;
  const href = address(`/clusters/${host.cluster_id}/logs`, { logs_type: "host", host_id: host.id });
  return h("div", { class: "small" }, h("a", { href, download: true }, "Logs"));
}

function problems(host) {
  const fails = failing(host);
  const waits = isUndecided(host) ? waiting(host) : [];
  if (fails.length + waits.length === 0) return null;
  const summaryText = [fails.length > 0 && count(fails.length, "failing check"), waits.length > 0 && `${waits.length} not decided yet`]
    .filter(Boolean).join(", ");
  return h("tr", { class: "problems" }, h("td", { colspan: COLUMNS.length },
    h("details", { open: fails.length > 0 && isUndecided(host) },
      h("summary", { class: fails.length > 0 && "bad-text" }, summaryText), list(fails), list(waits, "muted"))));
}

/** Validations as sentences, each with the id that the API knows it by. */
export function list(validations, kind = "") {
  return validations.length > 0 && h("ul", { class: `checks ${kind}` }, validations.map(({ id, message }) =>
    h("li", { "data-key": id }, message, " ", h("code", {}, id))));
}
