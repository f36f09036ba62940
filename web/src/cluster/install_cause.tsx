// Why a cluster cannot be installed yet, beside the button.

import { useTranslation } from "react-i18next";
import type { Cluster } from "../api/records";
import { Reason } from "../components/reason";
import { FixLink } from "../mistakes/fix_link";
import { mistakesIn } from "./installation";

export function InstallCause({ cluster, id }: { cluster: Cluster; id: string }) {
  const { t } = useTranslation();
  const mistakes = mistakesIn(cluster).filter(({ first }) => !first.isWarning);
  const [mistake] = mistakes;
  return (
    <div id={id} className="atoll-cause">
      {mistake && mistake.hosts.length > 0 && <>{mistake.hosts.length === 1 ? mistake.hosts[0] : t("{{count}} hosts", { count: mistake.hosts.length })}: </>}
      <Reason text={mistake?.first.observed ?? cluster.status_info ?? t("Some checks have no result yet: wait for the hosts.")} />{" "}
      <FixLink topic={mistake?.topic} cluster={cluster.id} />
      {mistakes.length > 1 && <div className="atoll-muted">{t("and {{count}} more", { count: mistakes.length - 1 })}</div>}
    </div>
  );
}
