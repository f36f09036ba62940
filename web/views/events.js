// Events: newest first, by severity, page by page.

import { ask } from "../api.js";
import { h } from "../dom.js";
import { badge, empty, time, words } from "../format.js";

const PAGE = 25;
const SEVERITIES = ["info", "warning", "error", "critical"];

export const title = "Events";

/** What of the address the page depends on. */
export function choice(parameters) {
  const severities = (parameters.get("severities") ?? "").split(",").filter((one) => SEVERITIES.includes(one));
  const page = Math.max(1, Number.parseInt(parameters.get("page") ?? "1", 10) || 1);
  return { severities, page };
}

export async function load({ parameters, clusterId }, signal) {
  const { severities, page } = choice(parameters);
  const { body, headers } = await ask("/events", {
    signal,
    query: {
      order: "descending", limit: PAGE, offset: (page - 1) * PAGE, severities: severities.join(","), cluster_id: clusterId,
    },
  });
  const number = (name) => Number.parseInt(headers.get(name) ?? "", 10);
  const counts = Object.fromEntries(SEVERITIES.map((one) => [one, number(`severity-count-${one}`)]));
  return { events: body, counts, total: number("event-count") };
}

export function draw(data, { parameters, go }) {
  return [h("h1", {}, "Events"), panel(data, { parameters, go })];
}

/** The filter, the events and the pages. */
export function panel({ events, counts, total }, { parameters, id, go }) {
  const { severities, page } = choice(parameters);
  const change = (next) => go({ severities: (next.severities ?? severities).join(","), page: next.page ?? 1 });
  const toggle = (severity) => change({
    severities: severities.includes(severity) ? severities.filter((one) => one !== severity) : [...severities, severity],
  });
  return h("section", { class: "panel" },
    h("fieldset", { class: "filter" }, h("legend", {}, "Severity"), SEVERITIES.map((severity) =>
      h("label", {}, h("input", { type: "checkbox", checked: severities.includes(severity), onchange: () => toggle(severity) }),
        words(severity), Number.isNaN(counts[severity]) ? "" : h("span", { class: "count" }, counts[severity])))),
    events.length === 0 ? empty("No events.", "Nothing has happened that fits.") : list(events, id),
    pages(page, total, events.length, (next) => change({ page: next })));
}

// On the page of a cluster there is no need to lead there.
function list(events, id) {
  return h("ol", { class: "events" }, events.map((event) => h("li", {},
    time(event.event_time), badge(event.severity),
    h("span", { class: "message" }, event.message, " ",
      event.cluster_id && event.cluster_id !== id && h("a", { class: "small", href: `/clusters/${event.cluster_id}` }, "cluster")))));
}

function pages(page, total, count, open) {
  const last = Number.isNaN(total) ? (count < PAGE ? page : page + 1) : Math.max(1, Math.ceil(total / PAGE));
  if (last === 1 && page === 1) return null;
  return h("nav", { class: "pages", "aria-label": "Pages of events" },
    h("button", { type: "button", disabled: page <= 1, onclick: () => open(page - 1) }, "Newer"),
    h("span", {}, `Page ${page} of ${last}`),
    h("button", { type: "button", disabled: page >= last, onclick: () => open(page + 1) }, "Older"));
}
