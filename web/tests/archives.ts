// Archives of a small image set, which are packed outside: its images are in a registry that stands in for the internet's.

import { execFileSync } from "node:child_process";
import { createHash, randomBytes } from "node:crypto";
import { copyFileSync, mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";

const ATOLL = resolve(process.env.ATOLL_PROGRAMS ?? "../target/debug", "atoll");
const MANIFEST = "application/vnd.oci.image.manifest.v1+json";
/** The name of the images outside, and their repository in the registry that stands in. */
const SOURCE = "images.example.org/acme";
const STAND_IN = "outside/acme";

export interface Packed {
  /** Copies the files of a sequence into a folder. */
  copy(sequence: number, folder: string): void;
  remove(): void;
}

function run(program: string, args: string[]): void {
  execFileSync(program, args, { stdio: ["ignore", "ignore", "pipe"] });
}

/** Writes an image layout with one image. Its layers are random: no registry has them. */
function writeLayout(layout: string, layers: number[]): void {
  const blobs = join(layout, "blobs/sha256");
  mkdirSync(blobs, { recursive: true });
  const blob = (content: Buffer, mediaType: string) => {
    const hex = createHash("sha256").update(content).digest("hex");
    writeFileSync(join(blobs, hex), content);
    return { mediaType, digest: `sha256:${hex}`, size: content.length };
  };
  const json = (value: object, mediaType: string) => blob(Buffer.from(JSON.stringify(value)), mediaType);
  const descriptors = layers.map((size) => blob(randomBytes(size), "application/vnd.oci.image.layer.v1.tar"));
  const rootfs = { type: "layers", diff_ids: descriptors.map(({ digest }) => digest) };
  const config = json({ architecture: "amd64", os: "linux", rootfs }, "application/vnd.oci.image.config.v1+json");
  const manifest = json({ schemaVersion: 2, mediaType: MANIFEST, config, layers: descriptors }, MANIFEST);
  writeFileSync(join(layout, "oci-layout"), JSON.stringify({ imageLayoutVersion: "1.0.0" }));
  writeFileSync(join(layout, "index.json"), JSON.stringify({ schemaVersion: 2, manifests: [manifest] }));
}

/** Packs a sequence for each image, which is given by the sizes of its layers. `pullSecret` is a login at `registry`. */
export function pack(images: number[][], registry: string, pullSecret: string): Packed {
  const folder = mkdtempSync(join(tmpdir(), "atoll-archives-"));
  const inside = (name: string) => join(folder, name);
  writeFileSync(inside("auth.json"), pullSecret);
  writeFileSync(inside("registries.conf"), `[[registry]]\nlocation = "${SOURCE}"\n[[registry.mirror]]\nlocation = "${registry}/${STAND_IN}"\n`);
  images.forEach((layers, index) => {
    const layout = inside(`layout-${index}`);
    writeLayout(layout, layers);
    run("skopeo", ["copy", "--insecure-policy", "--dest-tls-verify=false", "--dest-authfile", inside("auth.json"), `oci:${layout}`, `docker://${registry}/${STAND_IN}/tool:v${index + 1}`]);
    const additionalImages = images.slice(0, index + 1).map((_, image) => ({ name: `${SOURCE}/tool:v${image + 1}` }));
    const set = { kind: "ImageSetConfiguration", apiVersion: "mirror.openshift.io/v1alpha2", storageConfig: { local: { path: inside("state") } }, mirror: { additionalImages } };
    writeFileSync(inside("set.yaml"), JSON.stringify(set));
    run(ATOLL, ["mirror", "--config", inside("set.yaml"), "--dir", inside("workspace"), "--authfile", inside("auth.json"), "--registries-conf", inside("registries.conf"), "--source-skip-tls", `file://${inside("out")}`]);
  });
  return {
    copy(sequence, to) {
      const files = readdirSync(inside("out")).filter((name) => name.startsWith(`mirror_seq${sequence}_`) && name.endsWith(".tar"));
      if (files.length === 0) throw new Error(`no archives of sequence ${sequence}`);
      for (const name of files) copyFileSync(inside(`out/${name}`), join(to, name));
    },
    remove: () => rmSync(folder, { recursive: true, force: true }),
  };
}
