// The library's pages: clusters, wizard, hosts, networking, operators, review, progress, added hosts.

import { Config, Features, UILibRoutes } from "@openshift-assisted/ui-lib/ocm";
import { useEffect, useState } from "react";
import { addLibraryTexts } from "../i18n";

/** Root of the library's pages, which it fixes itself. */
export const ROOT = "/assisted-installer";

Config.setRouteBasePath(ROOT);

export default function Wizard() {
  const [isReady, setReady] = useState(false);
  useEffect(() => {
    void addLibraryTexts().then(() => setReady(true));
  }, []);
  return isReady ? <UILibRoutes allEnabledFeatures={Features.STANDALONE_DEPLOYMENT_ENABLED_FEATURES} /> : null;
}
