// The editor of a site file: text is pasted, files are opened or dropped. Nothing of it is stored by the browser.

import { Alert, Button, Content } from "@patternfly/react-core";
import { type ChangeEvent, type DragEvent, useRef, useState } from "react";
import { useTranslation } from "react-i18next";
import { CodeEditor } from "../wizard/code_editor";
import { MAX_SITE } from "./records";
import { kinds, withFile } from "./site_file";

const HEIGHT = "20rem";

interface Props {
  site: string;
  change: (changed: (before: string) => string) => void;
}

export function SiteEditor({ site, change }: Props) {
  const { t } = useTranslation();
  const input = useRef<HTMLInputElement>(null);
  const [isOver, setOver] = useState(false);
  const [refused, setRefused] = useState<string>();

  const open = async (files: File[]) => {
    const size = files.reduce((sum, file) => sum + file.size, 0);
    setRefused(size > MAX_SITE ? files.map(({ name }) => name).join(", ") : undefined);
    if (size > MAX_SITE) return;
    const texts = await Promise.all(files.map((file) => file.text()));
    change((before) => texts.reduce(withFile, before));
  };
  const choose = ({ target }: ChangeEvent<HTMLInputElement>) => {
    const files = [...(target.files ?? [])];
    // The same file can be opened again.
    target.value = "";
    void open(files);
  };
  // Before the editor, which would insert files at the cursor.
  const onDrag = (event: DragEvent, isInside: boolean) => {
    if (!event.dataTransfer.types.includes("Files")) return;
    event.preventDefault();
    event.stopPropagation();
    setOver(isInside);
  };
  const drop = (event: DragEvent) => {
    onDrag(event, false);
    if (event.dataTransfer.files.length > 0) void open([...event.dataTransfer.files]);
  };
  return (
    <div className={isOver ? "atoll-drop atoll-drop-over" : "atoll-drop"}
      onDragOverCapture={(event) => onDrag(event, true)} onDragLeave={() => setOver(false)} onDropCapture={drop}>
      <CodeEditor label={t("Site file")} code={site} height={HEIGHT} onCodeChange={(text) => change(() => text)}
        customControls={(
          <>
            <Button variant="secondary" size="sm" onClick={() => input.current?.click()}>{t("Open files")}</Button>
            <input ref={input} type="file" multiple hidden accept=".yaml,.yml,.json,text/*" aria-label={t("Open files")} onChange={choose} />
            <span className="atoll-muted">{t("or drop them here")}</span>
            {site !== "" && <Button variant="link" size="sm" onClick={() => change(() => "")}>{t("Clear")}</Button>}
          </>
        )} />
      {refused !== undefined && (
        <Alert isInline variant="danger" variantLabel={t("Error")} title={t("{{name}}: larger than a site file, which has at most 2 MiB", { name: refused })} />
      )}
      <Documents site={site} />
    </div>
  );
}

/** The documents of the site, so that a missing one is seen before anything is sent. */
function Documents({ site }: { site: string }) {
  const { t } = useTranslation();
  const found = kinds(site);
  if (found.length === 0) {
    return (
      <Content component="p">
        {t("Paste install-config.yaml and agent-config.yaml, one after the other with a line --- between them, or open both files. HardwareData and BareMetalHost documents may follow.")}
      </Content>
    );
  }
  const names = found.map(([kind, count]) => `${kind ?? t("of an unknown kind")}${count > 1 ? ` × ${count}` : ""}`);
  return (
    <>
      <Content component="p" role="status">{t("Documents")}: {names.join(", ")}</Content>
      {!found.some(([kind]) => kind === "install-config.yaml") && (
        <Alert isInline isPlain variant="warning" variantLabel={t("Warning")} title={t("install-config.yaml is missing: add it.")} />
      )}
      {!found.some(([kind]) => kind === "agent-config.yaml") && (
        <Alert isInline isPlain variant="info" variantLabel={t("Info")} title={t("Without agent-config.yaml, hosts are made up by the counts of install-config.yaml, with DHCP.")} />
      )}
    </>
  );
}
