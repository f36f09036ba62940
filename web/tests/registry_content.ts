// Content of a site's registry: pushed as by any client of the protocol.

import { createHash } from "node:crypto";
import { request } from "node:https";
import type { Site } from "./site";

const MANIFEST = "application/vnd.oci.image.manifest.v1+json";
const INDEX = "application/vnd.oci.image.index.v1+json";
const CONFIG = "application/vnd.oci.image.config.v1+json";
const LAYER = "application/vnd.oci.image.layer.v1.tar+gzip";

interface Descriptor {
  mediaType: string;
  digest: string;
  size: number;
}

/** A login at the site's registry. */
export interface RegistryLogin {
  user: string;
  password: string;
}

interface Registry extends RegistryLogin {
  host: string;
  ca: string;
}

export function registryLogin(site: Site): RegistryLogin & { host: string } {
  const { auths } = JSON.parse(site.pullSecret) as { auths: Record<string, { auth: string }> };
  const [[host, { auth }]] = Object.entries(auths) as [[string, { auth: string }]];
  const [user = "", ...password] = Buffer.from(auth, "base64").toString().split(":");
  return { host, user, password: password.join(":") };
}

async function send({ host, ca, user, password }: Registry, method: string, path: string, body: string, mediaType: string): Promise<void> {
  const headers = { "content-type": mediaType, "content-length": Buffer.byteLength(body) };
  await new Promise<void>((done, fail) => {
    const sent = request(`https://${host}/v2/${path}`, { method, headers, ca, auth: `${user}:${password}` }, (response) => {
      response.resume();
      response.on("end", () => (response.statusCode === 201 ? done() : fail(new Error(`${method} ${path}: ${response.statusCode}`))));
    });
    sent.on("error", fail);
    sent.end(body);
  });
}

function described(body: string, mediaType: string): Descriptor {
  return { mediaType, digest: `sha256:${createHash("sha256").update(body).digest("hex")}`, size: Buffer.byteLength(body) };
}

async function pushBlob(registry: Registry, name: string, body: string, mediaType: string): Promise<Descriptor> {
  const blob = described(body, mediaType);
  await send(registry, "POST", `${name}/blobs/uploads/?digest=${blob.digest}`, body, "application/octet-stream");
  return blob;
}

async function pushManifest(registry: Registry, name: string, document: { mediaType: string }, tag?: string): Promise<Descriptor> {
  const body = JSON.stringify({ schemaVersion: 2, ...document });
  const manifest = described(body, document.mediaType);
  await send(registry, "PUT", `${name}/manifests/${tag ?? manifest.digest}`, body, document.mediaType);
  return manifest;
}

async function pushImage(registry: Registry, name: string, architecture: string, tag?: string): Promise<Descriptor> {
  const config = {
    created: "2026-01-02T03:04:05Z", os: "linux", architecture,
    config: { Entrypoint: ["/bin/operator"], Env: ["PATH=/bin", "TOKEN=not-to-be-shown"], Labels: { "io.k8s.display-name": "An operator" } },
    history: [{ created_by: "COPY operator /bin" }], rootfs: { type: "layers", diff_ids: [] },
  };
  const layers = [await pushBlob(registry, name, `${architecture} `.repeat(1000), LAYER)];
  return pushManifest(registry, name, { mediaType: MANIFEST, config: await pushBlob(registry, name, JSON.stringify(config), CONFIG), layers } as { mediaType: string }, tag);
}

export const REPOSITORY = "mirrored/group/operator";
export const SIGNATURE = "application/vnd.dev.cosign.artifact.sig.v1+json";

/** Pushes an index of two platforms with a signature, an image with two tags, and repositories with one image each. */
export async function push(site: Site, repositories: number): Promise<{ index: string; image: string }> {
  const ca = await (await fetch(`${site.url}/services/registry-ca.crt`)).text();
  const registry = { ...registryLogin(site), ca };
  const manifests = [];
  for (const architecture of ["amd64", "arm64"]) {
    manifests.push({ ...(await pushImage(registry, REPOSITORY, architecture)), platform: { os: "linux", architecture } });
  }
  const index = await pushManifest(registry, REPOSITORY, { mediaType: INDEX, manifests } as { mediaType: string }, "v2.0.0");
  const image = await pushImage(registry, REPOSITORY, "s390x", "v1.0.0");
  await pushImage(registry, REPOSITORY, "s390x", "v1");
  const empty = await pushBlob(registry, REPOSITORY, "{}", "application/vnd.oci.empty.v1+json");
  await pushManifest(registry, REPOSITORY, { mediaType: MANIFEST, artifactType: SIGNATURE, config: empty, layers: [empty], subject: index } as { mediaType: string });
  for (let number = 1; number <= repositories; number++) await pushImage(registry, `many/repository-${number}`, "amd64", "latest");
  return { index: index.digest, image: image.digest };
}
