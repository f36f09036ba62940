// The checks of the site: what does not work, and what helps.

import { get } from "../api.js";
import { h } from "../dom.js";
import { badge, count, empty, words } from "../format.js";

export const title = "Checks";

// Most urgent first.
const ORDER = ["failed", "warning", "passed"];

export async function load(_, signal) {
  return get("/doctor", { signal });
}

export function draw({ checks = [] }, { refresh }) {
  const rank = ({ status }) => ORDER.indexOf(status);
  const sorted = [...checks].sort((a, b) => rank(a) - rank(b));
  return [h("h1", {}, "Checks"),
    h("div", { class: "controls" }, h("p", { class: "line" }, summary(checks)),
      h("button", { type: "button", onclick: refresh }, "Check again")),
    h("p", { class: "muted" }, "The site as the installer API sees it, at most 30 seconds ago. On the host of the services, ",
      h("code", {}, "atoll doctor"), " also checks names, ports and certificates."),
    checks.length === 0
      ? empty("No checks.", "The settings of the installer API name nothing that can be checked.")
      : h("section", { class: "panel" }, table(sorted))];
}

function summary(checks) {
  const number = (status) => checks.filter((check) => check.status === status).length;
  return `${number("failed")} failed, ${count(number("warning"), "warning")}, ${number("passed")} passed`;
}

function table(checks) {
  const columns = ["Check", "Status", "Finding", "Remedy"];
  return h("div", { class: "scroll" }, h("table", {},
    h("thead", {}, h("tr", {}, columns.map((column) => h("th", { scope: "col" }, column)))),
    h("tbody", {}, checks.map(row))));
}

function row({ id, group, status, finding, remedy }) {
  return h("tr", { "data-key": id },
    h("th", { scope: "row" }, id, h("div", { class: "muted small" }, words(group))), h("td", {}, badge(status)),
    h("td", { class: "message" }, finding), h("td", { class: "message" }, remedy || "–"));
}
