// The dialog that adds a release image, or changes an added one.

import {
  Alert, Button, Form, FormGroup, FormHelperText, FormSelect, FormSelectOption, HelperText, HelperTextItem, Modal, ModalBody, ModalFooter,
  ModalHeader, Switch, TextInput,
} from "@patternfly/react-core";
import { type FormEvent, useId, useState } from "react";
import { useTranslation } from "react-i18next";
import { type ApiError, asApiError, send } from "../api/client";
import { correctable } from "../api/refusal";
import { useServices } from "../api/site";
import { Failure } from "../components/loaded";
import { ARCHITECTURES, RELEASE_IMAGES, type ReleaseImage, type ReleaseImageParams, architecture, isImage, isVersion, onOffer } from "./records";
import { Suggestions } from "./suggestion_list";

interface Props {
  /** All release images on offer. */
  images: ReleaseImage[];
  /** The added one that is changed; none: one is added. */
  changed?: ReleaseImage;
  close: () => void;
  /** Is called after the change. */
  done: () => void;
}

const EMPTY: ReleaseImageParams = { version: "", cpu_architecture: "x86_64", url: "", default: false };

type State = "editing" | "running" | ApiError;

export function ReleaseDialog({ images, changed, close, done }: Props) {
  const { t } = useTranslation();
  const id = useId();
  const hasRegistry = useServices()?.registry_api === true;
  const [params, setParams] = useState<ReleaseImageParams>(() => (changed ? paramsOf(changed) : EMPTY));
  const [state, setState] = useState<State>("editing");
  const title = changed ? t("Change the release") : t("Add a release");
  const set = (members: Partial<ReleaseImageParams>) => {
    setParams({ ...params, ...members });
    setState("editing");
  };
  // Pasted values have blanks around them.
  const [version, url] = [params.version.trim(), params.url.trim()];
  const present = changed ? undefined : onOffer(images, { ...params, version });
  const isOfSettings = present !== undefined && !present.is_added;
  const isComplete = isVersion(version) && isImage(url) && !isOfSettings;
  const add = async (event: FormEvent) => {
    event.preventDefault();
    if (!isComplete || state === "running") return;
    setState("running");
    try {
      await send("POST", RELEASE_IMAGES, { ...params, version, url });
      done();
      close();
    } catch (error) {
      setState(correctable(asApiError(error)));
    }
  };
  return (
    <Modal isOpen variant="medium" onClose={close} aria-label={title}>
      <ModalHeader title={title} />
      <ModalBody tabIndex={0} role="region" aria-label={title}>
        {/* Beside the form: a login is a form, too. */}
        {!changed && hasRegistry && (
          <Suggestions images={images} choose={(release) => set({ version: release.version, cpu_architecture: release.cpu_architecture, url: release.url })} />
        )}
        <Form id={id} onSubmit={(event) => void add(event)}>
          <FormGroup label={t("Version")} fieldId={`${id}-version`} isRequired>
            <TextInput id={`${id}-version`} value={params.version} isRequired isDisabled={changed !== undefined} placeholder="4.18.9" aria-describedby={`${id}-version-help`}
              {...(version !== "" && !isVersion(version) && { validated: "error" as const })} onChange={(_, value) => set({ version: value })} />
            <Help id={`${id}-version-help`} isWrong={version !== "" && !isVersion(version)} text={t("The full version, as in 4.18.9; that of a release of several architectures ends with -multi.")} />
          </FormGroup>
          <FormGroup label={t("Architecture")} fieldId={`${id}-architecture`}>
            <FormSelect id={`${id}-architecture`} value={architecture(params.cpu_architecture)} isDisabled={changed !== undefined} onChange={(_, value) => set({ cpu_architecture: value })}>
              {ARCHITECTURES.map((one) => <FormSelectOption key={one} value={one} label={one} />)}
            </FormSelect>
          </FormGroup>
          <FormGroup label={t("Image")} fieldId={`${id}-url`} isRequired>
            <TextInput id={`${id}-url`} value={params.url} isRequired placeholder="registry.example.org:5000/openshift/release-images:4.18.9-x86_64" aria-describedby={`${id}-url-help`}
              {...(url !== "" && !isImage(url) && { validated: "error" as const })} onChange={(_, value) => set({ url: value })} />
            <Help id={`${id}-url-help`} isWrong={url !== "" && !isImage(url)} text={t("As hosts reach it: the registry with its port, the repository, and a tag or digest.")} />
          </FormGroup>
          <FormGroup fieldId={`${id}-default`}>
            <Switch id={`${id}-default`} label={t("Default")} isChecked={params.default} onChange={(_, isChecked) => set({ default: isChecked })} aria-describedby={`${id}-default-help`} />
            <Help id={`${id}-default-help`} text={t("The version that new clusters start with, in place of the present default.")} />
          </FormGroup>
        </Form>
        {isOfSettings && (
          <Alert isInline variant="warning" variantLabel={t("Warning")} title={t("This release is one of the settings")}>
            {t("Change it in RELEASE_IMAGES of the API server, and restart the server.")}
          </Alert>
        )}
        {present?.is_added && (
          <Alert isInline variant="info" variantLabel={t("Info")} title={t("This release is on offer already: its image is replaced.")} />
        )}
        {typeof state === "object" && <Failure error={state} />}
      </ModalBody>
      <ModalFooter>
        <Button type="submit" form={id} isDisabled={!isComplete || state === "running"} isLoading={state === "running"}>{title}</Button>
        <Button variant="link" onClick={close}>{t("Close")}</Button>
      </ModalFooter>
    </Modal>
  );
}

function paramsOf({ version, cpu_architecture, url, default: isDefault = false }: ReleaseImage): ReleaseImageParams {
  return { version, cpu_architecture, url, default: isDefault };
}

function Help({ id, text, isWrong = false }: { id: string; text: string; isWrong?: boolean }) {
  return (
    <FormHelperText>
      <HelperText id={id} isLiveRegion><HelperTextItem variant={isWrong ? "error" : "default"}>{text}</HelperTextItem></HelperText>
    </FormHelperText>
  );
}
