// Names and roles that controls of the library's pages lack: without them, screen readers read out "button" only.

import type { Plugin } from "vite";
import { type Patch, patchLibrary } from "./patch";

/** A text for screen readers. */
const spoken = (text: string) => `<span className="pf-v6-screen-reader">{ourTexts.t(${JSON.stringify(text)})}</span>`;

/** Changes for version 2.17.1-cim; a test finds those that no longer apply. */
export const PATCHES: Patch[] = [
  {
    file: "common/components/ui/formik/SelectFieldWithSearch.tsx",
    changes: [
      ['aria-controls="typeahead-select-listbox"', 'aria-controls="select-typeahead-listbox"'],
      ['aria-label="Multi typeahead checkbox menu toggle"', 'aria-label={ourTexts.t("Choose")}'],
      ['aria-label="Clear input value"', 'aria-label={ourTexts.t("Clear")}'],
    ],
    hasOwnTexts: true,
  },
  {
    file: "common/components/ui/PrismCode.tsx",
    // Long lines scroll, also by keyboard.
    changes: [['<Content component="pre" className={className}', '<Content component="pre" tabIndex={0} className={className}']],
  },
  {
    file: "common/components/hosts/MassChangeHostnameModal.tsx",
    changes: [['<RichInputField\n              name="hostname"', '<RichInputField aria-label={t("ai:New hostname")}\n              name="hostname"']],
  },
  {
    // The button was in a tooltip, which keys do not reach, and had no name.
    file: "common/components/ui/formik/RemovableField.tsx",
    changes: [
      ["<Tooltip\n      hidden={hideRemoveButton}\n      exitDelay={REMOVE_BUTTON_EXIT_DELAY}\n      flipBehavior={['right', 'bottom']}\n      position=\"right-start\"\n      distance={0}\n      content={", '<div className="atoll-removable">\n      <div>{children}</div>\n      {!hideRemoveButton && ('],
      ["variant={ButtonVariant.plain}", 'aria-label={ourTexts.t("Remove")} variant={ButtonVariant.plain}'],
      ["        />\n      }\n      className={classnames('ai-remove-button__tooltip ', className)}\n      {...props}\n    >\n      {children}\n    </Tooltip>", "        />\n      )}\n    </div>"],
    ],
    hasOwnTexts: true,
  },
  {
    file: "common/components/hosts/FormatDiskCheckbox.tsx",
    changes: [["id={`select-formatted-", 'aria-label={ourTexts.t("Format")} id={`select-formatted-']],
    hasOwnTexts: true,
  },
  {
    // The button was its icon: keys did nothing. It was seen only while a pointer was above it.
    file: "ocm/components/clusterConfiguration/staticIp/components/StaticIpHostsArray.tsx",
    changes: [
      ["icon={<MinusCircleIcon onClick={onRemove} data-testid={dataTestId} />}\n    aria-label=\"remove host\"\n    style={{ visibility: showRemoveButton ? 'visible' : 'hidden' }}", 'icon={<MinusCircleIcon />} onClick={onRemove} data-testid={dataTestId}\n    aria-label={ourTexts.t("Remove")}'],
      ['direction="down"\n            data-testid={`toggle-host-', 'direction="down" toggleId={`host-${hostIdx}-toggle`} contentId={`host-${hostIdx}-content`}\n            data-testid={`toggle-host-'],
      ["<ExpandableSection isDetached key={hostIdx}", "<ExpandableSection isDetached toggleId={`host-${hostIdx}-toggle`} contentId={`host-${hostIdx}-content`} key={hostIdx}"],
    ],
    hasOwnTexts: true,
  },
  {
    file: "ocm/components/clusterConfiguration/manifestsConfiguration/components/ExpandedManifest.tsx",
    changes: [["isDetached\n", "isDetached toggleId={`manifest-${manifestIdx}-toggle`} contentId={`manifest-${manifestIdx}-content`}\n"]],
  },
  {
    file: "ocm/components/clusterConfiguration/manifestsConfiguration/components/CustomManifest.tsx",
    changes: [
      ["icon={<MinusCircleIcon onClick={onRemove} />}\n    data-testid={dataTestId}\n    aria-label=\"remove manifest\"\n    style={{ visibility: showRemoveButton ? 'visible' : 'hidden' }}", 'icon={<MinusCircleIcon />} onClick={onRemove}\n    data-testid={dataTestId}\n    aria-label={ourTexts.t("Remove")}'],
      ['direction="down"\n            data-testid={`toggle-manifest-', 'direction="down" toggleId={`manifest-${manifestIdx}-toggle`} contentId={`manifest-${manifestIdx}-content`}\n            data-testid={`toggle-manifest-'],
    ],
    hasOwnTexts: true,
  },
  {
    file: "ocm/components/clusterConfiguration/staticIp/components/FormViewNetworkWide/FormViewNetworkWideFields.tsx",
    changes: [
      ["name={`${fieldName}.ip`}", 'name={`${fieldName}.ip`} aria-label={ourTexts.t("Subnet")}'],
      ["name={`${fieldName}.prefixLength`}", 'name={`${fieldName}.prefixLength`} aria-label={ourTexts.t("Subnet: prefix length")}'],
    ],
    hasOwnTexts: true,
  },
  {
    file: "common/components/ui/PopoverIcon.tsx",
    changes: [
      ["ouiaId={buttonOuiaId}", 'ouiaId={buttonOuiaId} aria-label={ourTexts.t("Help")}'],
      // Links without an address are not reached by keyboard.
      ["component={component}", 'component={component === "a" ? "button" : component}'],
    ],
    hasOwnTexts: true,
  },
  {
    file: "ocm/components/clusterWizard/disconnected/InstallDisconnectedSwitch.tsx",
    changes: [['ouiaId="DisconnectedInstall"', 'ouiaId="DisconnectedInstall" aria-label={t("ai:I\'m installing on a disconnected/air-gapped/secured environment")}']],
  },
  {
    file: "ocm/components/clusterWizard/OperatorsBundle.tsx",
    changes: [["selectableActionId: checkboxId,", "selectableActionId: checkboxId, selectableActionAriaLabel: bundle.title,"]],
  },
  {
    file: "common/components/hosts/AITable.tsx",
    changes: [["<Checkbox id={`select-${id}`}", '<Checkbox id={`select-${id}`} aria-label={ourTexts.t("Select")}']],
    hasOwnTexts: true,
  },
  {
    file: "common/components/hosts/AITableMemo.tsx",
    changes: [
      ["{onCollapse && <Th />}", '{onCollapse && <Th screenReaderText={ourTexts.t("Details")} />}'],
      ["<Th key={`col-${i}`} {...col.props}", '<Th key={`col-${i}`} screenReaderText={col.title ? undefined : ourTexts.t("Select")} {...col.props}'],
    ],
    hasOwnTexts: true,
  },
  {
    // A checkbox in a button cannot be reached.
    file: "common/components/hosts/TableToolbar.tsx",
    changes: [
      [
        'data-testid="select-dropdown-toggle"\n        >\n          <MenuToggleCheckbox',
        'data-testid="select-dropdown-toggle" aria-label={t("ai:Select all")} splitButtonItems={[\n          <MenuToggleCheckbox',
      ],
      ["</MenuToggleCheckbox>\n        </MenuToggle>", "</MenuToggleCheckbox>]} />"],
    ],
  },
  {
    file: "common/components/clusterConfiguration/SecurityFields.tsx",
    changes: [['name="sshPublicKey"\n', 'name="sshPublicKey" aria-label={t("ai:Host SSH Public Key for troubleshooting after installation")}\n']],
  },
  {
    file: "common/components/clusterDetail/ClusterProgress.tsx",
    changes: [
      ['title=" "', 'aria-label={t("ai:Installation progress")} title=" "'],
      // Lists of terms may hold nothing else.
      ["<DetailList>\n        <Flex", "<>\n        <Flex"],
      ["</Flex>\n      </DetailList>", "</Flex>\n      </>"],
      ["<FlexItem>\n            <DetailItem\n              title", "<FlexItem><DetailList>\n            <DetailItem\n              title"],
      ['idPrefix="cluster-progress-started-on"\n            />', 'idPrefix="cluster-progress-started-on"\n            /></DetailList>'],
      ["<FlexItem>\n            <DetailItem\n              value", '<FlexItem><DetailList>\n            <DetailItem title={t("ai:Status")}\n              value'],
      ['idPrefix="cluster-progress-status"\n            />', 'idPrefix="cluster-progress-status"\n            /></DetailList>'],
    ],
  },
  {
    // An icon alone had it.
    file: "common/components/ui/WizardNavItem.tsx",
    changes: [["          icon={<ExclamationCircleIcon />}\n        />\n", `          icon={<ExclamationCircleIcon />}\n        />\n        {' '}${spoken("Error")}\n`]],
    hasOwnTexts: true,
  },
  {
    // Icons alone had the results.
    file: "ocm/components/clusterConfiguration/review/ReviewPreflightChecks.tsx",
    changes: [
      ['return <UiIcon size="sm" status="danger" icon={<ExclamationCircleIcon />} />;', `return <><UiIcon size="sm" status="danger" icon={<ExclamationCircleIcon />} />${spoken("Error")}</>;`],
      ['return <UiIcon size="sm" status="warning" icon={<ExclamationTriangleIcon />} />;', `return <><UiIcon size="sm" status="warning" icon={<ExclamationTriangleIcon />} />${spoken("Warning")}</>;`],
      ['return <UiIcon size="sm" status="info" icon={<InfoCircleIcon />} />;', `return <><UiIcon size="sm" status="info" icon={<InfoCircleIcon />} />${spoken("Info")}</>;`],
      ["return <UiIcon size=\"sm\" icon={<CheckCircleIcon color={okColor.value} />} />;", `return <><UiIcon size="sm" icon={<CheckCircleIcon color={okColor.value} />} />${spoken("Success")}</>;`],
    ],
    hasOwnTexts: true,
  },
  {
    file: "common/components/clusterDetail/ClusterCredentials.tsx",
    changes: [["<TextInput value={credentials.username}", "<TextInput aria-label={t('ai:Username')} value={credentials.username}"]],
  },
  {
    file: "ocm/components/clusters/ClustersListToolbar.tsx",
    changes: [["isDisabled={clustersUIState === ResourceUIState.RELOADING}", 'aria-label={ourTexts.t("Refresh")} isDisabled={clustersUIState === ResourceUIState.RELOADING}']],
    hasOwnTexts: true,
  },
  {
    file: "ocm/components/clusters/ClustersTable.tsx",
    changes: [['<Th key="col-action" />', '<Th key="col-action" screenReaderText={ourTexts.t("Actions")} />']],
    hasOwnTexts: true,
  },
];

export function accessibility(): Plugin {
  return patchLibrary("accessibility", PATCHES);
}
