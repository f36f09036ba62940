// The wizard as it is needed here: without controls that lead nowhere, with the states of hosts and the causes of the
// page of the cluster, and with our titles.

import { join } from "node:path";
import type { Plugin } from "vite";
import { type Patch, isOfLibrary, patchLibrary } from "./patch";

const REASON = "import { Reason } from 'atoll-components/reason';\n";

/** Modules of the library that are replaced, and ours below `src/wizard`. */
export const MODULES: Record<string, string> = {
  "common/components/clusterWizard/ClusterWizardStepValidationsAlert": "step_alert.tsx",
  "ocm/components/clusters/AssistedInstallerHeader": "header.tsx",
  "ocm/components/clusters/ClusterBreadcrumbs": "breadcrumbs.tsx",
};

/** Status of the host itself, not of the step: both pages show one. */
const ownStatus = (step: string): [string, string][] => [
  [`getWizardStepHostStatus(\n    '${step}',\n    wizardStepsValidationsMap,\n    props.host,\n  )`, "props.host.status"],
  ["  getWizardStepHostStatus,\n", ""],
  ["  getWizardStepHostValidationsInfo,\n", ""],
  ["  areOnlySoftValidationsOfWizardStepFailing,\n", ""],
  [`const validationsInfo = getWizardStepHostValidationsInfo(\n    props.validationsInfo,\n    '${step}',\n    wizardStepsValidationsMap,\n  );\n`, ""],
  [`  const sublabel = areOnlySoftValidationsOfWizardStepFailing(\n    validationsInfo,\n    '${step}',\n    wizardStepsValidationsMap,\n  )\n    ? 'Some validations failed'\n    : undefined;\n`, ""],
  ["      status={{ ...status, sublabel }}\n      validationsInfo={validationsInfo}\n", "      status={status}\n"],
  ["import { wizardStepsValidationsMap } from '../clusterWizard/wizardTransition';\n", ""],
];

