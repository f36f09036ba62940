import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { type Failed, mistakesOf } from "./mistakes";
import { failedValidations, firstMistakeOfHost, mistakesOfCluster } from "./validations";
import { TOPICS } from "./topics";

const failed = (id: string, host = "", observed = id): Failed => ({ id, host, observed });
/** Mistakes as `id`, or `id: host, host`. */
const shown = (list: Failed[]) => mistakesOf(list).map(({ first, hosts }) => [first.id, hosts.join(", ")].filter(Boolean).join(": "));
const HOSTS = ["master-0", "master-1", "master-2"];

test("a missing machine network is one mistake, after the addresses it follows from", () => {
  const list = [
    failed("machine-cidr-defined"), failed("api-vips-defined"), failed("ingress-vips-defined"), ...HOSTS.map((host) => failed("machine-cidr-defined", host)),
    failed("all-hosts-are-ready-to-install"),
  ];
  expect(shown(list)).toEqual(["api-vips-defined", "ingress-vips-defined", "machine-cidr-defined"]);
  expect(shown(list.toReversed())).toEqual(["ingress-vips-defined", "api-vips-defined", "machine-cidr-defined"]);
});

test("addresses are chosen in a network of hosts", () => {
  expect(shown([failed("api-vips-defined"), failed("machine-cidr-defined"), failed("sufficient-masters-count")])).toEqual(["sufficient-masters-count", "api-vips-defined", "machine-cidr-defined"]);
});

test("a missing time source is one mistake on all hosts", () => {
  const synced = HOSTS.map((host) => failed("ntp-synced", host, "the clock follows none of its 0 time sources"));
  expect(shown(synced)).toEqual(["ntp-synced: master-0, master-1, master-2"]);
  // The finding of the site names it best, wherever it is.
  expect(shown([failed("time-source-missing"), ...synced])).toEqual(["time-source-missing"]);
  expect(shown([...synced, failed("ntp-server-configured")])).toEqual(["ntp-server-configured"]);
  // Hosts with different numbers of sources have the same mistake.
  expect(shown([failed("ntp-synced", "a", "none of its 0 time sources"), failed("ntp-synced", "b", "none of its 2 time sources")])).toEqual(["ntp-synced: a, b"]);
});

test("what hosts lack themselves stays apart, unless it is the same", () => {
  const memory = (host: string, observed: string) => [failed("has-min-memory", host, observed), failed("has-memory-for-role", host, observed)];
  expect(shown([...memory("a", "4 GiB"), ...memory("b", "4 GiB"), ...memory("c", "2 GiB")])).toEqual(["has-min-memory: a, b", "has-min-memory: c"]);
  expect(shown([failed("belongs-to-majority-group", "a"), failed("belongs-to-majority-group", "b"), failed("has-default-route", "a")])).toEqual(["belongs-to-majority-group: a, b", "has-default-route: a"]);
});

test("hosts that are not ready are a mistake where nothing else is", () => {
  expect(shown([failed("all-hosts-are-ready-to-install")])).toEqual(["all-hosts-are-ready-to-install"]);
  expect(shown([failed("all-hosts-are-ready-to-install"), failed("connected", "a")])).toEqual(["connected: a"]);
});

const validations = (ids: string[]) => JSON.stringify({ group: ids.map((id) => ({ id, status: "failure", message: `${id} failed` })) });

test("a host's own mistake comes before those of the cluster", () => {
  const host = (ids: string[], status = "insufficient") => firstMistakeOfHost({ name: "a", status, validations: validations(ids) })?.first.id;
  expect(host(["machine-cidr-defined", "ntp-synced", "has-memory-for-role"])).toBe("has-memory-for-role");
  expect(host(["ntp-synced", "machine-cidr-defined"], "pending-for-input")).toBe("machine-cidr-defined");
  expect(host(["has-memory-for-role", "connected"], "disconnected")).toBe("connected");
  expect(host(["ntp-synced"], "known")).toBe("ntp-synced");
  expect(host([])).toBeUndefined();
  // Validations of a host that is being installed are of the time before.
  expect(host(["ntp-synced"], "installing")).toBeUndefined();
});

test("mistakes of a cluster: those that prevent the installation come first", () => {
  const hosts = HOSTS.map((name) => ({ name, status: "pending-for-input", validations: validations(["ntp-synced", "machine-cidr-defined"]) }));
  const found = mistakesOfCluster(validations(["machine-cidr-defined", "ingress-vips-defined", "api-vips-defined"]), hosts);
  expect(found.map(({ first }) => [first.id, first.isWarning])).toEqual([
    ["api-vips-defined", false], ["ingress-vips-defined", false], ["machine-cidr-defined", false], ["ntp-synced", true],
  ]);
  expect(found.at(-1)?.hosts).toEqual(HOSTS);
});

test.each([undefined, "", "{", "null", '{"network":null}', '{"network":[{"id":"connected","status":"success","message":""}]}'])("validations %s fail nowhere", (text) => {
  expect(failedValidations(text, "")).toEqual([]);
});

test("ids are those of the service", () => {
  const source = ["model/src/validations.rs", "declarations/src/site/mistakes/table.rs"].map((file) => readFileSync(`../crates/${file}`, "utf8")).join("");
  expect(Object.values(TOPICS).flatMap(({ ids }) => ids).filter((id) => !source.includes(`"${id}"`))).toEqual([]);
});

test("each id has one topic, and those to follow exist", () => {
  const ids = Object.values(TOPICS).flatMap((topic) => topic.ids);
  expect(ids.filter((id, index) => ids.indexOf(id) !== index)).toEqual([]);
  expect(Object.values(TOPICS).flatMap(({ follows = [] }) => follows).filter((name) => !(name in TOPICS))).toEqual([]);
});
