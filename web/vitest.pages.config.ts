// Tests in a browser: each file has a site of its own, three run at a time: two leave half of two cores idle.

import { defineConfig } from "vitest/config";
import { BaseSequencer, type TestSpecification } from "vitest/node";

/** No test is about time: only one that hangs ends by this. Units: milliseconds. */
const LIMIT = 4 * 60_000;

/** Files that take most of a minute and more, longest first. */
const LONG = ["pages", "dialogs", "states", "rehearsal", "journey", "carry_in"];

/** The long ones start first, so that no worker waits for one of them at the end. */
class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const rank = ({ moduleId }: TestSpecification) => {
      const place = LONG.findIndex((name) => moduleId.endsWith(`/${name}.test.ts`));
      return place < 0 ? LONG.length : place;
    };
    return files.toSorted((one, other) => rank(one) - rank(other));
  }
}

export default defineConfig({
  test: {
    environment: "node",
    include: ["tests/**/*.test.ts"],
    sequence: { sequencer: LongestFirst },
    maxWorkers: 3,
    minWorkers: 3,
    testTimeout: LIMIT,
    hookTimeout: LIMIT,
    // Chromium breaks off requests when the machine's network changes, as by containers of other programs.
    retry: 1,
    disableConsoleIntercept: true,
  },
});
