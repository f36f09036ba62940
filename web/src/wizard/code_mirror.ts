// CodeMirror with YAML, in a shadow root: there its styles are constructed sheets, which the security policy allows.

import { defaultKeymap, history, historyKeymap } from "@codemirror/commands";
import { yaml } from "@codemirror/lang-yaml";
import { HighlightStyle, bracketMatching, indentOnInput, syntaxHighlighting } from "@codemirror/language";
import { searchKeymap } from "@codemirror/search";
import { EditorState } from "@codemirror/state";
import { EditorView, drawSelection, keymap, lineNumbers } from "@codemirror/view";
import { tags } from "@lezer/highlight";

// Colours of the page's theme, light or dark.
const THEME = EditorView.theme({
  "&": { height: "100%", color: "var(--pf-t--global--text--color--regular)" },
  ".cm-scroller": { fontFamily: "var(--pf-t--global--font--family--mono)", overflow: "auto" },
  ".cm-gutters": { backgroundColor: "transparent", color: "var(--pf-t--global--text--color--subtle)" },
  ".cm-cursor": { borderLeftColor: "var(--pf-t--global--text--color--regular)" },
});
const COLOURS = HighlightStyle.define([
  { tag: [tags.propertyName, tags.definition(tags.propertyName)], color: "var(--pf-t--global--text--color--brand--default)" },
  { tag: tags.comment, color: "var(--pf-t--global--text--color--subtle)", fontStyle: "italic" },
  { tag: [tags.bool, tags.number, tags.null], color: "var(--pf-t--global--text--color--status--warning--default)" },
]);

interface Options {
  text: string;
  label: string;
  isReadOnly: boolean;
  changed: (text: string) => void;
}

export class CodeMirror {
  private readonly view: EditorView;

  constructor(place: HTMLElement, { text, label, isReadOnly, changed }: Options) {
    const root = place.shadowRoot ?? place.attachShadow({ mode: "open" });
    const extensions = [
      lineNumbers(), history(), drawSelection(), indentOnInput(), bracketMatching(), yaml(), syntaxHighlighting(COLOURS), THEME,
      // Not Tab: it leaves the editor, for people without a mouse.
      keymap.of([...defaultKeymap, ...historyKeymap, ...searchKeymap]),
      EditorState.readOnly.of(isReadOnly),
      // An editable element is focusable anyway; checkers of accessibility know it by this.
      EditorView.contentAttributes.of({ "aria-label": label, tabindex: "0" }),
      EditorView.updateListener.of((update) => update.docChanged && changed(update.state.doc.toString())),
    ];
    this.view = new EditorView({ parent: root, root, state: EditorState.create({ doc: text, extensions }) });
  }

  /** Shows another text, unless it is the one that is shown. */
  replace(text: string): void {
    const { length } = this.view.state.doc;
    if (this.view.state.doc.toString() !== text) this.view.dispatch({ changes: { from: 0, to: length, insert: text } });
  }

  destroy(): void {
    this.view.destroy();
  }
}
