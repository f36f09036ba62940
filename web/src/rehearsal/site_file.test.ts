import { expect, test } from "vitest";
import { documents, hostNames, kindOf, kinds, withFile } from "./site_file";

const INSTALL = "apiVersion: v1\nmetadata:\n  name: lab\nbaseDomain: example.com\nsshKey: |\n  ---\n  key";
const AGENT = "apiVersion: v1beta1\nkind: AgentConfig\nhosts:\n- hostname: m0\n  role: master\n- role: worker\n  hostname: 'w-0'";
const HOST = "kind: BareMetalHost\nmetadata:\n  name: m0";

test("documents are separated by dashes at the start of a line", () => {
  expect(documents(`---\n${INSTALL}\n--- # next\n${AGENT}\r\n---\r\n\n`)).toEqual([INSTALL, AGENT]);
  expect(documents(" \n")).toEqual([]);
});

test.each([
  [INSTALL, "install-config.yaml"],
  [AGENT, "agent-config.yaml"],
  [HOST, "BareMetalHost"],
  ['{"apiVersion":"v1","kind":"AgentConfig"}', "agent-config.yaml"],
  ['{"apiVersion":"v1","baseDomain":"example.com"}', "install-config.yaml"],
  ["a: 1", undefined],
])("%#: the kind of a document", (document, kind) => expect(kindOf(document)).toBe(kind));

test("two files are one text", () => {
  const site = withFile(withFile("", INSTALL), AGENT);
  expect(site).toBe(`${INSTALL}\n---\n${AGENT}\n`);
  expect(kinds(withFile(site, `${HOST}\n---\n${HOST}1`))).toEqual([["install-config.yaml", 1], ["agent-config.yaml", 1], ["BareMetalHost", 2]]);
});

test("a file that is opened again replaces its documents", () => {
  const site = withFile(withFile(`${INSTALL}\n---\n${AGENT}`, HOST), HOST);
  expect(withFile(site, AGENT.replace("m0", "m1"))).toBe(`${INSTALL}\n---\n${HOST}\n---\n${AGENT.replace("m0", "m1")}\n`);
});

test("hosts are suggested by name", () => expect(hostNames(`${INSTALL}\n---\n${AGENT}`)).toEqual(["m0", "w-0"]));
