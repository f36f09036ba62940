import { readFileSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { marked } from "./drafts";

const LIBRARY = "node_modules/@openshift-assisted/ui-lib/lib";

test("forms of the library are marked", () => {
  const marks = ["common", "ocm"].flatMap((part) =>
    (readdirSync(join(LIBRARY, part), { recursive: true }) as string[]).filter((name) => name.endsWith(".tsx")).flatMap((name) => {
      const path = join(LIBRARY, part, name);
      return [...(marked(path, readFileSync(path, "utf8")) ?? "").matchAll(/mark=\{\{ (.*?) \}\}/g)].map(([, mark]) => mark);
    }),
  );
  expect(marks.sort()).toEqual([
    'form: "AdditionalNTPSourcesDialog"',
    'form: "BasicStep", hasStep: true',
    'form: "ClusterDetailsForm", hasStep: true',
    'form: "CustomManifestsForm", savesItself: true',
    'form: "Day2ClusterDetails", hasStep: true',
    'form: "DiscoveryImageConfigForm"',
    'form: "EditHostForm"',
    'form: "HostDiscovery", savesItself: true, hasStep: true',
    'form: "MassChangeHostnameModal"',
    'form: "NetworkConfigurationForm", savesItself: true, hasStep: true',
    'form: "OcmDiscoveryImageConfigForm"',
    'form: "Operators", savesItself: true, hasStep: true',
    'form: "OptionalConfigurationsStep", hasStep: true',
    'form: "ReviewStep", hasStep: true',
    'form: "StaticIpForm", part: JSON.stringify(getEmptyValues()), savesItself: true',
    'form: "Storage", savesItself: true, hasStep: true',
    'form: "UpdateDay2ApiVipForm"',
  ]);
});
