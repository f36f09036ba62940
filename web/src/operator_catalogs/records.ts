// Operator catalogs of the registry: records of the installer API.

export const OPERATOR_CATALOGS = "/operator-catalogs";

export interface OperatorCatalog {
  /** Minor version of the clusters that get it. */
  openshift_version: string;
  image: string;
  /** Repositories that its operators name and the registry has not. */
  missing_repositories: number;
  /** An image of each of the first ones. */
  missing?: string[];
}
