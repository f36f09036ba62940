// The way to the boots by BMCs, among those to boot a discovery image; none on a server without them.

import { DescriptionListDescription, DescriptionListGroup, DescriptionListTerm } from "@patternfly/react-core";
import { useTranslation } from "react-i18next";
import { Link } from "react-router-dom-v5-compat";
import { useBoots } from "./boots";
import { isUnderWay } from "./records";

export function BootLink({ infraEnv }: { infraEnv: string }) {
  const { t } = useTranslation();
  const { data } = useBoots(infraEnv);
  // Also for people that may not read them.
  if (data === undefined) return null;
  const count = data.hosts.filter(isUnderWay).length;
  return (
    <DescriptionListGroup>
      <DescriptionListTerm>{t("BMCs")}</DescriptionListTerm>
      <DescriptionListDescription>
        <Link to={`/infra-envs/${infraEnv}/bmc-boot`}>{t("Boot hosts by their BMCs")}</Link>
        {count > 0 && <> · {t("Under way: {{count}}", { count })}</>}
      </DescriptionListDescription>
    </DescriptionListGroup>
  );
}
