// Changes of the library's sources at build time.

import type { Plugin } from "vite";

export interface Patch {
  /** End of the path of the source. */
  file: string;
  changes: [before: string, after: string][];
  /** Uses the texts of the page where the source has no hook of its own. */
  hasOwnTexts?: boolean;
}

const TEXTS = 'import ourTexts from "i18next";\n';

/** The source with the changes of its patch; `undefined` without a patch. Throws when a change does not apply. */
export function patched(patches: Patch[], path: string, source: string): string | undefined {
  const patch = patches.find(({ file }) => path.endsWith(`/${file}`));
  if (!patch) return undefined;
  const result = patch.changes.reduce((text, [before, after]) => {
    if (text.split(before).length !== 2) throw new Error(`${patch.file} does not have one ${JSON.stringify(before)}: adapt its patch`);
    return text.replace(before, () => after);
  }, source);
  return patch.hasOwnTexts ? TEXTS + result : result;
}

export const isOfLibrary = (path: string | undefined) => path?.includes("/@openshift-assisted/ui-lib/") === true;

export function patchLibrary(name: string, patches: Patch[]): Plugin {
  return {
    name,
    enforce: "pre",
    transform(code, id) {
      const path = id.split("?")[0] ?? id;
      const result = isOfLibrary(path) ? patched(patches, path, code) : undefined;
      return result === undefined ? null : { code: result, map: null };
    },
  };
}
