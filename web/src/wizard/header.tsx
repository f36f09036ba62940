// Heading of the wizard's pages.

import { Content } from "@patternfly/react-core";
import { useTranslation } from "react-i18next";
import { Link } from "react-router-dom-v5-compat";

export function AssistedInstallerHeader({ name }: { name?: string }) {
  const { t } = useTranslation();
  return (
    <>
      <Content component="h1">{name ?? t("Create a cluster")}</Content>
      <Link to="/help#start">{t("From nothing to a cluster")}</Link>
    </>
  );
}
