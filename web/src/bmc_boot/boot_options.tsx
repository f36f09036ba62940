// Options of boots: the medium, the type of the image, the ejection after the installation.

import { Checkbox, FormGroup, FormSelect, FormSelectOption } from "@patternfly/react-core";
import { useTranslation } from "react-i18next";
import type { BmcBootValues } from "./form_values";
import type { BmcBootMedium } from "./records";

interface Props {
  values: BmcBootValues;
  /** Type of the infra-env's image. */
  imageType: string | undefined;
  set: (members: Partial<BmcBootValues>) => void;
}

export function BootOptions({ values: { medium, imageType: chosenType, ejects }, imageType, set }: Props) {
  const { t } = useTranslation();
  const standard = t("That of the discovery image");
  return (
    <>
      <FormGroup label={t("Medium")} fieldId="medium">
        <FormSelect id="medium" value={medium} onChange={(_, chosen) => set({ medium: chosen as BmcBootMedium })}>
          <FormSelectOption value="virtual-media" label={t("Virtual media")} />
          <FormSelectOption value="uefi-http" label={t("UEFI HTTP boot")} />
        </FormSelect>
      </FormGroup>
      <FormGroup label={t("Image type")} fieldId="image-type">
        <FormSelect id="image-type" value={chosenType} onChange={(_, chosen) => set({ imageType: chosen })}>
          <FormSelectOption value="" label={imageType ? `${standard} (${imageType})` : standard} />
          <FormSelectOption value="full-iso" label={`${t("Full image")} (full-iso)`} />
          <FormSelectOption value="minimal-iso" label={`${t("Minimal image: the host downloads its root file system")} (minimal-iso)`} />
        </FormSelect>
      </FormGroup>
      <FormGroup fieldId="ejects">
        <Checkbox id="ejects" label={t("Eject the medium after the installation")} isChecked={ejects} onChange={(_, isChecked) => set({ ejects: isChecked })}
          description={t("Until then, the API server keeps the credentials in its memory. The boot order is checked, too.")} />
      </FormGroup>
    </>
  );
}
