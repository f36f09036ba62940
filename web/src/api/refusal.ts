// Refusals that a person can correct: their reason names the value, or the limit.

import { ApiError } from "./client";

/** The failure, with the remedy of a refusal if it is one. */
export function correctable(error: ApiError): ApiError {
  if (error.status !== 400 && error.status !== 409) return error;
  return new ApiError(error.message, "Correct the cause, then try again.", error.status, error.values);
}
