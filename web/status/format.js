// Values as people read them.

import { now } from "./api.js";
import { h } from "./dom.js";

const GOOD = ["ready", "known", "installed", "known-unbound", "added-to-existing-cluster", "success", "passed",
  "production", "available"];
const BUSY = ["installing", "installing-in-progress", "finalizing", "preparing-for-installation",
  "preparing-successful", "discovering", "discovering-unbound", "binding", "unbinding", "resetting",
  "reclaiming", "reclaiming-rebooting", "adding-hosts", "progressing"];
const QUIET = ["info"];
const BAD = ["error", "preparing-failed", "critical", "failure", "failed"];

/** A status as a badge: the word says it, the colour repeats it. */
export function badge(status) {
  if (!status) return null;
  const kind = GOOD.includes(status) ? "good" : BUSY.includes(status) ? "busy" : BAD.includes(status) ? "bad" : QUIET.includes(status) ? "quiet" : "warn";
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

/** The milliseconds of a time of the wire; undefined for the zero time. */
export function instant(text) {
  return !text || text.startsWith("0001-") ? undefined : Date.parse(text);
}

/** A time of the wire, by the reader's clock and calendar. */
export function time(text) {
  if (instant(text) === undefined) return h("span", { class: "muted" }, "–");
  const date = new Date(text);
  const clock = date.toLocaleTimeString([], { hourCycle: "h23", hour: "2-digit", minute: "2-digit", second: "2-digit" });
  const isToday = date.toDateString() === new Date().toDateString();
  return stamp(text, isToday ? clock : `${date.toLocaleDateString([], { dateStyle: "medium" })}, ${clock}`);
}

/** How long ago something was. */
export function ago(text) {
  return instant(text) === undefined ? h("span", { class: "muted" }, "–") : stamp(text, `${since(text)} ago`);
}

/** The time from then to now. */
export function since(text) {
  return span(now() - instant(text));
}

function stamp(text, shown) {
  return h("time", { datetime: text, title: new Date(text).toISOString() }, shown);
}

/** A length of time in its two largest units. */
export function span(milliseconds) {
  const seconds = Math.max(0, Math.round(milliseconds / 1000));
  if (seconds < 60) return `${seconds} s`;
  const minutes = Math.floor(seconds / 60);
  if (minutes < 60) return `${minutes} min ${seconds % 60} s`;
  const hours = Math.floor(minutes / 60);
  return hours < 48 ? `${hours} h ${minutes % 60} min` : `${Math.floor(hours / 24)} days`;
}

/** A number of things. */
export function count(number, one, many = `${one}s`) {
  return `${number} ${number === 1 ? one : many}`;
}

/** A share of a whole, as a bar with its number. */
export function progress(percentage, label) {
  const value = Math.max(0, Math.min(100, Number(percentage) || 0));
  return h("span", { class: "progress" },
    h("progress", { max: 100, value, "aria-label": label }), h("span", { class: "number" }, `${value} %`));
}

/** A record without entries. */
export function empty(title, text) {
  return h("div", { class: "empty" }, h("p", { class: "lead" }, title), h("p", { class: "muted" }, text));
}
