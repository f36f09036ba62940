import { fileURLToPath } from "node:url";
import { defineConfig } from "vite";
import { accessibility } from "./build/accessibility";
import { brand } from "./build/brand";
import { drafts } from "./build/drafts";
import { notices } from "./build/notices";
import { patternflyLabels } from "./build/patternfly";
import { precompress } from "./build/precompress";
import { wizard } from "./build/wizard";

const file = (path: string) => fileURLToPath(new URL(path, import.meta.url));

/** Units: milliseconds. */
const LIMIT = 10 * 60_000;

export default defineConfig({
  plugins: [accessibility(), drafts(), wizard(), patternflyLabels(), brand(), notices(), precompress()],
  resolve: {
    // The library's sources: as modules of ES they leave out what is not used, its CommonJS build does not.
    conditions: ["source", "module", "browser", "production"],
    alias: {
      // For the sources that the build patches.
      "atoll-wizard": file("src/wizard"),
      "atoll-components": file("src/components"),
      "@sentry/browser": file("src/wizard/no_telemetry.ts"),
      "@patternfly/react-code-editor": file("src/wizard/code_editor.tsx"),
    },
    dedupe: ["react", "react-dom", "react-router-dom-v5-compat", "i18next", "react-i18next"],
  },
  define: { "process.env": {}, global: "globalThis" },
  build: {
    target: "es2022",
    outDir: "../target/web",
    emptyOutDir: true,
    // Inlined images are `data:` URLs, which the page's security policy has no rule for.
    assetsInlineLimit: 0,
    // The wizard is large and loaded when it is opened; the shell's size is checked by a test.
    chunkSizeWarningLimit: 2000,
    modulePreload: { polyfill: false },
  },
  server: { proxy: { "/api": "http://127.0.0.1:8090", "/services": "http://127.0.0.1:8080", "/status": "http://127.0.0.1:8080" } },
  // No test is about time: only one that hangs ends by the limit.
  test: { environment: "jsdom", include: ["src/**/*.test.{ts,tsx}", "build/**/*.test.ts"], testTimeout: LIMIT, hookTimeout: LIMIT },
} as Parameters<typeof defineConfig>[0]);
