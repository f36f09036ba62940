// `notices.txt`: names, versions, licences and licence texts of all packages that are part of the page.

import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import type { Plugin } from "vite";

interface PackageInfo {
  name: string;
  version: string;
  license?: string;
}

/** The folder of the package that a module belongs to; none for modules of ours. */
export function packageFolder(id: string): string | undefined {
  return /^.*\/node_modules\/(?:@[^/]+\/)?[^/]+/.exec(id.split("?")[0] ?? "")?.[0];
}

function notice(folder: string): string {
  const info = JSON.parse(readFileSync(join(folder, "package.json"), "utf8")) as PackageInfo;
  const texts = readdirSync(folder)
    .filter((name) => /^(licen[cs]e|notice|copying)/i.test(name))
    .sort()
    .map((name) => readFileSync(join(folder, name), "utf8").trim());
  return [`${info.name} ${info.version}`, `Licence: ${info.license ?? "see below"}`, ...texts].join("\n\n");
}

export function notices(): Plugin {
  return {
    name: "notices",
    apply: "build",
    generateBundle() {
      const ids = [...this.getModuleIds()].map((id) => id.replace(/^\0+/, ""));
      const folders = new Set(ids.map(packageFolder).filter((folder) => folder !== undefined));
      const known = [...folders].filter((folder) => existsSync(join(folder, "package.json"))).sort();
      const line = `\n\n${"-".repeat(80)}\n\n`;
      const intro = "Packages that are part of this page, with their licences.";
      this.emitFile({ type: "asset", fileName: "notices.txt", source: [intro, ...known.map(notice)].join(line) });
    },
  };
}
