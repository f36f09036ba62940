// Modules of the editor without declarations of their own.
declare module "monaco-editor/esm/vs/editor/editor.all.js";
declare module "monaco-editor/esm/vs/basic-languages/yaml/yaml.contribution";
