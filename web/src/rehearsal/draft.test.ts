import { expect, test } from "vitest";
import { EMPTY, hostsOf, missing, paramsOf } from "./draft";

const SITE = { ...EMPTY, site: "hosts:\n- hostname: a\n", siteProfile: "gpu", profile: "sno" };

test("a site and a profile are either one", () => {
  expect(paramsOf(SITE)).toEqual({ site: SITE.site, profile: "gpu", faults: [], seed: "1", release: "" });
  expect(paramsOf({ ...SITE, source: "profile" })).toEqual({ site: "", profile: "sno", faults: [], seed: "1", release: "" });
});

test("a fault is of the named hosts, or of one that the seed chooses", () => {
  expect(paramsOf({ ...SITE, faults: { ram: "", disk: " a, b " } }).faults).toEqual(["ram", "disk@a", "disk@b"]);
});

test("the missing part is named", () => {
  expect(missing(EMPTY)).toBe("Paste or open the site file first.");
  expect(missing({ ...EMPTY, source: "profile" })).toBe("Choose a profile first.");
  expect(missing(SITE)).toBeUndefined();
});

test("hosts of a profile have the names of the server", () => {
  const profiles = [{ name: "sno", purpose: "", control_plane: 1, arbiters: 0, workers: 2 }];
  expect(hostsOf({ ...SITE, source: "profile" }, profiles)).toEqual(["master-0", "worker-0", "worker-1"]);
  expect(hostsOf(SITE, profiles)).toEqual(["a"]);
});
