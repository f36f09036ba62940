// Texts, fonts and links of the packages that name their vendor: replaced at build time by neutral ones and our help.

import { join } from "node:path";
import type { Plugin } from "vite";

/** Phrases and their replacements; the first that matches is taken. Names of operators stay: people look for them. */
const PHRASES: [RegExp, string][] = [
  [/\bA Red Hat account(?:'s)? pull secret can be found in\b/g, "Help about pull secrets is in"],
  [/ and connect(\s+)clusters to a Red Hat account/g, ""],
  [/ and are not supported through the Red Hat Customer Portal case management system/g, ""],
  [/ running on Red Hat OpenShift/g, ""],
  [/Puede encontrar un secreto de extracción de cuenta de Red Hat en/g, "Ayuda sobre los secretos de extracción:"],
  [/ y conectar clústeres a una cuenta de Red Hat/g, ""],
  [/ y no son compatibles a través del sistema de gestión de casos del Portal del Cliente de Red Hat/g, ""],
  [/Red Hat アカウントのプルシークレットは、以下にあります/g, "プルシークレットのヘルプ:"],
  [/し、クラスターを Red Hat アカウントに接続するために/g, "するために"],
  [/みなされ、Red Hat Customer Portal のケース管理システムによるサポートは受けられません/g, "みなされます"],
  [/Red Hat 계정의 풀 시크릿은 다음과 같습니다/g, "풀 시크릿 도움말"],
  [/하고 클러스터를 Red Hat 계정에 연결하는 데/g, "하는 데"],
  [/간주되며 Red Hat Customer Portal 케이스 관리 시스템을 통해 지원되지 않습니다/g, "간주됩니다"],
  [/\byour Red Hat account's pull secret\b/g, "the pull secret of your registry"],
  [/\ba Red Hat account\b/g, "an account"],
  [/\bconsole\.redhat\.com\/openshift\b/g, "the overview"],
  [/\bRed Hat Enterprise Linux CoreOS\b/g, "the hosts' operating system"],
  [/\bRed Hat Virtualization\b/g, "other virtualization platforms"],
  [/\binside OpenShift Cluster Manager\b/g, "of this site"],
  [/\bOpenShift Cluster Manager\b/g, "the overview"],
  [/\bOpenShift Container Platform\b/g, "platform"],
  // Of a service of the vendor; names of containers have a hyphen.
  [/\b(?:the )?assisted installer(?:'s)?(?: service)?(?: and APIs)?\b/gi, "the installer"],
  [/\bcreate new assisted cluster\b/gi, "Create a cluster"],
  [/\bassisted (cluster|service)/gi, "$1"],
  [/service d’installation assistée/g, "service d’installation"],
  [/services assisté\b/g, "services"],
  [/\bSingle[- ]Node OpenShift\b/g, "single-node clusters"],
  [/\bsingle node OpenShift\b/g, "single-node cluster"],
  [/\bTwo nodes? control plane OpenShift\b/g, "Clusters with two control plane nodes"],
  [/\bOpenShift( Web)? [Cc]onsole\b/g, "web console"],
  [/\bOpenShift (networking|Logging Operator|requirements|releases|deployment|installation|images?|clusters?|Cluster)\b/g, "platform $1"],
  [/\b([Aa])n OpenShift [Vv]ersion\b/g, "$1 platform version"],
  [/(?<=^|['"`>])OpenShift [Vv]ersion\b/gm, "Platform version"],
  // Before a version number, the word says nothing.
  [/\bOpenShift (?=\$\{)/g, ""],
  [/\bOpenShift [Vv]ersion/g, "platform version"],
];

/** Whole words of names of products that are kept. */
const KEPT = /OpenShift (Data Foundation|Virtualization|AI|sandboxed containers|Logging)\b/g;

/** The same text without its vendor's words. */
export function neutral(text: string): string {
  const kept: string[] = [];
  const hidden = text.replace(KEPT, (name) => `\u0000${kept.push(name) - 1}\u0000`);
  const replaced = PHRASES.reduce((result, [phrase, other]) => result.replace(phrase, other), hidden)
    .replace(/\bOpenShift\b(?=[ .,;:'"`)\]}<]|\{|$)/gm, "platform");
  return replaced.replace(/\u0000(\d+)\u0000/g, (_, index: string) => kept[Number(index)] ?? "");
}

/** The same source with neutral literals and texts. Keys of translations begin with `ai:` and stay: files look them up. */
export function neutralSource(source: string): string {
  return source
    .split(/((["'`])ai:(?:\\.|(?!\2)[^\\])*\2)/s)
    .map((part, index) => (index % 3 === 0 ? neutral(part) : index % 3 === 1 ? part : ""))
    .join("");
}

export function brand(): Plugin {
  let helpLinks = "";
  return {
    name: "brand",
    enforce: "pre",
    configResolved(config) {
      helpLinks = join(config.root, "src/wizard/help_links.ts");
    },
    resolveId(source, importer) {
      const isOfLibrary = importer?.includes("/@openshift-assisted/ui-lib/");
      return isOfLibrary && /(^|\/)docs_links$/.test(source) ? helpLinks : null;
    },
    transform(code, id) {
      const path = id.split("?")[0] ?? id;
      if (path.includes("/@openshift-assisted/locales/")) {
        const texts = JSON.parse(code) as Record<string, string>;
        const neutralTexts = Object.entries(texts).map(([key, text]) => [key, neutral(text)]);
        return { code: JSON.stringify(Object.fromEntries(neutralTexts)), map: null };
      }
      if (path.includes("/@openshift-assisted/ui-lib/") && /\.tsx?$/.test(path)) {
        return { code: neutralSource(code), map: null };
      }
      if (path.includes("/@patternfly/") && path.endsWith(".css")) {
        // The vendor's fonts: style.css names those of the system.
        return { code: code.replace(/@font-face\s*\{[^}]*RedHat[^}]*\}/g, ""), map: null };
      }
      return null;
    },
  };
}
