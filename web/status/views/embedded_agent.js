// The agent inside a discovery image: a checkbox that changes the infra-env.

import { change } from "../api.js";
import { h } from "../dom.js";

// Changes that the page does not show as data yet, by infra-env: the wanted value while it is sent, or why it failed.
let changes = new Map();

/** Forgets failures. */
export function forget() {
  changes = new Map();
}

/** The checkbox, and when to use it. */
export function option({ id, embedded_agent: isEmbedded }, page) {
  const { wanted, failure } = changes.get(id) ?? {};
  const help = `agent-help-${id}`;
  return h("div", { "data-key": `agent-${id}` },
    h("label", { class: "line" },
      h("input", { type: "checkbox", "aria-describedby": help, checked: wanted ?? isEmbedded === true, disabled: wanted !== undefined,
        onchange: (event) => send(id, event.target.checked, page) }),
      "Agent inside the image"),
    h("p", { class: "muted small", id: help },
      "Hosts report in without pulling the agent from a container registry. Choose it while no registry that they reach has the agent. ",
      "It applies to images downloaded from now on."),
    failure && h("p", { class: "bad-text", role: "alert" }, `Not changed: ${failure}`));
}

async function send(id, wanted, { redraw, refresh }) {
  const mine = changes;
  mine.set(id, { wanted });
  redraw();
  try {
    await change(`/infra-envs/${id}`, { embedded_agent: wanted });
    await refresh();
    mine.delete(id);
  } catch (error) {
    mine.set(id, { failure: error.message });
  }
  redraw();
}
