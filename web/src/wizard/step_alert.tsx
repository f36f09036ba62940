// Why a step of the wizard cannot be left, or the cluster not be installed: the mistakes, and the links that correct them.

import { getWizardStepClusterStatus } from "@openshift-assisted/ui-lib/common";
import { Alert, AlertGroup } from "@patternfly/react-core";
import type { ReactNode } from "react";
import { useTranslation } from "react-i18next";
import { useParams } from "react-router-dom-v5-compat";
import { type Inventory, inner } from "../api/records";
import { Reason } from "../components/reason";
import { MistakeList } from "../mistakes/mistake_list";
import type { Mistake } from "../mistakes/mistakes";
import { TOPICS } from "../mistakes/topics";
import { type FailedValidation, type Validations, mistakesOfCluster } from "../mistakes/validations";

interface Judges {
  groups: string[];
  validationIds: string[];
}

interface WizardHost {
  status: string;
  validationsInfo?: string;
  requestedHostname?: string;
  inventory?: string;
}

interface Props {
  currentStepId: string;
  clusterStatus: string;
  validationsInfo?: Exclude<Validations, string>;
  hosts: WizardHost[];
  /** The validations that each step waits for. */
  wizardStepsValidationsMap: Record<string, { cluster: Judges; host: Judges }>;
  lastInstallationPreparation?: { status?: string; reason?: string };
  uiSettings?: { customManifestsUpdated?: boolean };
  /** The button of the dialog that sets time sources. */
  timeSources?: ReactNode;
}

const LAST_STEP = "review";

export default function StepAlert({ currentStepId: step, clusterStatus, validationsInfo, hosts, wizardStepsValidationsMap: steps, lastInstallationPreparation: last, uiSettings, timeSources }: Props) {
  const { t } = useTranslation();
  const { clusterId = "" } = useParams();
  const status = getWizardStepClusterStatus(step, steps as never, { status: clusterStatus, validationsInfo: validationsInfo ?? {} } as never, hosts as never);
  const isReady = (status as string) === "ready";
  const judges = Object.values(steps[step] ?? {}).filter((one): one is Judges => typeof one === "object" && "validationIds" in one);
  const belongs = ({ first, topic }: Mistake<FailedValidation>) =>
    step === LAST_STEP || (topic && TOPICS[topic].step === step) || judges.some(({ groups, validationIds }) => groups.includes(first.group) || validationIds.includes(first.id));
  const judged = hosts.map(({ status: state, validationsInfo: validations, requestedHostname, inventory }) =>
    ({ name: requestedHostname || inner<Inventory>(inventory, {}).hostname || "", status: state, validations }));
  const mistakes = mistakesOfCluster(validationsInfo, judged).filter((mistake) => belongs(mistake) && (!isReady || mistake.first.isWarning));
  const isPreparationFailed = last?.status === "failed" && !(last.reason?.includes("manifest") && uiSettings?.customManifestsUpdated);
  const title = isReady ? t("Warnings") : step === LAST_STEP ? t("The cluster cannot be installed yet") : t("Before the next step");
  return (
    <AlertGroup>
      {(!isReady || mistakes.length > 0) && (
        <Alert isInline id="step-mistakes" variant={isReady ? "info" : "warning"} title={title}>
          <MistakeList mistakes={mistakes} cluster={clusterId} timeSources={timeSources} />
          {mistakes.every(({ first }) => first.isWarning) && !isReady && <p>{t("Some checks have no result yet: wait for the hosts.")}</p>}
        </Alert>
      )}
      {isPreparationFailed && <Alert isInline variant="danger" title={t("Preparing the installation failed")}><Reason text={last?.reason} /></Alert>}
    </AlertGroup>
  );
}
