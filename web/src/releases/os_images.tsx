// OS images: how they are changed, which this page cannot do.

import { Card, CardBody, CardTitle, Content } from "@patternfly/react-core";
import { useTranslation } from "react-i18next";

export function OsImages() {
  const { t } = useTranslation();
  return (
    <Card>
      <CardTitle component="h2">{t("OS images")}</CardTitle>
      <CardBody>
        <Content component="p">{t("Discovery images are made of OS images. A release needs one of its minor version and architecture.")}</Content>
        <Content component="p">{t("The file of OS_IMAGES_FILE lists them. API server and image service follow it without a restart. Where archives have OS images, the results of their publication have the entries: boot-images/os-images.json.")}</Content>
      </CardBody>
    </Card>
  );
}
