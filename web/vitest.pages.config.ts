// Tests in a browser against a site of their own: one after the other, since each starts a site.

import { defineConfig } from "vitest/config";

/** No test is about time: only one that hangs ends by this. Units: milliseconds. */
const LIMIT = 10 * 60_000;

export default defineConfig({
  test: {
    environment: "node",
    include: ["tests/**/*.test.ts"],
    fileParallelism: false,
    maxWorkers: 1,
    minWorkers: 1,
    testTimeout: LIMIT,
    hookTimeout: LIMIT,
    // Chromium breaks off requests when the machine's network changes, as by containers of other programs.
    retry: 1,
    disableConsoleIntercept: true,
  },
});
