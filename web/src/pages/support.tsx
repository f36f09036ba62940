// The support report: the site's state as one file, which a person reads before it is sent. Members that may hold secrets
// are left out.

import { Button, Checkbox, Content, Form } from "@patternfly/react-core";
import { useState } from "react";
import { useTranslation } from "react-i18next";
import { ApiError, get, serviceTime } from "../api/client";
import { download } from "../components/download";
import { PageFrame } from "../components/page";

/** Parts of the report: their paths in the installer API. */
const PARTS: { id: string; title: string; path: string }[] = [
  { id: "component_versions", title: "Versions of the services", path: "/component-versions" },
  { id: "openshift_versions", title: "Versions of clusters", path: "/openshift-versions" },
  { id: "checks", title: "Checks of the site", path: "/doctor" },
  { id: "explanations", title: "Causes of what is not ready", path: "/explain?limit=100" },
  { id: "clusters", title: "Clusters with their hosts", path: "/clusters/?with_hosts=true" },
  { id: "infra_envs", title: "Discovery images", path: "/infra-envs/" },
  { id: "events", title: "The last 1000 events", path: "/events?order=descending&limit=1000" },
];
/** Members that are left out wherever they are: links with tokens, proxies with passwords, configurations, keys, names. */
const LEFT_OUT = new Set([
  "download_url", "http_proxy", "https_proxy", "proxy", "ignition_config_override", "ignition_config_overrides",
  "ignition_endpoint", "install_config_overrides", "installer_args", "kernel_arguments", "static_network_config",
  "ssh_authorized_key", "ssh_public_key", "user_name",
]);

/** The same value without members that are left out. */
export function withoutPrivate(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(withoutPrivate);
  if (typeof value !== "object" || value === null) return value;
  const kept = Object.entries(value).filter(([name]) => !LEFT_OUT.has(name));
  return Object.fromEntries(kept.map(([name, member]) => [name, withoutPrivate(member)]));
}

export default function Support() {
  const { t } = useTranslation();
  const [chosen, setChosen] = useState(() => new Set(PARTS.map(({ id }) => id)));
  const [isBusy, setBusy] = useState(false);
  const [text, setText] = useState<string>();
  const gather = async () => {
    setBusy(true);
    const parts = PARTS.filter(({ id }) => chosen.has(id)).map(async ({ id, path }) => {
      const content = await get<unknown>(path).catch((error: unknown) => ({ error: error instanceof ApiError ? error.message : String(error) }));
      return [id, withoutPrivate(content)] as const;
    });
    const made = { made_at: new Date(serviceTime()).toISOString(), browser: navigator.userAgent, ...Object.fromEntries(await Promise.all(parts)) };
    setText(JSON.stringify(made, null, 2));
    setBusy(false);
  };
  return (
    <PageFrame title={t("Support report")}>
      <Content component="p">{t("The state of the site in one file. Nothing is sent: download it, read it, and pass it on yourself. Logs of a cluster are on its page.")}</Content>
      <Form onSubmit={(event) => event.preventDefault()}>
        {PARTS.map(({ id, title }) => (
          <Checkbox key={id} id={`part-${id}`} label={t(title)} isChecked={chosen.has(id)}
            onChange={(_, isChecked) => setChosen(new Set(isChecked ? [...chosen, id] : [...chosen].filter((one) => one !== id)))} />
        ))}
      </Form>
      <Button onClick={() => void gather()} isLoading={isBusy} isDisabled={isBusy}>{t("Gather")}</Button>
      {text !== undefined && <Button variant="link" onClick={() => download("atoll-support.json", text)}>{t("Download")}</Button>}
      {text !== undefined && <pre className="atoll-report">{text.slice(0, 20_000)}{text.length > 20_000 && "…"}</pre>}
    </PageFrame>
  );
}
