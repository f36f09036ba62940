// The part of @sentry/browser that the library calls. There is no service to report to inside an air gap.

export function captureException(): void {}

export function captureMessage(): void {}
