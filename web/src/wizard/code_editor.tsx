// The editor of YAML in the library's forms: the part of @patternfly/react-code-editor that they use, with CodeMirror in
// place of Monaco. Monaco is loaded from a content delivery network, writes inline styles, which the page's security
// policy refuses, and is six times as large.

import { Button, Flex, Label } from "@patternfly/react-core";
import { type ChangeEvent, type ReactNode, useEffect, useRef } from "react";
import { useTranslation } from "react-i18next";
import { download } from "../components/download";
import type { CodeMirror } from "./code_mirror";

/** Larger files cannot be what a form asks for. Units: bytes. */
const MAX_FILE = 1 << 20;

export enum Language {
  json = "json",
  yaml = "yaml",
}

export interface CodeEditorProps {
  code?: string;
  /** For screen readers. */
  label?: string;
  language?: Language;
  height?: string;
  isReadOnly?: boolean;
  isUploadEnabled?: boolean;
  isDownloadEnabled?: boolean;
  isCopyEnabled?: boolean;
  isLanguageLabelVisible?: boolean;
  downloadFileName?: string;
  customControls?: ReactNode;
  onCodeChange?: (code: string) => void;
}

interface ControlProps {
  icon?: ReactNode;
  "aria-label"?: string;
  onClick?: (code: string) => void;
  isVisible?: boolean;
}

export function CodeEditorControl({ icon, "aria-label": label, onClick, isVisible = true }: ControlProps) {
  return isVisible ? <Button variant="plain" icon={icon} aria-label={label} title={label} onClick={() => onClick?.("")} /> : null;
}

export function CodeEditor({ code = "", label, language = Language.yaml, height, isReadOnly = false, onCodeChange, customControls, ...features }: CodeEditorProps) {
  const { t } = useTranslation();
  const place = useRef<HTMLDivElement>(null);
  const editor = useRef<CodeMirror>();
  const file = useRef<HTMLInputElement>(null);
  // The editor is made once; it calls the handler of the last drawing.
  const latest = useRef({ code, onCodeChange });
  latest.current = { code, onCodeChange };

  useEffect(() => {
    let isMounted = true;
    void import("./code_mirror").then(({ CodeMirror: Editor }) => {
      if (!isMounted || !place.current) return;
      editor.current = new Editor(place.current, {
        text: latest.current.code, label: label ?? t("Editor"), isReadOnly,
        changed: (text) => latest.current.onCodeChange?.(text),
      });
    });
    return () => {
      isMounted = false;
      editor.current?.destroy();
      editor.current = undefined;
    };
  }, [isReadOnly]);
  useEffect(() => editor.current?.replace(code), [code]);

  const upload = async ({ target }: ChangeEvent<HTMLInputElement>) => {
    const chosen = target.files?.[0];
    target.value = "";
    if (chosen && chosen.size <= MAX_FILE) onCodeChange?.(await chosen.text());
  };
  return (
    <div className="atoll-editor">
      <Flex>
        {features.isCopyEnabled && <Button variant="secondary" size="sm" onClick={() => void navigator.clipboard?.writeText(code)}>{t("Copy")}</Button>}
        {features.isUploadEnabled && (
          <>
            <Button variant="secondary" size="sm" isDisabled={isReadOnly} onClick={() => file.current?.click()}>{t("Upload a file")}</Button>
            <input ref={file} type="file" hidden accept=".yaml,.yml,.json,text/*" onChange={(event) => void upload(event)} />
          </>
        )}
        {features.isDownloadEnabled && code !== "" && (
          <Button variant="secondary" size="sm" onClick={() => download(`${features.downloadFileName ?? "file"}.${language}`, code)}>{t("Download")}</Button>
        )}
        {customControls}
        {features.isLanguageLabelVisible && <Label isCompact variant="outline">{language.toUpperCase()}</Label>}
      </Flex>
      <div ref={place} style={{ height }} className="atoll-editor-text" />
    </div>
  );
}
