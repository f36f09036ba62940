// Events: newest first, by severity, page by page.

import { ask, get } from "../api.js";
import { h } from "../dom.js";
import { badge, empty, time, words } from "../format.js";

const PAGE = 25;
const SEVERITIES = ["info", "warning", "error", "critical"];

export const title = "Events";

/** What of the address the page depends on; no severity chosen means all. */
export function choice(parameters) {
  const chosen = (parameters.get("severities") ?? "").split(",").filter((one) => SEVERITIES.includes(one));
  const page = Math.max(1, Number.parseInt(parameters.get("page") ?? "1", 10) || 1);
  return { severities: chosen.length > 0 ? chosen : SEVERITIES, page };
}

export async function load({ parameters, clusterId }, signal) {
  const { severities, page } = choice(parameters);
  const query = { order: "descending", limit: PAGE, offset: (page - 1) * PAGE, cluster_id: clusterId,
    severities: severities.length < SEVERITIES.length ? severities.join(",") : "" };
  const [{ body, headers }, clusters] = await Promise.all([
    ask("/events", { signal, query }),
    clusterId ? undefined : get("/clusters/", { signal }),
  ]);
  const number = (name) => Number.parseInt(headers.get(name) ?? "", 10);
  const counts = Object.fromEntries(SEVERITIES.map((one) => [one, number(`severity-count-${one}`)]));
  return { events: body, counts, total: number("event-count"), clusters };
}

export function draw(data, page) {
  return [h("h1", {}, "Events"), panel(data, page)];
}

/** The filter, the pages and the events. */
export function panel(data, { parameters, go }) {
  const { severities, page } = choice(parameters);
  const change = (next) => {
    const chosen = next.severities ?? severities;
    go({ severities: chosen.length < SEVERITIES.length ? chosen.join(",") : "", page: next.page ?? 1 });
  };
  return h("section", { class: "panel", "data-key": "events" },
    h("div", { class: "controls" }, filter(severities, data.counts, change), pages(page, data, change)),
    data.events.length === 0 ? nothing(severities, page) : list(data));
}

function filter(severities, counts, change) {
  const toggle = (severity) => SEVERITIES.filter((one) => severities.includes(one) !== (one === severity));
  return h("fieldset", { class: "filter" }, h("legend", {}, "Show"), SEVERITIES.map((severity) =>
    h("label", {},
      h("input", { type: "checkbox", checked: severities.includes(severity), onchange: () => change({ severities: toggle(severity) }) }),
      words(severity), Number.isNaN(counts[severity]) ? "" : h("span", { class: "count" }, counts[severity]))));
}

function nothing(severities, page) {
  if (page > 1) return empty("No events this far back.", "Newer ones are on the pages before.");
  return severities.length < SEVERITIES.length
    ? empty("No events of these severities.", "Others are hidden by the choice above.")
    : empty("No events yet.", "Events of clusters, hosts and infra-envs appear here.");
}

function list({ events, clusters }) {
  const names = new Map((clusters ?? []).map(({ id, name }) => [id, name]));
  return h("ol", { class: "events" }, events.map((event) => h("li", {},
    time(event.event_time), badge(event.severity),
    h("span", { class: "message" }, event.message, " ",
      names.has(event.cluster_id) && h("a", { class: "small", href: `/clusters/${event.cluster_id}` }, names.get(event.cluster_id) || "cluster")))));
}

function pages(page, { events, total }, change) {
  const last = Number.isNaN(total) ? page + (events.length < PAGE ? 0 : 1) : Math.max(1, Math.ceil(total / PAGE));
  if (last === 1 && page === 1) return null;
  return h("nav", { class: "pages", "aria-label": "Pages of events" },
    h("button", { type: "button", disabled: page <= 1, onclick: () => change({ page: Math.min(page - 1, last) }) }, "Newer"),
    h("span", {}, `Page ${page} of ${last}`),
    h("button", { type: "button", disabled: page >= last, onclick: () => change({ page: page + 1 }) }, "Older"));
}
