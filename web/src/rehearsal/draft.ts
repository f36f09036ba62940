// The form of a rehearsal, and the request of it. It is kept in the page alone: sites have secrets.

import type { RehearsalParams, RehearsalProfile } from "./records";
import { hostNames } from "./site_file";

export interface Draft {
  source: "site" | "profile";
  site: string;
  /** Profile whose faults, GPUs and joining workers are added to the site. */
  siteProfile: string;
  profile: string;
  /** Chosen faults, each with its hosts as they were typed; empty: the seed chooses one. */
  faults: Record<string, string>;
  release: string;
  seed: string;
}

export const EMPTY: Draft = { source: "site", site: "", siteProfile: "", profile: "", faults: {}, release: "", seed: "1" };

const MISSING = {
  site: { problem: "Paste or open the site file first." },
  profile: { problem: "Choose a profile first." },
};

/** What is missing, as a text of the locale files. */
export function missing({ source, site, profile }: Draft): string | undefined {
  return (source === "site" ? site : profile).trim() === "" ? MISSING[source].problem : undefined;
}

export function paramsOf({ source, site, siteProfile, profile, faults, release, seed }: Draft): RehearsalParams {
  const chosen = Object.entries(faults).flatMap(([name, typed]) => {
    const hosts = typed.split(/[\s,]+/).filter((host) => host !== "");
    return hosts.length === 0 ? [name] : hosts.map((host) => `${name}@${host}`);
  });
  const of = source === "site" ? { site, profile: siteProfile } : { site: "", profile };
  return { ...of, faults: chosen, seed: seed.trim(), release };
}

/** Names of the hosts of a draft, for suggestions. */
export function hostsOf({ source, site, profile }: Draft, profiles: RehearsalProfile[]): string[] {
  if (source === "site") return hostNames(site);
  const chosen = profiles.find(({ name }) => name === profile);
  if (!chosen) return [];
  const counts: [role: string, count: number][] = [["master", chosen.control_plane], ["arbiter", chosen.arbiters], ["worker", chosen.workers]];
  return counts.flatMap(([role, count]) => Array.from({ length: count }, (_, number) => `${role}-${number}`));
}
