import { expect, test } from "vitest";
import { type ImageSet, imageSets, isGap, isPublished } from "./image_sets";
import type { ArchiveSet } from "./records";

const UID = "11111111-0000-4000-8000-000000000000";
const NO_UID = "00000000-0000-0000-0000-000000000000";

function archiveSet(members: Partial<ArchiveSet>): ArchiveSet {
  const sequence = members.sequence ?? 1;
  return {
    name: `mirror_seq${sequence}_000000.tar`, uid: UID, sequence, single_use: false, created_at: "2026-01-02T03:04:05Z",
    files: [{ name: `mirror_seq${sequence}_000000.tar`, size: 1 }], bytes: 1, releases: [], catalogs: [], images: 1, step: "next",
    published_sequence: 0, ...members,
  };
}

/** Sequences and gaps, as `2` and `3-5`. */
const rows = ({ rows: list }: ImageSet) => list.map((row) => (isGap(row) ? `${row.first}-${row.last}` : String(row.sequence)));

const group = (...sets: Partial<ArchiveSet>[]) => {
  const [first] = imageSets(sets.map(archiveSet));
  return first!;
};

test("sequences are in order, with the missing ones between them", () => {
  const waiting = { step: "out-of-order", published_sequence: 2 } as const;
  const found = group({ ...waiting, sequence: 9 }, { ...waiting, sequence: 5 }, { ...waiting, sequence: 6 });
  expect(rows(found)).toEqual(["3-4", "5", "6", "7-8", "9"]);
  expect(found.published).toBe(2);
});

test("a registry without the image set expects the first sequence", () => {
  expect(rows(group({ step: "out-of-order", sequence: 3 }))).toEqual(["1-2", "3"]);
  expect(rows(group({ step: "next", sequence: 1 }))).toEqual(["1"]);
});

test("a registry that was not asked may have any sequence", () => {
  expect(rows(group({ step: "unknown", sequence: 7 }, { step: "unknown", sequence: 9 }))).toEqual(["7", "8-8", "9"]);
});

test("published sets are last, the newest first", () => {
  const there = { published_sequence: 3 };
  const found = group({ ...there, sequence: 3, step: "published" }, { ...there, sequence: 1, step: "out-of-order" }, { ...there, sequence: 4, step: "next" });
  expect(rows(found)).toEqual(["4", "3", "1"]);
});

test("a sequence before the registry's is published", () => {
  expect(isPublished(archiveSet({ sequence: 2, published_sequence: 3, step: "out-of-order" }))).toBe(true);
  expect(isPublished(archiveSet({ sequence: 5, published_sequence: 3, step: "out-of-order" }))).toBe(false);
  expect(isPublished(archiveSet({ sequence: 2, published_sequence: 3, step: "damaged" }))).toBe(false);
});

test("sets without history have no gaps", () => {
  expect(rows(group({ single_use: true, sequence: 4 }))).toEqual(["4"]);
});

test("copies of a sequence are no gap, and a huge number is one", () => {
  const found = group({ name: "a/mirror_seq1_000000.tar" }, { name: "b/mirror_seq1_000000.tar" }, { sequence: 2 ** 53 - 1, step: "out-of-order" });
  expect(rows(found)).toEqual(["1", "1", `2-${2 ** 53 - 2}`, String(2 ** 53 - 1)]);
});

test("image sets with something to publish are first, unreadable archives last", () => {
  const sets = [
    { uid: NO_UID, sequence: 4, step: "damaged" as const },
    { uid: "done", step: "published" as const, published_sequence: 1, created_at: "2026-03-01T00:00:00Z" },
    { uid: "older", created_at: "2026-01-01T00:00:00Z" },
    { uid: "newer", created_at: "2026-02-01T00:00:00Z" },
  ];
  expect(imageSets(sets.map(archiveSet)).map(({ uid }) => uid)).toEqual(["newer", "older", "done", NO_UID]);
  expect(imageSets([])).toEqual([]);
});
