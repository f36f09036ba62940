// Which view an address shows, and keeping it fresh.

import { Failure } from "./api.js";
import { show } from "./dom.js";
import { empty } from "./format.js";
import * as cluster from "./views/cluster.js";
import * as clusters from "./views/clusters.js";
import * as events from "./views/events.js";
import * as infraEnvs from "./views/infra_envs.js";
import * as siteChecks from "./views/site_checks.js";
import * as versions from "./views/versions.js";

const ROUTES = [
  [/^\/status\/?(?:clusters\/?)?$/, clusters],
  [/^\/status\/clusters\/(?<id>[0-9a-f-]{36})\/?$/, cluster],
  [/^\/status\/infra-envs\/?$/, infraEnvs],
  [/^\/status\/events\/?$/, events],
  [/^\/status\/versions\/?$/, versions],
  [/^\/status\/checks\/?$/, siteChecks],
];
// Units: milliseconds. Stages of an installation last seconds; a hidden page asks nothing.
const REFRESH = 5000;
const REFRESH_AWAY = 2000;
// A page that takes long to ask for and to draw leaves the browser and the service this many times as long in peace.
const REST = 4;

const main = document.getElementById("main");
const live = document.getElementById("live");
const notice = document.getElementById("notice");

let timer;
let pending = new AbortController();
// What the page shows, of which address: failures replace another page's data, and only warn over one's own.
let shown = {};

function route() {
  for (const [pattern, view] of ROUTES) {
    const match = pattern.exec(location.pathname);
    if (match) return { view, id: match.groups?.id };
  }
  return {};
}

async function refresh() {
  clearTimeout(timer);
  pending.abort();
  pending = new AbortController();
  const { signal } = pending;
  const { view, id } = route();
  if (shown.path !== location.pathname) shown.view?.leave?.();
  if (!view) {
    shown = {};
    notice.hidden = true;
    live.textContent = "";
    show(main, empty("There is no such page.", "The menu above has everything there is."));
    return;
  }
  let wait = REFRESH;
  const began = performance.now();
  try {
    const data = await view.load({ parameters: new URLSearchParams(location.search), id }, signal);
    if (signal.aborted) return;
    shown = { view, data, path: location.pathname };
    redraw();
    wait = Math.max(REFRESH, REST * (performance.now() - began));
    notice.hidden = true;
    live.textContent = `Updated ${new Date().toLocaleTimeString([], { hourCycle: "h23" })}`;
  } catch (error) {
    if (error.name === "AbortError" || signal.aborted) return;
    wait = error.isAway ? REFRESH_AWAY : REFRESH;
    complain(error);
  }
  timer = setTimeout(refresh, wait);
}

/** Shows the data once more, after something else than the data has changed. */
function redraw() {
  const { view, data, path } = shown;
  if (path !== location.pathname) return;
  const page = { parameters: new URLSearchParams(location.search), go, redraw, refresh };
  show(main, [view.draw(data, page)].flat(Infinity));
  document.title = `${view.name?.(data) ?? view.title} · Atoll`;
}

function complain(error) {
  // A defect of this page is told to who looks for it, and does not look like one of the service.
  if (!(error instanceof Failure)) console.error(error);
  const text = error instanceof Failure ? error.message : `This page failed: ${error.message}`;
  const age = shown.path === location.pathname ? " The data shown may be out of date." : "";
  const message = `${text}${/[.!?]$/.test(text) ? "" : "."}${age}${error.isAway ? " Trying again…" : ""}`;
  live.textContent = "Not updated";
  // Screen readers say it again with each change.
  if (notice.textContent !== message) notice.textContent = message;
  notice.hidden = false;
  if (shown.path !== location.pathname) show(main, empty("Nothing to show.", "The line above says why."));
}

/** Changes the query of the address: filters and pages survive a reload and can be sent to somebody. */
function go(changes) {
  const parameters = new URLSearchParams(location.search);
  for (const [name, value] of Object.entries(changes)) {
    if (value === "" || (name === "page" && value === 1)) parameters.delete(name);
    else parameters.set(name, value);
  }
  const query = parameters.toString();
  history.pushState(null, "", location.pathname + (query ? `?${query}` : ""));
  refresh();
}

function markNavigation() {
  for (const link of document.querySelectorAll("#nav a")) {
    const isCurrent = link.pathname === "/status/" ? /^\/status\/?(clusters|$)/.test(location.pathname) : location.pathname.startsWith(link.pathname);
    if (isCurrent) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
}

function open() {
  markNavigation();
  refresh();
}

document.addEventListener("click", (event) => {
  const link = event.target.closest?.("a[href]");
  const isOurs = link && link.origin === location.origin && link.pathname.startsWith("/status") && !link.hasAttribute("download") && !link.hash;
  if (!isOurs || event.button !== 0 || event.ctrlKey || event.metaKey || event.shiftKey || event.defaultPrevented) return;
  event.preventDefault();
  history.pushState(null, "", link.href);
  open();
  main.focus();
  scrollTo(0, 0);
});
addEventListener("popstate", open);
document.addEventListener("visibilitychange", () => {
  if (document.hidden) {
    clearTimeout(timer);
    pending.abort();
  } else refresh();
});

open();
