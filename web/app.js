// Which view an address shows, and keeping it fresh.

import { show } from "./dom.js";
import { empty } from "./format.js";
import * as cluster from "./views/cluster.js";
import * as clusters from "./views/clusters.js";
import * as events from "./views/events.js";
import * as hosts from "./views/hosts.js";
import * as versions from "./views/versions.js";

const ROUTES = [
  [/^\/(?:clusters\/?)?$/, clusters],
  [/^\/clusters\/(?<id>[0-9a-f-]{36})\/?$/, cluster],
  [/^\/hosts\/?$/, hosts],
  [/^\/events\/?$/, events],
  [/^\/versions\/?$/, versions],
];
// Units: milliseconds. Stages of an installation last seconds; a hidden page asks nothing.
const REFRESH = 5000;
const REFRESH_AWAY = 2000;

const main = document.getElementById("main");
const live = document.getElementById("live");
const notice = document.getElementById("notice");

let timer;
let pending = new AbortController();
// The address whose data the page shows: failures replace another page's data, and only warn over one's own.
let shown;

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
  if (!view) {
    shown = undefined;
    show(main, empty("There is no such page.", "The menu above has everything there is."));
    return;
  }
  let wait = REFRESH;
  const parameters = new URLSearchParams(location.search);
  try {
    const data = await view.load({ parameters, id }, signal);
    if (signal.aborted) return;
    show(main, [view.draw(data, { parameters, id, go })].flat(Infinity));
    shown = location.pathname;
    document.title = `${data.cluster?.name ?? view.title} · Atoll`;
    notice.hidden = true;
    live.textContent = `Updated ${new Date().toLocaleTimeString()}`;
  } catch (error) {
    if (error.name === "AbortError" || signal.aborted) return;
    wait = error.isAway ? REFRESH_AWAY : REFRESH;
    complain(error);
  }
  timer = setTimeout(refresh, wait);
}

function complain(error) {
  live.textContent = "Not updated";
  notice.textContent = error.isAway ? `${error.message} Trying again…` : error.message;
  notice.hidden = false;
  if (shown !== location.pathname) show(main, empty("Nothing to show.", "The line above says why."));
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
    const isCurrent = link.pathname === "/" ? /^\/(clusters|$)/.test(location.pathname) : location.pathname.startsWith(link.pathname);
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
  const isOurs = link && link.origin === location.origin && !link.hasAttribute("download") && !link.hash;
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
