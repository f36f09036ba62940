// The table of pages: path, title and place in the navigation; each is loaded when it is opened.

import { type ComponentType, lazy } from "react";
import type { SiteServices } from "../api/site";

export interface PageRoute {
  path: string;
  title: string;
  /** Group of the navigation; none: the page is reached from others. */
  group?: (typeof GROUPS)[number];
  /** The service without which the page is not in the navigation. */
  needs?: keyof SiteServices;
  component: ComponentType;
}

/** Groups of the navigation, in their order. */
export const GROUPS = ["Site", "Installation", "Content"] as const;

export const ROUTES: PageRoute[] = [
  { path: "/", title: "Overview", group: "Site", component: lazy(() => import("./overview")) },
  { path: "/clusters", title: "Clusters", group: "Installation", component: lazy(() => import("./clusters")) },
  { path: "/clusters/:id", title: "Cluster", component: lazy(() => import("./cluster")) },
  { path: "/rehearsal", title: "Rehearsal", group: "Installation", component: lazy(() => import("./rehearsal")) },
  { path: "/infra-envs", title: "Discovery images", group: "Installation", component: lazy(() => import("./infra_envs")) },
  { path: "/infra-envs/:id/bmc-boot", title: "Boot hosts by their BMCs", component: lazy(() => import("./bmc_boot")) },
  { path: "/events", title: "Events", group: "Installation", component: lazy(() => import("./events")) },
  { path: "/readiness", title: "Readiness", group: "Site", component: lazy(() => import("./readiness")) },
  { path: "/catalogs", title: "Operator catalogs", group: "Content", needs: "catalogs", component: lazy(() => import("./catalogs")) },
  { path: "/catalogs/:catalog/:package", title: "Operator", component: lazy(() => import("./operator")) },
  { path: "/registry", title: "Registry", group: "Content", needs: "registry_api", component: lazy(() => import("./registry")) },
  { path: "/registry/*", title: "Image", component: lazy(() => import("./registry_image")) },
  { path: "/carry-in", title: "Carry in", group: "Content", component: lazy(() => import("./carry_in")) },
  { path: "/mirror-plan", title: "Mirror plan", group: "Content", component: lazy(() => import("./mirror_plan")) },
  { path: "/versions", title: "Versions", group: "Content", component: lazy(() => import("./versions")) },
  { path: "/pull-secret", title: "Pull secret", group: "Content", component: lazy(() => import("./pull_secret")) },
  { path: "/certificates", title: "Certificates", group: "Site", needs: "registry_ca", component: lazy(() => import("./certificates")) },
  { path: "/support", title: "Support report", group: "Site", component: lazy(() => import("./support")) },
  { path: "/help", title: "Help", group: "Site", component: lazy(() => import("./help")) },
];
