// Whether a form of the library is saved: its handlers catch failures themselves, so its requests are watched.

import type { AxiosInstance } from "axios";

let pending = 0;
let succeeded = 0;
let failed = 0;
let waiting: (() => void)[] = [];

function end(): void {
  pending -= 1;
  if (pending > 0) return;
  for (const proceed of waiting) proceed();
  waiting = [];
}

const isChange = (method: string | undefined) => method !== undefined && method.toLowerCase() !== "get";

/** Watches the changes that a client sends. */
export function watchChanges(client: AxiosInstance): void {
  client.interceptors.request.use((config) => {
    if (isChange(config.method)) pending += 1;
    return config;
  });
  client.interceptors.response.use((response) => {
    if (isChange(response.config.method)) {
      succeeded += 1;
      end();
    }
    return response;
  }, (error: { config?: { method?: string } }) => {
    if (isChange(error.config?.method)) {
      failed += 1;
      end();
    }
    throw error;
  });
}

/** Begins to watch; the returned function waits for the changes that were begun, and says whether all of them succeeded. */
export function watchSaving(): () => Promise<boolean> {
  const before = { succeeded, failed };
  return async () => {
    // Some handlers do not wait for their requests.
    await new Promise((proceed) => setTimeout(proceed));
    if (pending > 0) await new Promise<void>((proceed) => waiting.push(proceed));
    return failed === before.failed && succeeded > before.succeeded;
  };
}
