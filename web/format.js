// Values as people read them.

import { inner } from "./api.js";
import { h } from "./dom.js";

const GOOD = ["ready", "known", "installed", "known-unbound", "added-to-existing-cluster", "success", "production"];
const BUSY = ["installing", "installing-in-progress", "finalizing", "preparing-for-installation",
  "preparing-successful", "discovering", "discovering-unbound", "binding", "unbinding", "resetting",
  "reclaiming", "reclaiming-rebooting", "adding-hosts", "info"];
const BAD = ["error", "preparing-failed", "critical", "failure"];

/** A status as a badge: the word says it, the colour repeats it. */
export function badge(status) {
  const kind = GOOD.includes(status) ? "good" : BUSY.includes(status) ? "busy" : BAD.includes(status) ? "bad" : "warn";
  return h("span", { class: `badge ${kind}` }, words(status));
}

/** `pending-for-input` as `Pending for input`. */
export function words(text) {
  const plain = String(text ?? "").replaceAll("-", " ");
  return plain.charAt(0).toUpperCase() + plain.slice(1);
}

/** Bytes in the unit that makes them short. */
export function bytes(count) {
  if (!count) return "–";
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  const step = Math.min(Math.floor(Math.log2(count) / 10), units.length - 1);
  const value = count / 1024 ** step;
  return `${value >= 100 ? Math.round(value) : Math.round(value * 10) / 10} ${units[step]}`;
}

/** Disk sizes as vendors give them. */
export function gigabytes(count) {
  return count ? `${Math.round(count / 1e9)} GB` : "–";
}

/** A time of the wire; the zero time is no time. */
export function time(text) {
  if (!text || text.startsWith("0001-")) return h("span", { class: "muted" }, "–");
  const date = new Date(text);
  const isToday = date.toDateString() === new Date().toDateString();
  const shown = isToday ? date.toLocaleTimeString() : date.toLocaleString();
  return h("time", { datetime: text, title: date.toISOString() }, shown);
}

/** A share of a whole, as a bar with its number. */
export function progress(percentage, label) {
  const value = Math.max(0, Math.min(100, Number(percentage) || 0));
  return h("span", { class: "progress" },
    h("progress", { max: 100, value, "aria-label": label }), h("span", { class: "number" }, `${value} %`));
}

/** The validations that do not hold, of a record's `validations_info`. */
export function failing(record) {
  const groups = inner(record.validations_info, {});
  return Object.entries(groups).flatMap(([group, list]) => (Array.isArray(list) ? list : [])
    .filter(({ status }) => status === "failure" || status === "error")
    .map((validation) => ({ group, ...validation })));
}

/** Failing validations as a list, or nothing. */
export function failures(record) {
  const list = failing(record);
  return list.length > 0 && h("ul", { class: "failures" }, list.map(({ group, id, message }) =>
    h("li", { "data-key": id }, h("strong", {}, words(id)), h("span", { class: "muted" }, ` (${words(group)}) `), message)));
}

/** A record without entries. */
export function empty(title, text) {
  return h("div", { class: "empty" }, h("p", { class: "lead" }, title), h("p", { class: "muted" }, text));
}
