// The library's pages: clusters, wizard, hosts, networking, operators, review, progress, added hosts.

import { Api, Config, Features, UILibRoutes } from "@openshift-assisted/ui-lib/ocm";
import { useEffect, useState } from "react";
import { useTranslation } from "react-i18next";
import { addLibraryTexts } from "../i18n";
import { watchChanges } from "./saving";

/** Root of the library's pages, which it fixes itself. */
export const ROOT = "/assisted-installer";

Config.setRouteBasePath(ROOT);
for (const client of [Api.client, Api.clientWithoutCaseConverter]) watchChanges(client);

export default function Wizard() {
  const { t } = useTranslation();
  const [isReady, setReady] = useState(false);
  useEffect(() => {
    // The library does not name its pages.
    document.title = `${t("Clusters")} · Atoll`;
    void addLibraryTexts().then(() => setReady(true));
  }, []);
  return isReady ? <UILibRoutes allEnabledFeatures={Features.STANDALONE_DEPLOYMENT_ENABLED_FEATURES} /> : null;
}
