// The editor of YAML, from this server: @monaco-editor/loader, whose place this takes, loads it from a content delivery
// network. Loaded when a form first shows it.

type Editor = typeof import("monaco-editor");
type Initialization = Promise<Editor> & { cancel(): void };

let loaded: Editor | undefined;

async function load(): Promise<Editor> {
  const { editor } = await import("./monaco");
  loaded = editor;
  return editor;
}

export default {
  config(): void {},
  init(): Initialization {
    return Object.assign(load(), { cancel() {} });
  },
  __getMonacoInstance(): Editor | null {
    return loaded ?? null;
  },
};
