import { cleanup, render, screen, waitFor, within } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { MemoryRouter } from "react-router-dom-v5-compat";
import { afterEach, beforeAll, expect, test, vi } from "vitest";
import type { ListedManifest } from "../api/registry";
import { startTexts } from "../i18n";
import { called, listedArtifactType, listing } from "./listed";
import { DiskUse } from "./maintenance";
import { UntaggedManifests } from "./untagged";

const MANIFEST = "application/vnd.oci.image.manifest.v1+json";
const INDEX = "application/vnd.oci.image.index.v1+json";
const CONFIG = "application/vnd.oci.image.config.v1+json";
const COSIGN = "application/vnd.dev.cosign.artifact.sig.v1+json";

const digest = (digit: string) => `sha256:${digit.repeat(64)}`;
const image = (digit: string, more: Partial<ListedManifest> = {}): ListedManifest =>
  ({ digest: digest(digit), mediaType: MANIFEST, artifactType: CONFIG, size: 10, contentSize: 1000, tags: [], pushedAt: "2026-01-02T03:04:05Z", ...more });

const ENTRIES = [
  image("a"),
  image("b"),
  { digest: digest("c"), mediaType: INDEX, size: 5, manifests: [digest("a"), digest("a"), digest("f")], tags: ["v2", "v2.0"] },
  image("d", { artifactType: COSIGN, subject: digest("c"), contentSize: 2 }),
  image("e", { artifactType: COSIGN, subject: digest("9"), contentSize: 2 }),
  { digest: digest("0"), tags: [], pushedAt: "2026-01-01T00:00:00Z" },
];

beforeAll(startTexts);
afterEach(cleanup);

test("sizes, indexes and tags come from the list alone", () => {
  const { sizes, indexes, tagged } = listing(ENTRIES);
  expect(sizes.get(digest("a"))).toBe(1010);
  expect(sizes.get(digest("c"))).toBe(1015);
  expect(sizes.has(digest("0"))).toBe(false);
  expect(indexes.get(digest("a"))!.map(called)).toEqual(["v2"]);
  expect(indexes.get(digest("f"))).toHaveLength(1);
  expect(tagged.get("v2.0")!.digest).toBe(digest("c"));
  expect(ENTRIES.map(listedArtifactType)).toEqual([undefined, undefined, undefined, COSIGN, COSIGN, undefined]);
});

function open(entries: ListedManifest[]) {
  const remove = vi.fn();
  render(
    <MemoryRouter><UntaggedManifests name="app" listing={listing(entries)} remove={remove} /></MemoryRouter>,
  );
  return remove;
}

test("manifests without a tag say what needs them, and can be deleted", async () => {
  const remove = open(ENTRIES);
  const row = (digit: string) => within(screen.getByTitle(digest(digit)).closest("tr")!);
  expect(screen.getAllByRole("button", { name: /^Delete sha256:/ })).toHaveLength(5);
  expect(row("a").getByRole("link", { name: "v2" })).toBeDefined();
  expect(row("b").getByText("Nothing")).toBeDefined();
  expect(row("d").getByRole("link", { name: "v2" })).toBeDefined();
  expect(row("d").getByText("Signature")).toBeDefined();
  expect(row("e").getByText(/what it refers to is not here/)).toBeDefined();
  expect(row("0").getByText("Damaged")).toBeDefined();
  await userEvent.click(row("b").getByRole("button"));
  expect(remove).toHaveBeenCalledWith(digest("b"));
  await userEvent.type(screen.getByRole("textbox", { name: "Filter" }), "v2");
  await waitFor(() => expect(screen.getAllByRole("button", { name: /^Delete sha256:/ })).toHaveLength(2));
});

test("where each manifest has a tag, that is said", () => {
  open([image("a", { tags: ["t"] })]);
  expect(screen.getByText("No manifest without a tag")).toBeDefined();
});

test("disk use: numbers, and a warning when little is free", () => {
  const GIB = 1024 ** 3;
  const counted = { bytes: 20 * GIB, blobs: 7, repositories: 3, counted_at: "2026-01-02T03:04:05Z" };
  const { rerender } = render(<DiskUse storage={{ ...counted, capacity: 100 * GIB, free: 60 * GIB }} />);
  expect(screen.getByRole("progressbar").getAttribute("aria-valuenow")).toBe("40");
  expect(screen.getByText("20 GiB")).toBeDefined();
  expect(screen.queryByText(/almost full/)).toBeNull();
  rerender(<DiskUse storage={{ ...counted, capacity: 100 * GIB, free: 4 * GIB }} />);
  expect(screen.getByText(/almost full/)).toBeDefined();
  rerender(<DiskUse storage={{}} />);
  expect(screen.getByText(/is being counted/)).toBeDefined();
  expect(screen.getByText(/does not report its free space/)).toBeDefined();
});
