// The boots of an infra-env: read often while one moves.

import { type Resource, useResource } from "../api/resource";
import { type BmcBootList, bmcBootPath, isMoving } from "./records";

/** While a boot moves. Units: milliseconds. */
const REFRESH_MOVING = 2_000;
/** Boots that others start appear after this time. Units: milliseconds. */
const REFRESH = 20_000;

const refresh = ({ hosts }: BmcBootList) => (hosts.some(isMoving) ? REFRESH_MOVING : REFRESH);

export function useBoots(infraEnv: string): Resource<BmcBootList> {
  return useResource<BmcBootList>(bmcBootPath(infraEnv), refresh);
}
