// The command of a replacement, for a shell.

import type { ReplacementPlanParams } from "./records";

/** Name of the downloaded file. */
const KUBECONFIG = "kubeconfig";

/** A word that no shell changes: as it is, or in single quotes. */
export function quoted(word: string): string {
  return /^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", String.raw`'\''`)}'`;
}

/** An option with its value, which is none of the options even when it begins as one. */
const option = (name: string, value: string) => (value.startsWith("-") ? `${name}=${quoted(value)}` : `${name} ${quoted(value)}`);

export function replaceCommand({ node, new_name: name, new_address: address, unwanted = false, also_lost: lost = [] }: ReplacementPlanParams): string {
  return [
    `atoll node replace ${quoted(node)}`,
    option("--kubeconfig", KUBECONFIG),
    name !== undefined && option("--new-name", name),
    address !== undefined && option("--new-address", address),
    unwanted && "--unwanted",
    ...lost.map((one) => option("--also-lost", one)),
  ].filter((part) => part !== false).join(" ");
}
