// Tests in a browser: each file has a site of its own, two run at a time, as many as a small machine has cores for.

import { defineConfig } from "vitest/config";

/** No test is about time: only one that hangs ends by this. Units: milliseconds. */
const LIMIT = 10 * 60_000;

export default defineConfig({
  test: {
    environment: "node",
    include: ["tests/**/*.test.ts"],
    maxWorkers: 2,
    minWorkers: 2,
    testTimeout: LIMIT,
    hookTimeout: LIMIT,
    // Chromium breaks off requests when the machine's network changes, as by containers of other programs.
    retry: 1,
    disableConsoleIntercept: true,
  },
});
