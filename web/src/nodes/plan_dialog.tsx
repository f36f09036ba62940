// The dialog that plans the replacement of a control node, and gives the command that does it.

import {
  Button, Checkbox, Content, Form, FormGroup, FormHelperText, HelperText, HelperTextItem, Modal, ModalBody, ModalFooter, ModalHeader, Radio, TextInput,
} from "@patternfly/react-core";
import { type FormEvent, useId, useState } from "react";
import { useTranslation } from "react-i18next";
import { ApiError, asApiError, send } from "../api/client";
import { correctable } from "../api/refusal";
import { Failure } from "../components/loaded";
import { DraftNotice, useDraft } from "../drafts/draft";
import { NO_CHOICES, type PlanChoices, isComplete, planParams } from "./plan_choices";
import { PlanView } from "./plan_view";
import { type ClusterNode, type ReplacementPlan, type ReplacementPlanParams, replacementPath } from "./records";
import { clusterFailure } from "./resources";
import { RunCommand } from "./run_command";

/** A refusal of the replacement, or a failure of its cluster. */
function refusal(error: ApiError): ApiError {
  const refused = correctable(error);
  return refused === error ? clusterFailure(error) : refused;
}

type State = "editing" | "planning" | ApiError | { plan: ReplacementPlan; params: ReplacementPlanParams };

interface Props {
  cluster: string;
  node: ClusterNode;
  nodes: ClusterNode[];
  close: () => void;
}

export function PlanDialog({ cluster, node: { node, is_ready: isReady }, nodes, close }: Props) {
  const { t } = useTranslation();
  const id = useId();
  const name = node ?? "";
  const draft = useDraft(`replacement ${cluster} ${name}`, NO_CHOICES);
  const choices = draft.values;
  const [state, setState] = useState<State>("editing");
  const title = t("Replacement of {{node}}", { node: name });
  const others = nodes.filter((one) => one.is_control_plane && one.node !== null && one.node !== name);
  const set = (members: Partial<PlanChoices>) => {
    draft.change((before) => ({ ...before, ...members }));
    // The plan is that of other choices.
    setState("editing");
  };
  const plan = async (event: FormEvent) => {
    event.preventDefault();
    if (state === "planning" || !isComplete(choices)) return;
    setState("planning");
    const params = planParams(name, choices);
    try {
      setState({ plan: await send<ReplacementPlan>("POST", `${replacementPath(cluster)}/plan`, params), params });
    } catch (error) {
      setState(refusal(asApiError(error)));
    }
  };
  return (
    <Modal isOpen variant="large" onClose={close} aria-label={title}>
      <ModalHeader title={title} description={t("The plan changes nothing. A command does the replacement.")} />
      <ModalBody tabIndex={0} role="region" aria-label={title}>
        {draft.isRestored && <DraftNotice discard={draft.end} />}
        <Form id={id} onSubmit={(event) => void plan(event)}>
          <FormGroup label={t("New node")} role="radiogroup" isStack>
            <Radio id={`${id}-same`} name={`${id}-place`} label={t("The same name and address")} isChecked={!choices.hasNewPlace} onChange={() => set({ hasNewPlace: false })} />
            <Radio id={`${id}-other`} name={`${id}-place`} label={t("Another name and address")} isChecked={choices.hasNewPlace} onChange={() => set({ hasNewPlace: true })} />
          </FormGroup>
          {choices.hasNewPlace && (
            <>
              <FormGroup label={t("Name of the new node")} fieldId={`${id}-name`} isRequired>
                <TextInput id={`${id}-name`} value={choices.name} isRequired onChange={(_, typed) => set({ name: typed })} />
              </FormGroup>
              <FormGroup label={t("IP address of the new node")} fieldId={`${id}-address`} isRequired>
                <TextInput id={`${id}-address`} value={choices.address} isRequired onChange={(_, typed) => set({ address: typed })} />
              </FormGroup>
            </>
          )}
          <FormGroup fieldId={`${id}-unwanted`}>
            <Checkbox id={`${id}-unwanted`} label={t("The node leaves although it is healthy")} isChecked={choices.isUnwanted} onChange={(_, isChecked) => set({ isUnwanted: isChecked })}
              description={isReady ? t("This node is ready: without this choice, its replacement is refused as long as its member of etcd is healthy.") : undefined} />
          </FormGroup>
          {others.length > 0 && (
            <FormGroup label={t("Other nodes that are lost")} role="group" isStack>
              {others.map((one) => <Lost key={one.node} id={id} node={one} lost={choices.alsoLost} set={(alsoLost) => set({ alsoLost })} />)}
              <FormHelperText>
                <HelperText><HelperTextItem>{t("Their members leave etcd, too, before the new one joins. They are replaced later, one by one.")}</HelperTextItem></HelperText>
              </FormHelperText>
            </FormGroup>
          )}
        </Form>
        {state instanceof ApiError && <Failure error={state} />}
        {typeof state === "object" && "plan" in state && (
          <section aria-label={t("Plan")} className="atoll-row atoll-content">
            <Content component="h2">{t("Plan")}</Content>
            <PlanView plan={state.plan} />
            <Content component="h2">{t("Replace it")}</Content>
            <RunCommand cluster={cluster} params={state.params} />
          </section>
        )}
      </ModalBody>
      <ModalFooter>
        <Button type="submit" form={id} isDisabled={!isComplete(choices) || state === "planning"} isLoading={state === "planning"}>{t("Show the plan")}</Button>
        <Button variant="link" onClick={close}>{t("Close")}</Button>
      </ModalFooter>
    </Modal>
  );
}

interface LostProps {
  id: string;
  node: ClusterNode;
  lost: string[];
  set: (lost: string[]) => void;
}

function Lost({ id, node: { node, is_ready: isReady }, lost, set }: LostProps) {
  const { t } = useTranslation();
  const name = node ?? "";
  return (
    <Checkbox id={`${id}-lost-${name}`} label={isReady ? `${name} (${t("Ready")})` : name} isChecked={lost.includes(name)}
      onChange={(_, isChecked) => set(isChecked ? [...lost, name] : lost.filter((one) => one !== name))} />
  );
}
