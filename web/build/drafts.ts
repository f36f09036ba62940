// Drafts of the library's forms: their Formik is ours, each form is marked, and fields that look at the saved cluster for
// their first state look at the form's values instead.

import { join } from "node:path";
import type { Plugin } from "vite";
import { type Patch, isOfLibrary, patchLibrary } from "./patch";

/** Changes for version 2.17.1-cim; a test finds those that no longer apply. */
export const PATCHES: Patch[] = [
  {
    file: "common/components/clusterWizard/ClusterWizardStep.tsx",
    changes: [
      ["import React from 'react';", "import React from 'react';\nimport { StepNotice } from 'atoll-wizard/formik';"],
      ["{children}", "<StepNotice />\n          {children}"],
    ],
  },
  {
    file: "ocm/components/clusterConfiguration/networkConfiguration/NetworkConfiguration.tsx",
    changes: [["isAdvNetworkConf(cluster, defaultNetworkSettings)", "isAdvNetworkConf({ ...cluster, ...values }, defaultNetworkSettings)"]],
  },
  {
    file: "common/components/clusterConfiguration/SecurityFields.tsx",
    changes: [
      ["  const [shareSshKey, setShareSshKey] = React.useState(defaultShareSshKey);\n", ""],
      [
        "useFormikContext<Pick<NetworkConfigurationValues, 'sshPublicKey'>>();\n",
        "useFormikContext<Pick<NetworkConfigurationValues, 'sshPublicKey'>>();\n  const isOther = !!values.sshPublicKey && values.sshPublicKey !== imageSshKey;\n  const [shareSshKey, setShareSshKey] = React.useState(defaultShareSshKey && !isOther);\n",
      ],
    ],
  },
  {
    file: "ocm/components/clusterConfiguration/OcmDiscoveryImageConfigForm.tsx",
    changes: [
      ["{({ submitForm, isSubmitting, status, setStatus }) => {", "{({ submitForm, isSubmitting, status, setStatus, values }) => {"],
      ["defaultValue={discoveryImageTypes[imageTypeValue]}", "defaultValue={discoveryImageTypes[values.imageType ?? imageTypeValue]}"],
    ],
  },
  {
    file: "ocm/components/clusterConfiguration/CpuArchitectureDropdown.tsx",
    changes: [
      [
        "    day1CpuArchitecture ? architectureData[day1CpuArchitecture].label : CpuArchitecture.x86,",
        "    architectureData[selectedCpuArchitecture || day1CpuArchitecture]?.label || CpuArchitecture.x86,",
      ],
    ],
  },
];

/** Forms whose parts differ by more than their module. */
const PARTS: Record<string, string> = { StaticIpForm: "JSON.stringify(getEmptyValues())" };

/** The source with marks at its forms; `undefined` without a form. */
export function marked(path: string, source: string): string | undefined {
  const form = /([^/]+)\.tsx$/.exec(path)?.[1];
  if (!form || !/<Formik\s/.test(source)) return undefined;
  const mark = [
    `form: ${JSON.stringify(form)}`,
    form in PARTS && `part: ${PARTS[form]}`,
    /\buseFormikAutoSave\(/.test(source) && "savesItself: true",
    /<ClusterWizardStep\s/.test(source) && "hasStep: true",
  ];
  return source.replaceAll(/<Formik(?=\s)/g, `<Formik mark={{ ${mark.filter(Boolean).join(", ")} }}`);
}

export function drafts(): Plugin[] {
  let formik = "";
  const marks: Plugin = {
    name: "draft-marks",
    enforce: "pre",
    configResolved(config) {
      formik = join(config.root, "src/wizard/formik.tsx");
    },
    resolveId(source, importer) {
      return source === "formik" && isOfLibrary(importer) ? formik : null;
    },
    transform(code, id) {
      const path = id.split("?")[0] ?? id;
      const result = isOfLibrary(path) ? marked(path, code) : undefined;
      return result === undefined ? null : { code: result, map: null };
    },
  };
  return [patchLibrary("drafts", PATCHES), marks];
}
