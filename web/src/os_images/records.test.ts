import { expect, test } from "vitest";
import { type OsImage, type OsImageParams, onOffer, wrongMembers } from "./records";

const PARAMS: OsImageParams = { openshift_version: "4.18", cpu_architecture: "x86_64", version: "418.94.1-0", url: "https://files.example.org/live.iso", sha256: "" };

test.each([
  {}, { openshift_version: "4.18.3" }, { openshift_version: "4.20.0-ec.2" }, { sha256: "aB".repeat(32) }, { url: "file:///images/live.iso" },
  { url: "oci://registry.example.org:5000/openshift/boot-images:418.94.1-0-x86_64" }, { url: "http://10.0.0.1:8080/live.iso" },
])("%o is complete", (members) => expect(wrongMembers({ ...PARAMS, ...members })).toEqual([]));

test.each([
  { openshift_version: "" }, { openshift_version: "4" }, { openshift_version: "latest" }, { version: "" }, { version: "418/94" }, { url: "" },
  { url: "live.iso" }, { url: "https://files.example.org" }, { url: "https://root:secret@files.example.org/live.iso" },
  { url: "https://files.example.org/live.iso?token=1" }, { url: "ftp://files.example.org/live.iso" }, { sha256: "ab" },
])("%o is named", (members) => expect(wrongMembers({ ...PARAMS, ...members })).toEqual(Object.keys(members)));

test("aarch64 is arm64", () => {
  const image: OsImage = { ...PARAMS, cpu_architecture: "arm64", is_added: true, added_by: "anna", added_at: "" };
  expect(onOffer([image], { ...PARAMS, cpu_architecture: "aarch64" })).toBe(image);
  expect(onOffer([image], PARAMS)).toBeUndefined();
});
