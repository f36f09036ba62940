// The link that leads to a rehearsal before an installation.

import { Button } from "@patternfly/react-core";
import { useTranslation } from "react-i18next";
import { Link } from "react-router-dom-v5-compat";

export function RehearseLink() {
  const { t } = useTranslation();
  return <Button variant="link" component={(props) => <Link {...props} to="/rehearsal" />}>{t("Rehearse the installation first")}</Button>;
}
