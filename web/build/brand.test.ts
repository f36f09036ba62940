import { readFileSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { neutral, neutralSource } from "./brand";

const LIBRARY = "node_modules/@openshift-assisted/ui-lib/lib";
const LOCALES = "node_modules/@openshift-assisted/locales/lib";

test("phrases become neutral", () => {
  expect(neutral("Launch OpenShift Console")).toBe("Launch web console");
  expect(neutral("OpenShift version")).toBe("Platform version");
  expect(neutral("Select an OpenShift version from the list")).toBe("Select a platform version from the list");
  expect(neutral("`OpenShift ${version}`")).toBe("`${version}`");
  expect(neutral("1 (Single Node OpenShift)")).toBe("1 (single-node clusters)");
  expect(neutral("deleted from Assisted Installer's service in 3 days")).toBe("deleted from the installer in 3 days");
  expect(neutral("podman ps -a | grep assisted-installer")).toBe("podman ps -a | grep assisted-installer");
  expect(neutral("requirements for OpenShift Data Foundation")).toBe("requirements for OpenShift Data Foundation");
});

test("keys of translations and identifiers stay", () => {
  const source = "t('ai:OpenShift version'); const x = useOpenShiftVersions(); label = 'OpenShift version'";
  expect(neutralSource(source)).toBe(
    "t('ai:OpenShift version'); const x = useOpenShiftVersions(); label = 'Platform version'",
  );
});

test("no text of the library names its vendor, or a service of it", () => {
  const named: string[] = [];
  for (const language of readdirSync(LOCALES)) {
    const file = join(LOCALES, language, "translation.json");
    for (const text of Object.values(JSON.parse(readFileSync(file, "utf8")) as Record<string, string>)) {
      if (/Red ?Hat|\bassisted /i.test(neutral(text))) named.push(`${language}: ${neutral(text)}`);
    }
  }
  const sources = ["common", "ocm"].flatMap((part) =>
    (readdirSync(join(LIBRARY, part), { recursive: true }) as string[]).map((name) => join(LIBRARY, part, name)),
  );
  for (const path of sources.filter((name) => /\.tsx?$/.test(name) && !name.endsWith("docs_links.ts"))) {
    for (const line of neutralSource(readFileSync(path, "utf8")).split("\n")) {
      if (/Red Hat|\bAssisted [a-z]/i.test(line) && !/ai:|^\s*\/\/|\bDay 1\b/.test(line)) named.push(`${path}: ${line.trim()}`);
    }
  }
  expect(named).toEqual([]);
});