/** Changes for version 2.17.1-cim; a test finds those that no longer apply. */
export const PATCHES: Patch[] = [
  {
    // Its cluster has a fixed version, and an infra-env that no pull secret can be given to.
    file: "ocm/components/clusterWizard/ClusterDetailsForm.tsx",
    changes: [
      ["import InstallDisconnectedSwitch from './disconnected/InstallDisconnectedSwitch';\n", ""],
      [
        "              {!isSingleClusterFeatureEnabled && (\n                <GridItem>\n                  <Flex alignItems={{ default: 'alignItemsCenter' }} gap={{ default: 'gapSm' }}>\n                    <TechnologyPreview />\n                    <InstallDisconnectedSwitch isDisabled={!!cluster} />\n                    <span>\n                      {t(\"ai:I'm installing on a disconnected/air-gapped/secured environment\")}\n                    </span>\n                  </Flex>\n                </GridItem>\n              )}\n",
        "",
      ],
    ],
  },
  {
    file: "ocm/components/clusterConfiguration/OcmBaseDomainField.tsx",
    changes: [['            placeholder="localhost.com"\n', ""]],
  },
  {
    file: "ocm/components/clusters/ClusterPage.tsx",
    changes: [
      ["<PageSection hasBodyWrapper={false}>\n              <AssistedInstallerHeader />", "<PageSection hasBodyWrapper={false}>\n              <AssistedInstallerHeader name={cluster.name} />"],
      ['title="Cluster details not found"', 'title={ourTexts.t("The discovery image of the cluster cannot be loaded")}'],
      ["content={\n            'Check to make sure the cluster-ID is valid. Otherwise, the cluster details may have been deleted.'\n          }", "content={infraEnvError}"],
    ],
    hasOwnTexts: true,
  },
  {
    // Without a pull secret of the person, the wizard would wait for ever for an infra-env that nothing creates.
    file: "ocm/hooks/useInfraEnvId.ts",
    changes: [[
      "          setInfraEnv(infraEnv.id);\n        }",
      '          setInfraEnv(infraEnv.id);\n        } else if (pullSecret !== undefined) {\n          setError(ourTexts.t("No discovery image belongs to this cluster: create an infra-env with its cluster_id by the API."));\n        }',
    ]],
    hasOwnTexts: true,
  },
  {
    // Addresses of a load balancer are outside of the machine networks, which do not follow from them.
    file: "ocm/components/clusterConfiguration/networkConfiguration/NetworkConfigurationForm.tsx",
    changes: [
      ["  const memoizedValidationSchema = React.useMemo(", "  const isUserLoadBalancer = cluster.loadBalancer?.type === 'user-managed';\n  const memoizedValidationSchema = React.useMemo("],
      ["getNetworkConfigurationValidationSchema(initialValues, hostSubnets, cluster.openshiftVersion),\n    [hostSubnets,", "getNetworkConfigurationValidationSchema(initialValues, hostSubnets, cluster.openshiftVersion, isUserLoadBalancer),\n    [isUserLoadBalancer, hostSubnets,"],
      ["} else if (values.stackType === IPV4_STACK) {", "} else if (values.stackType === IPV4_STACK && !isUserLoadBalancer) {"],
    ],
  },
  {
    file: "ocm/components/clusterConfiguration/networkConfiguration/networkConfigurationValidation.ts",
    changes: [
      ["  openshiftVersion?: string,\n) =>", "  openshiftVersion?: string,\n  isUserLoadBalancer = false,\n) =>"],
      ["apiVips: vipArrayValidationSchema<ApiVip>(hostSubnets, values),", "apiVips: isUserLoadBalancer ? Yup.array() : vipArrayValidationSchema<ApiVip>(hostSubnets, values),"],
      ["ingressVips: vipArrayValidationSchema<IngressVip>(hostSubnets, values),", "ingressVips: isUserLoadBalancer ? Yup.array() : vipArrayValidationSchema<IngressVip>(hostSubnets, values),"],
    ],
  },
  {
    file: "ocm/components/clusterWizard/ClusterWizardContextProvider.tsx",
    changes: [
      ["import React, { PropsWithChildren } from 'react';", "import React, { PropsWithChildren } from 'react';\nimport { CurrentStep, useStepOfAddress } from 'atoll-wizard/step_of_address';"],
      ["<ClusterWizardContext.Provider value={contextValue}>{children}</ClusterWizardContext.Provider>", "<CurrentStep.Provider value={currentStepId}><ClusterWizardContext.Provider value={contextValue}>{children}</ClusterWizardContext.Provider></CurrentStep.Provider>"],
      ["  const contextValue = React.useMemo", "  useStepOfAddress(connectedWizardStepIds, setCurrentStepId);\n\n  const contextValue = React.useMemo"],
    ],
  },
  {
    // Else the errors of the field that loses the focus move the buttons away before the click ends.
    file: "common/components/ui/WizardFooter.tsx",
    changes: [['<ActionList data-testid="wizard-step-actions">', '<ActionList data-testid="wizard-step-actions" onMouseDown={(event) => event.preventDefault()}>']],
  },
  {
    file: "ocm/components/clusterWizard/ClusterWizardFooter.tsx",
    changes: [
      ["import { useFeature } from '../../hooks/use-feature';", "import { useFeature } from '../../hooks/use-feature';\nimport { AdditionalNTPSourcesDialogToggle } from '../hosts/AdditionaNTPSourceDialogToggle';"],
      ["          uiSettings={uiSettings}\n", "          uiSettings={uiSettings} timeSources={<AdditionalNTPSourcesDialogToggle />}\n"],
    ],
  },
  {
    file: "ocm/components/clusterConfiguration/review/ReviewStep.tsx",
    changes: [
      // Disabled until it is known that the cluster is ready.
      ["React.useState<boolean>()", "React.useState<boolean>(true)"],
      ["isDisabled={disableInstallButton}", 'isDisabled={disableInstallButton} aria-describedby="step-mistakes"'],
    ],
  },
  { file: "ocm/components/hosts/HardwareStatus.tsx", changes: [...ownStatus("host-discovery"), ["sortableValue: status,", "sortableValue: host.status,"]] },
  { file: "ocm/components/hosts/NetworkingStatus.tsx", changes: ownStatus("networking") },
  {
    file: "common/components/hosts/status.tsx",
    changes: [
      ["import * as React from 'react';", "import * as React from 'react';\nimport { withHostStates } from 'atoll-wizard/host_states';"],
      ["  Object.freeze({", "  withHostStates({"],
    ],
  },
  {
    file: "common/components/hosts/HostStatus.tsx",
    changes: [
      ["import hdate from 'human-date';", "import hdate from 'human-date';\nimport { WizardHostCause } from 'atoll-wizard/host_states';\nimport { Reason } from 'atoll-components/reason';"],
      ["const { title, icon, sublabel, details, noPopover } = status;", "const { title, icon, details, noPopover } = status;"],
      ["alignItems={{ default: 'alignItemsCenter' }}", "alignItems={{ default: 'alignItemsFlexStart' }}"],
      ["{!children && !sublabel && !noPopover ? (", "{!children && !noPopover ? ("],
      ["        {sublabel && (\n          <FlexItem\n            className=\"pf-v6-u-font-size-xs\"\n            style={{ marginTop: 'calc(-1 * var(--pf-v6-l-flex--spacer--xs))' }}\n          >\n            <WithHostStatusPopover {...popoverProps}>{sublabel}</WithHostStatusPopover>\n          </FlexItem>\n        )}", "        <WizardHostCause host={host} />"],
      ["{toSentence(statusInfo)}", "<Reason text={statusInfo} />"],
      ["import { toSentence } from '../ui/table/utils';\n", ""],
    ],
  },
  {
    file: "common/components/ui/Alerts.tsx",
    changes: [
      ["import React from 'react';\n", `import React from 'react';\n${REASON}`],
      ["{alert.message}", "{typeof alert.message === 'string' ? <Reason text={alert.message} /> : alert.message}"],
    ],
  },
  {
    file: "ocm/components/clusterDetail/ClusterInstallationError.tsx",
    changes: [
      ["import React from 'react';\n", `import React from 'react';\n${REASON}`],
      ["<Content component=\"p\">\n          {toSentence(cluster.statusInfo)}", "<Content>\n          <Reason text={cluster.statusInfo} />"],
    ],
  },
  {
    file: "ocm/components/clusterDetail/ProgressBarAlerts.tsx",
    changes: [
      ["import React from 'react';\n", `import React from 'react';\n${REASON}`],
      ["<Content component=\"p\">\n        {toSentence(cluster.statusInfo)}", "<Content>\n        <Reason text={cluster.statusInfo} />"],
    ],
  },
];

export function wizard(): Plugin[] {
  let folder = "";
  const modules: Plugin = {
    name: "wizard-modules",
    enforce: "pre",
    configResolved(config) {
      folder = join(config.root, "src/wizard");
    },
    resolveId(source, importer) {
      const ours = Object.entries(MODULES).find(([path]) => source.endsWith(`/${path.split("/").at(-1)}`));
      return ours && isOfLibrary(importer) ? join(folder, ours[1]) : null;
    },
  };
  return [patchLibrary("wizard", PATCHES), modules];
}
