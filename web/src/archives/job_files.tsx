// The files of a publication by their use: shown, copied, downloaded, and those for clusters as one file.

import { Button, Content, Flex, List, ListItem } from "@patternfly/react-core";
import { useState } from "react";
import { useTranslation } from "react-i18next";
import { type ApiError, address, asApiError, file } from "../api/client";
import { copy } from "../components/clipboard";
import { Copyable } from "../components/copyable";
import { download } from "../components/download";
import { bytes } from "../components/format";
import { Failure } from "../components/loaded";
import { type JobFile, JOBS } from "./records";
import { USES, baseName, byUse, joined } from "./result_files";

/** Shown at first: a release has a signature each. */
const SHOWN = 10;
/** Units: characters. Longer files are for downloads. */
const VIEWED = 100_000;
/** One file of all documents for clusters. */
const JOINED = "carried-in.yaml";

const path = (job: string) => `${JOBS}/${job}/downloads/files`;
const read = (job: string, name: string) => file(address(path(job), { file_name: name }));

export function JobFiles({ job, files }: { job: string; files: JobFile[] }) {
  const { t } = useTranslation();
  return (
    <>
      {byUse(files).map(([use, own]) => {
        const { title, text } = USES[use];
        return (
          <section key={use} aria-label={t(title)} className="atoll-row">
            <Content component="h4">{t(title)}</Content>
            <Content component="p">{t(text)}</Content>
            {use === "apply" && <Joined job={job} files={own} />}
            <Files job={job} files={own} />
          </section>
        );
      })}
    </>
  );
}

/** A download of all documents for clusters, and the command that applies it. */
function Joined({ job, files }: { job: string; files: JobFile[] }) {
  const { t } = useTranslation();
  const [isBusy, setBusy] = useState(false);
  const [error, setError] = useState<ApiError>();
  const fetchAll = async () => {
    setBusy(true);
    setError(undefined);
    try {
      const documents: string[] = [];
      for (const { name } of files) documents.push(await read(job, name));
      download(JOINED, joined(documents));
    } catch (failure) {
      setError(asApiError(failure));
    }
    setBusy(false);
  };
  return (
    <Flex className="atoll-row">
      <Button variant="secondary" isLoading={isBusy} isDisabled={isBusy} onClick={() => void fetchAll()}>{t("Download all as one file")}</Button>
      <Copyable label={t("Command")}>{`oc apply -f ${JOINED}`}</Copyable>
      {error && <Failure error={error} />}
    </Flex>
  );
}

function Files({ job, files }: { job: string; files: JobFile[] }) {
  const { t } = useTranslation();
  const [isWhole, setWhole] = useState(false);
  const shown = isWhole ? files : files.slice(0, SHOWN);
  return (
    <>
      <List isPlain>{shown.map((one) => <ListItem key={one.name}><File job={job} file={one} /></ListItem>)}</List>
      {shown.length < files.length && <Button variant="link" isInline onClick={() => setWhole(true)}>{t("Show all ({{count}})", { count: files.length })}</Button>}
    </>
  );
}

function File({ job, file: { name, size } }: { job: string; file: JobFile }) {
  const { t } = useTranslation();
  const [text, setText] = useState<string>();
  const [isCopied, setCopied] = useState(false);
  const [error, setError] = useState<ApiError>();
  const show = () => {
    setError(undefined);
    read(job, name).then(setText, (failure: unknown) => setError(asApiError(failure)));
  };
  const hide = () => {
    setText(undefined);
    setCopied(false);
  };
  return (
    <>
      <Flex gap={{ default: "gapMd" }}>
        <code>{name}</code> <span className="atoll-muted">{bytes(size)}</span>
        {text === undefined
          ? <Button variant="link" isInline aria-label={`${t("View")} ${name}`} onClick={show}>{t("View")}</Button>
          : <Button variant="link" isInline aria-label={`${t("Hide")} ${name}`} onClick={hide}>{t("Hide")}</Button>}
        {text !== undefined && (
          <Button variant="link" isInline aria-label={`${t("Copy")} ${name}`} onClick={() => { copy(text); setCopied(true); }}>
            {isCopied ? t("Copied") : t("Copy")}
          </Button>
        )}
        <Button variant="link" isInline component="a" aria-label={`${t("Download")} ${name}`} href={address(path(job), { file_name: name })} download={baseName(name)}>
          {t("Download")}
        </Button>
      </Flex>
      {error && <Failure error={error} retry={show} />}
      {text !== undefined && (
        <pre className="atoll-report" tabIndex={0} role="region" aria-label={name}>
          {text.slice(0, VIEWED)}{text.length > VIEWED && "…"}
        </pre>
      )}
    </>
  );
}
