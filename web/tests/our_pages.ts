// Every page of ours, and parts of the cluster's page.

import { CLUSTER_ID, INFRA_ENV_ID, INSTALLED_ID, REHEARSAL_ID } from "./made_up";

export interface OurPage {
  name: string;
  path: string;
  heading: string;
  /** Shows nothing of the API. */
  isStatic?: boolean;
}

export const PAGES: OurPage[] = [
  { name: "overview", path: "/", heading: "Overview" },
  { name: "clusters", path: "/clusters", heading: "Clusters" },
  { name: "cluster", path: `/clusters/${CLUSTER_ID}`, heading: "cluster-1" },
  { name: "cluster-hosts", path: `/clusters/${CLUSTER_ID}?tab=hosts`, heading: "cluster-1" },
  { name: "cluster-connections", path: `/clusters/${CLUSTER_ID}?tab=connections`, heading: "cluster-1" },
  { name: "cluster-images", path: `/clusters/${CLUSTER_ID}?tab=images`, heading: "cluster-1" },
  { name: "cluster-nodes", path: `/clusters/${INSTALLED_ID}?tab=nodes`, heading: "cluster-3" },
  { name: "rehearsal", path: "/rehearsal", heading: "Rehearsal" },
  { name: "rehearsal-result", path: `/rehearsal?job=${REHEARSAL_ID}`, heading: "Rehearsal" },
  { name: "infra-envs", path: "/infra-envs", heading: "Discovery images" },
  { name: "bmc-boot", path: `/infra-envs/${INFRA_ENV_ID}/bmc-boot`, heading: "Boot hosts by their BMCs" },
  { name: "events", path: "/events", heading: "Events" },
  { name: "readiness", path: "/readiness", heading: "Readiness" },
  { name: "versions", path: "/versions", heading: "Versions" },
  { name: "certificates", path: "/certificates", heading: "Certificates", isStatic: true },
  { name: "catalogs", path: "/catalogs", heading: "Operator catalogs", isStatic: true },
  { name: "carry-in", path: "/carry-in", heading: "Carry in" },
  { name: "mirror-plan", path: "/mirror-plan", heading: "Mirror plan", isStatic: true },
  { name: "support", path: "/support", heading: "Support report", isStatic: true },
  { name: "pull-secret", path: "/pull-secret", heading: "Pull secret", isStatic: true },
  { name: "help", path: "/help", heading: "Help", isStatic: true },
  { name: "not-found", path: "/nowhere", heading: "There is no such page.", isStatic: true },
];
