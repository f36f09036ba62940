import { Button, EmptyState, EmptyStateActions, EmptyStateBody, EmptyStateFooter } from "@patternfly/react-core";
import { useTranslation } from "react-i18next";
import { Link } from "react-router-dom-v5-compat";

export function NotFound() {
  const { t } = useTranslation();
  return (
    <EmptyState titleText={t("There is no such page.")} headingLevel="h1">
      <EmptyStateBody>{t("The address may be mistyped, or of an older version.")}</EmptyStateBody>
      <EmptyStateFooter>
        <EmptyStateActions>
          <Button component={(props) => <Link {...props} to="/" />}>{t("Overview")}</Button>
        </EmptyStateActions>
      </EmptyStateFooter>
    </EmptyState>
  );
}
