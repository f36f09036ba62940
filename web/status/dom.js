// Building elements, and changing a page into its next version without losing focus, scroll or open details.

const HANDLERS = ["onclick", "onchange", "ontoggle"];
// A link out of a record must not become a script.
const LINK = /^(?:https?:\/\/|\/(?!\/)|#)/i;
// What the person at the page decides, not the data.
const KEPT = new Set(["open"]);

/** An element: attributes (text, true/false, on… functions), then children (nodes, texts, nested lists). */
export function h(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes ?? {})) {
    if (value === undefined || value === null || value === false) continue;
    if (name === "href" && !LINK.test(value)) continue;
    if (name.startsWith("on")) element[name] = value;
    else element.setAttribute(name, value === true ? "" : String(value));
  }
  append(element, children);
  return element;
}

function append(element, children) {
  for (const child of children.flat(Infinity)) {
    if (child === undefined || child === null || child === false || child === "") continue;
    element.append(child instanceof Node ? child : document.createTextNode(String(child)));
  }
}

/** Makes the children of `parent` equal to `next`, keeping the nodes that can stay. */
export function show(parent, next) {
  const wanted = [next].flat(Infinity).filter((node) => node);
  for (let index = 0; index < wanted.length; index += 1) {
    const old = findOld(parent, index, wanted[index]);
    if (old) update(old, wanted[index]);
    else parent.insertBefore(wanted[index], parent.childNodes[index] ?? null);
  }
  while (parent.childNodes.length > wanted.length) parent.lastChild.remove();
}

// The node that may become `next`, moved to `index`; keyed nodes are only changed into their own next version.
function findOld(parent, index, next) {
  const key = next.dataset?.key;
  if (key === undefined) {
    const old = parent.childNodes[index];
    return old && old.dataset?.key === undefined && sameKind(old, next) ? old : null;
  }
  for (let at = index; at < parent.childNodes.length; at += 1) {
    const old = parent.childNodes[at];
    if (old.dataset?.key !== key || !sameKind(old, next)) continue;
    if (at !== index) parent.insertBefore(old, parent.childNodes[index]);
    return old;
  }
  return null;
}

function sameKind(old, next) {
  return old.nodeType === next.nodeType && old.nodeName === next.nodeName;
}

function update(old, next) {
  if (old.nodeType === Node.TEXT_NODE) {
    if (old.data !== next.data) old.data = next.data;
    return;
  }
  for (const { name } of [...old.attributes]) {
    if (!next.hasAttribute(name) && !KEPT.has(name)) old.removeAttribute(name);
  }
  for (const { name, value } of next.attributes) {
    if (KEPT.has(name)) continue;
    if (old.getAttribute(name) !== value) old.setAttribute(name, value);
  }
  for (const handler of HANDLERS) old[handler] = next[handler];
  if (old instanceof HTMLInputElement) old.checked = next.checked;
  show(old, [...next.childNodes]);
}
