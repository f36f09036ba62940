// Image sets: archive sets of one id, in the order in which they are published, and the sequences that are missing.

import type { ArchiveSet } from "./records";

/** Sequences that are neither in the folder nor in the registry. */
export interface Gap {
  first: number;
  last: number;
}

export interface ImageSet {
  uid: string;
  /** Whether the archives are too damaged to name their image set. */
  isUnknown: boolean;
  /** Whether each archive is mirrored without history. */
  isSingleUse: boolean;
  /** Last sequence in the registry; 0: none. */
  published: number;
  /** Sets that are not in the registry, by sequence, with the gaps between them; then published ones, the newest first. */
  rows: (ArchiveSet | Gap)[];
}

const NO_UID = "00000000-0000-0000-0000-000000000000";

export function isGap(row: ArchiveSet | Gap): row is Gap {
  return "first" in row;
}

/** The sequences between `before` and the last one that are not found. */
function gaps(before: number, found: number[]): Gap[] {
  const list: Gap[] = [];
  let last = before;
  for (const sequence of [...new Set(found)].sort((one, other) => one - other)) {
    if (sequence > last + 1) list.push({ first: last + 1, last: sequence - 1 });
    last = Math.max(last, sequence);
  }
  return list;
}

/** Whether the registry has the sequence of a set, or a later one. */
export function isPublished({ step, single_use: isSingle, sequence, published_sequence: published }: ArchiveSet): boolean {
  return step === "published" || (step === "out-of-order" && !isSingle && sequence <= published);
}

function imageSet(uid: string, sets: ArchiveSet[]): ImageSet {
  const isUnknown = uid === NO_UID;
  const published = Math.max(0, ...sets.map((set) => set.published_sequence));
  const open = sets.filter((set) => !isPublished(set));
  const over = sets.filter(isPublished).sort((one, other) => other.sequence - one.sequence);
  // Each set without history is one of its own: there is no order to have gaps in.
  const found = isUnknown ? [] : open.filter((set) => !set.single_use).map(({ sequence }) => sequence);
  // A registry without the image set expects its first sequence; one that could not be asked may have any.
  const isAsked = sets.some(({ step }) => step !== "unknown" && step !== "damaged");
  const missing = gaps(published > 0 || isAsked ? published : Math.min(...found), found);
  const at = (row: ArchiveSet | Gap) => (isGap(row) ? row.first : row.sequence);
  const rows = [...open, ...missing].sort((one, other) => at(one) - at(other));
  return { uid, isUnknown, isSingleUse: sets.every((set) => set.single_use), published, rows: [...rows, ...over] };
}

/** Groups archive sets: those with sets to publish first, unreadable ones last, each group in the order of its newest set. */
export function imageSets(sets: ArchiveSet[]): ImageSet[] {
  const byUid = new Map<string, ArchiveSet[]>();
  for (const set of sets) {
    const group = byUid.get(set.uid);
    if (group) group.push(set);
    else byUid.set(set.uid, [set]);
  }
  const newest = (group: ArchiveSet[]) => group.reduce((latest, { created_at: at }) => (at > latest ? at : latest), "");
  const rank = ([uid, group]: [string, ArchiveSet[]]) =>
    uid === NO_UID ? 2 : group.every(isPublished) ? 1 : 0;
  return [...byUid]
    .sort((one, other) => rank(one) - rank(other) || newest(other[1]).localeCompare(newest(one[1])))
    .map(([uid, group]) => imageSet(uid, group));
}
