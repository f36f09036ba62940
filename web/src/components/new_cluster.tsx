// The button that opens the wizard. A module of its own: pages without tables do not load those of the clusters' page.

import { Button } from "@patternfly/react-core";
import { useTranslation } from "react-i18next";
import { Link } from "react-router-dom-v5-compat";

export function NewCluster() {
  const { t } = useTranslation();
  return <Button component={(props) => <Link {...props} to="/assisted-installer/clusters/~new" />}>{t("Create a cluster")}</Button>;
}
