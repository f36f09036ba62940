// Packages that are part of the page: `notices.txt` with their licences for people, `packages.json` for bills of materials.

import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import type { Plugin } from "vite";

interface PackageInfo {
  name: string;
  version: string;
  license?: string;
}

/** Licences that packages of the page may have: those that ask for a notice at most. */
const LICENCES = /^(0BSD|Apache-2\.0|BSD-[23]-Clause|BlueOak-1\.0\.0|CC0-1\.0|ISC|MIT|OFL-1\.1|Unlicense)$/;

/** Whether one of the licences that a package offers is allowed. Source: SPDX expressions with OR. */
export function isAllowed(licence: string | undefined): boolean {
  return (licence ?? "").replace(/^\(|\)$/g, "").split(" OR ").some((one) => LICENCES.test(one.trim()));
}

/** The folder of the package that a module belongs to; none for modules of ours. */
export function packageFolder(id: string): string | undefined {
  return /^.*\/node_modules\/(?:@[^/]+\/)?[^/]+/.exec(id.split("?")[0] ?? "")?.[0];
}

function packageInfo(folder: string): PackageInfo {
  return JSON.parse(readFileSync(join(folder, "package.json"), "utf8")) as PackageInfo;
}

function notice(folder: string): string {
  const info = packageInfo(folder);
  if (!isAllowed(info.license)) throw new Error(`${info.name} ${info.version} has the licence ${info.license}, which is not allowed`);
  const texts = readdirSync(folder)
    .filter((name) => /^(licen[cs]e|notice|copying)/i.test(name))
    .sort()
    .map((name) => readFileSync(join(folder, name), "utf8").trim());
  return [`${info.name} ${info.version}`, `Licence: ${info.license}`, ...texts].join("\n\n");
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
      const list = known.map(packageInfo).map(({ name, version, license }) => ({ name, version, license }));
      this.emitFile({ type: "asset", fileName: "packages.json", source: JSON.stringify(list) });
      this.emitFile({ type: "asset", fileName: "notices.txt", source: [intro, ...known.map(notice)].join(line) });
    },
  };
}
