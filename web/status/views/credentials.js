// The ways into an installed cluster: files, and the password for who asks to see it.

import { address, get } from "../api.js";
import { h } from "../dom.js";
import { instant } from "../format.js";

const STARTED = ["installing", "finalizing", "installed", "error", "adding-hosts", "cancelled", "installing-pending-user-action"];

// What was asked for, of one cluster; forgotten when the page is left.
let seen = {};

/** Whether the cluster has files to offer. */
export function exist({ status }) {
  return STARTED.includes(status);
}

/** Hides the password. */
export function forget() {
  seen = {};
}

/** Buttons for the files, and the password on demand. */
export function panel(cluster, redraw) {
  const path = `/clusters/${cluster.id}`;
  const credentials = (name) => address(`${path}/downloads/credentials`, { file_name: name });
  return [
    h("p", { class: "line" },
      h("a", { class: "button", href: credentials("kubeconfig"), download: "kubeconfig" }, "Download kubeconfig"),
      seen.id === cluster.id
        ? h("button", { type: "button", onclick: () => { forget(); redraw(); } }, "Hide password")
        : h("button", { type: "button", onclick: () => reveal(cluster.id, redraw) }, "Show kubeadmin password"),
      h("a", { class: "button plain", download: "install-config.yaml",
        href: address(`${path}/downloads/files`, { file_name: "install-config.yaml" }) }, "install-config.yaml"),
      instant(cluster.controller_logs_collected_at) !== undefined && h("a", { class: "button plain", download: true,
        href: address(`${path}/logs`, { logs_type: "controller" }) }, "Controller logs")),
    seen.id === cluster.id ? answer() : null,
  ];
}

async function reveal(id, redraw) {
  seen = { id };
  redraw();
  try {
    const credentials = await get(`/clusters/${id}/credentials`);
    if (seen.id === id) seen = { id, credentials };
  } catch (error) {
    if (seen.id === id) seen = { id, failure: error.message };
  }
  redraw();
}

function answer() {
  const { credentials, failure } = seen;
  if (failure) return h("p", { class: "bad-text", role: "alert" }, failure);
  if (!credentials) return h("p", { class: "muted" }, "Asking…");
  return h("dl", { class: "facts secret" },
    h("dt", {}, "User"), h("dd", { class: "mono whole" }, credentials.username),
    h("dt", {}, "Password"), h("dd", { class: "mono whole" }, credentials.password),
    credentials.console_url && [h("dt", {}, "Console"),
      h("dd", {}, h("a", { href: credentials.console_url, rel: "noreferrer" }, credentials.console_url))]);
}
