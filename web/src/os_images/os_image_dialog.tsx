// The dialog that adds an OS image, or replaces an added one.

import {
  Alert, Button, Form, FormGroup, FormHelperText, FormSelect, FormSelectOption, HelperText, HelperTextItem, Modal, ModalBody, ModalFooter,
  ModalHeader, TextInput,
} from "@patternfly/react-core";
import { type FormEvent, useId, useState } from "react";
import { useTranslation } from "react-i18next";
import { type ApiError, asApiError, send } from "../api/client";
import { correctable } from "../api/refusal";
import { Failure } from "../components/loaded";
import { ARCHITECTURES, OS_IMAGES, type OsImage, type OsImageParams, onOffer, wrongMembers } from "./records";

interface Props {
  /** All OS images on offer. */
  images: OsImage[];
  close: () => void;
  /** Is called after the change. */
  done: () => void;
}

const EMPTY: OsImageParams = { openshift_version: "", cpu_architecture: "x86_64", version: "", url: "", sha256: "" };

const FIELDS = [
  { member: "openshift_version", title: "Version", example: "4.18", help: "Of the platform: the minor version, as in 4.18." },
  { member: "version", title: "Operating system", example: "418.94.202511191518-0", help: "The version that the volume id of the image has." },
  {
    member: "url", title: "Address of the live ISO", example: "https://files.example.org/rhcos-live.x86_64.iso",
    help: "As the image service reaches it: https, http, oci for images in registries, or file. Without a login.",
  },
  { member: "sha256", title: "SHA-256 of the live ISO", example: "", help: "Downloads of other content are refused. Empty: they are not compared." },
] as const;

type State = "editing" | "running" | ApiError;

export function OsImageDialog({ images, close, done }: Props) {
  const { t } = useTranslation();
  const id = useId();
  const [typed, setTyped] = useState(EMPTY);
  const [state, setState] = useState<State>("editing");
  const action = t("Add an OS image");
  const set = (members: Partial<OsImageParams>) => {
    setTyped({ ...typed, ...members });
    setState("editing");
  };
  // Pasted values have blanks around them.
  const params = Object.fromEntries(Object.entries(typed).map(([name, value]) => [name, value.trim()])) as unknown as OsImageParams;
  const wrong = wrongMembers(params);
  const present = onOffer(images, params);
  const isOfSettings = present !== undefined && !present.is_added;
  const isComplete = wrong.length === 0 && !isOfSettings;
  const add = async (event: FormEvent) => {
    event.preventDefault();
    if (!isComplete || state === "running") return;
    setState("running");
    try {
      await send("POST", OS_IMAGES, params);
      done();
      close();
    } catch (error) {
      setState(correctable(asApiError(error)));
    }
  };
  return (
    <Modal isOpen variant="medium" onClose={close} aria-label={action}>
      <ModalHeader title={action} />
      <ModalBody tabIndex={0} role="region" aria-label={action}>
        <Form id={id} onSubmit={(event) => void add(event)}>
          {FIELDS.map(({ member, title, example, help }) => {
            const isWrong = params[member] !== "" && wrong.includes(member);
            return (
              <FormGroup key={member} label={t(title)} fieldId={`${id}-${member}`} isRequired={member !== "sha256"}>
                <TextInput id={`${id}-${member}`} value={typed[member]} isRequired={member !== "sha256"} placeholder={example} aria-describedby={`${id}-${member}-help`}
                  {...(isWrong && { validated: "error" as const })} onChange={(_, value) => set({ [member]: value })} />
                <FormHelperText>
                  <HelperText id={`${id}-${member}-help`} isLiveRegion><HelperTextItem variant={isWrong ? "error" : "default"}>{t(help)}</HelperTextItem></HelperText>
                </FormHelperText>
              </FormGroup>
            );
          })}
          <FormGroup label={t("Architecture")} fieldId={`${id}-architecture`}>
            <FormSelect id={`${id}-architecture`} value={typed.cpu_architecture} onChange={(_, value) => set({ cpu_architecture: value })}>
              {ARCHITECTURES.map((one) => <FormSelectOption key={one} value={one} label={one} />)}
            </FormSelect>
          </FormGroup>
        </Form>
        {isOfSettings && (
          <Alert isInline variant="warning" variantLabel={t("Warning")} title={t("This OS image is one of the settings")}>
            {t("Change it in OS_IMAGES, or in the file of OS_IMAGES_FILE.")}
          </Alert>
        )}
        {present?.is_added && (
          <Alert isInline variant="info" variantLabel={t("Info")} title={t("This OS image is on offer already: it is replaced.")} />
        )}
        {typeof state === "object" && <Failure error={state} />}
      </ModalBody>
      <ModalFooter>
        <Button type="submit" form={id} isDisabled={!isComplete || state === "running"} isLoading={state === "running"}>{action}</Button>
        <Button variant="link" onClick={close}>{t("Close")}</Button>
      </ModalFooter>
    </Modal>
  );
}
