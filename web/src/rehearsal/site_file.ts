// Site files: documents of YAML in one text. Only their kinds are read here; the server reads the rest.

/** Kinds that a site has one document of. */
const SINGLE = ["install-config.yaml", "agent-config.yaml"];
/** Names that are suggested. */
const SUGGESTED = 500;

/** The documents of a text. Lines of block scalars are indented: a line of three dashes is always a separator. */
export function documents(text: string): string[] {
  return text.split(/^---[ \t]*(?:#.*)?\r?$/m).map((one) => one.trim()).filter((one) => one !== "");
}

/** The kind of a document; install-config.yaml has none, and is known by its members. */
export function kindOf(document: string): string | undefined {
  const kind = /^(?:\{.*?)?"?kind"?:[ \t]*["']?(\w+)/m.exec(document)?.[1];
  if (kind === "AgentConfig") return "agent-config.yaml";
  if (kind !== undefined && kind !== "InstallConfig") return kind;
  return kind !== undefined || /^(?:\{.*?)?"?(?:baseDomain|controlPlane|pullSecret|networking)"?:/m.test(document) ? "install-config.yaml" : undefined;
}

/** The documents by kind, as `[kind, count]` in their order. */
export function kinds(text: string): [kind: string | undefined, count: number][] {
  const counts = new Map<string | undefined, number>();
  for (const document of documents(text)) counts.set(kindOf(document), (counts.get(kindOf(document)) ?? 0) + 1);
  return [...counts];
}

/** The text with the documents of a file. They replace those of before, so that a corrected file can be opened again. */
export function withFile(text: string, file: string): string {
  const added = documents(file);
  const replaced = added.map(kindOf).filter((kind) => kind !== undefined && SINGLE.includes(kind));
  const kept = documents(text).filter((one) => !added.includes(one) && !replaced.includes(kindOf(one)));
  return [...kept, ...added].map((one) => `${one}\n`).join("---\n");
}

/** Names of hosts, for suggestions. */
export function hostNames(text: string): string[] {
  const found = text.matchAll(/^[ \t-]*hostname:[ \t]*["']?([\w.-]+)/gm);
  return [...new Set([...found].map(([, name]) => name!))].slice(0, SUGGESTED);
}
