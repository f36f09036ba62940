// The button that leads from missing content to the page that carries it in.

import { Button } from "@patternfly/react-core";
import { useTranslation } from "react-i18next";
import { Link } from "react-router-dom-v5-compat";

export function CarryInLink() {
  const { t } = useTranslation();
  return <Button variant="secondary" component={(props) => <Link {...props} to="/carry-in" />}>{t("Carry in archives")}</Button>;
}
