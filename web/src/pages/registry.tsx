// The registry of the site: its repositories, its maintenance, and how its users are made.

import { Tab, TabContent, TabTitleText, Tabs } from "@patternfly/react-core";
import { useTranslation } from "react-i18next";
import { useSearchParams } from "react-router-dom-v5-compat";
import { useServices } from "../api/site";
import { PageFrame } from "../components/page";
import { Account } from "../registry/log_in";
import { Maintenance } from "../registry/maintenance";
import { Repositories } from "../registry/repositories";
import { Users } from "../registry/users";

const TABS = ["repositories", "maintenance", "users"] as const;
type TabId = (typeof TABS)[number];

export default function Registry() {
  const { t } = useTranslation();
  const services = useServices();
  const [parameters, setParameters] = useSearchParams();
  const wanted = parameters.get("tab") as TabId | null;
  const tab = wanted && TABS.includes(wanted) ? wanted : "repositories";
  const titles: Record<TabId, string> = { repositories: t("Repositories"), maintenance: t("Maintenance"), users: t("Users") };
  return (
    <PageFrame title={t("Registry")}
      actions={(
        <>
          {services?.registry && <a href={services.registry}>{t("The registry's own pages")}</a>}
          <Account />
        </>
      )}>
      <Tabs activeKey={tab} onSelect={(_, key) => setParameters({ tab: String(key) }, { replace: true })} aria-label={t("Parts of the registry")}>
        {TABS.map((one) => <Tab key={one} eventKey={one} title={<TabTitleText>{titles[one]}</TabTitleText>} tabContentId={`tab-${one}`} />)}
      </Tabs>
      <TabContent id={`tab-${tab}`} activeKey={tab} eventKey={tab} aria-label={titles[tab]}>
        {tab === "repositories" && <Repositories />}
        {tab === "maintenance" && <Maintenance />}
        {tab === "users" && <Users url={services?.registry} />}
      </TabContent>
    </PageFrame>
  );
}
