import { expect, test } from "vitest";
import { ApiError, CAUSES } from "../api/client";
import { clusterFailure } from "./resources";

test.each([
  [409, "the cluster has no kubeconfig", /kubeconfig/],
  [503, "the cluster's API is not available now", /Check that the cluster runs/],
  [504, CAUSES[504]![0], /Check that the cluster runs/],
  [503, CAUSES[503]![0], /as it was/],
  [403, "not yours", /as it was/],
])("%s %s", (status, message, remedy) => {
  const failure = clusterFailure(new ApiError(message, "as it was", status));
  expect([failure.message, failure.status]).toEqual([message, status]);
  expect(failure.remedy).toMatch(remedy);
});
