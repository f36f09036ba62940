// Monaco with the languages that the forms use, and the worker that every editor needs.

import "monaco-editor/esm/vs/editor/editor.all.js";
import * as api from "monaco-editor/esm/vs/editor/editor.api";
import "monaco-editor/esm/vs/basic-languages/yaml/yaml.contribution";
import EditorWorker from "monaco-editor/esm/vs/editor/editor.worker?worker";

self.MonacoEnvironment = { getWorker: () => new EditorWorker() };

export { api as editor };
