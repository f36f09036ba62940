// The form that boots many hosts by their BMCs. Passwords are in the memory of the page alone: the draft leaves them out.

import { Alert, Button, Flex, Form, FormGroup, FormHelperText, HelperText, HelperTextItem } from "@patternfly/react-core";
import { type FormEvent, useEffect, useMemo, useRef, useState } from "react";
import { useTranslation } from "react-i18next";
import { type ApiError, asApiError, send } from "../api/client";
import { correctable } from "../api/refusal";
import { Failure } from "../components/loaded";
import { type Draft, DraftHint, DraftNotice } from "../drafts/draft";
import { BootOptions } from "./boot_options";
import { firstProblem, isTyped, problemsOf } from "./checks";
import { type BmcBootValues, NO_TARGET, paramsOf, typedRows, withLogin, withRows } from "./form_values";
import { OneLogin } from "./one_login";
import { PasteRows } from "./paste_rows";
import { type BmcBootList, type BmcTarget, MAX_BMCS } from "./records";
import { type RowRefusal, rowRefusal } from "./refusal";
import { ROWS_ON_PAGE, TargetTable, fieldId } from "./target_table";

interface Props {
  /** Of the boots of the infra-env. */
  path: string;
  /** Type of the infra-env's image. */
  imageType: string | undefined;
  draft: Draft<BmcBootValues>;
  /** Is called after the start, with the boots and the rows that were sent. */
  started: (list: BmcBootList, rows: BmcTarget[]) => void;
}

export function BootForm({ path, imageType, draft, started }: Props) {
  const { t } = useTranslation();
  const { values, change } = draft;
  const { bmcs } = values;
  const [isAsked, setAsked] = useState(false);
  const [isSending, setSending] = useState(false);
  const [refused, setRefused] = useState<RowRefusal>();
  const [failure, setFailure] = useState<ApiError>();
  const [wantedPage, setPage] = useState(1);
  const [focus, setFocus] = useState<string>();
  const form = useRef<HTMLDivElement>(null);
  const problems = useMemo(() => problemsOf(bmcs), [bmcs]);
  const count = bmcs.filter(isTyped).length;
  const page = Math.min(wantedPage, Math.max(1, Math.ceil(bmcs.length / ROWS_ON_PAGE)));

  const setRows = (changed: (rows: BmcTarget[]) => BmcTarget[]) => {
    // The row of the refusal may be another one now.
    setRefused(undefined);
    change((before) => ({ ...before, bmcs: changed(before.bmcs) }));
  };
  const show = ({ row, field }: Pick<RowRefusal, "row" | "field">) => {
    setPage(Math.floor(row / ROWS_ON_PAGE) + 1);
    setFocus(fieldId(row, field));
  };
  // After the page of the row is drawn.
  useEffect(() => {
    if (focus === undefined) return;
    form.current?.querySelector<HTMLElement>(`#${focus}`)?.focus();
    setFocus(undefined);
  }, [focus, page]);

  const start = async (event: FormEvent) => {
    event.preventDefault();
    if (isSending) return;
    setAsked(true);
    setFailure(undefined);
    const rows = typedRows(bmcs);
    setRows(() => rows);
    const problem = firstProblem(problemsOf(rows));
    if (count === 0) return show({ row: 0, field: "name" });
    if (problem) return show(problem);
    setSending(true);
    try {
      const list = await send<BmcBootList>("POST", path, paramsOf({ ...values, bmcs: rows }));
      draft.end();
      setAsked(false);
      started(list, rows);
    } catch (error) {
      const failed = asApiError(error);
      const row = rowRefusal(failed, rows);
      setRefused(row);
      if (row) show(row);
      else setFailure(correctable(failed));
    }
    setSending(false);
  };
  return (
    <div ref={form}>
      {draft.isRestored && <DraftNotice discard={draft.end} />}
      <Form onSubmit={(event) => void start(event)} autoComplete="off">
        <FormGroup label={t("BMCs")} role="group">
          <TargetTable rows={bmcs} problems={problems} isAsked={isAsked} refused={refused} page={page} setPage={setPage}
            change={(row, members) => setRows((rows) => rows.map((one, index) => (index === row ? { ...one, ...members } : one)))}
            remove={(row) => setRows((rows) => (rows.length === 1 ? [NO_TARGET] : rows.filter((_, index) => index !== row)))} />
          <Flex className="atoll-row">
            <Button variant="secondary" isDisabled={bmcs.length >= MAX_BMCS} onClick={() => {
              setRows((rows) => [...rows, NO_TARGET]);
              show({ row: bmcs.length, field: "name" });
            }}>{t("Add a row")}</Button>
            {bmcs.length > 1 && (
              <>
                <Button variant="link" onClick={() => setRows((rows) => rows.map((row) => ({ ...row, disable_certificate_verification: false })))}>{t("Verify all certificates")}</Button>
                <Button variant="link" onClick={() => setRows((rows) => rows.map((row) => ({ ...row, disable_certificate_verification: true })))}>{t("Verify no certificates")}</Button>
              </>
            )}
          </Flex>
          <FormHelperText>
            <HelperText>
              <HelperTextItem>{t("Certificates are verified with the authorities of the system and of BMC_CA_FILE of the API server.")}</HelperTextItem>
            </HelperText>
          </FormHelperText>
          <DraftHint />
        </FormGroup>
        <PasteRows count={count} add={(rows) => setRows((before) => withRows(before, rows))} />
        {bmcs.length > 1 && <OneLogin fill={(username, password) => setRows((rows) => withLogin(rows, username, password))} />}
        <BootOptions values={values} imageType={imageType} set={(members) => change((before) => ({ ...before, ...members }))} />
        {refused && (
          <Alert isInline variant="danger" variantLabel={t("Error")} title={t("The service refused row {{row}}: see its reason there.", { row: refused.row + 1 })} />
        )}
        {failure && <Failure error={failure} />}
        {isAsked && count === 0 && <Alert isInline variant="danger" variantLabel={t("Error")} title={t("Name at least one BMC.")} />}
        <div>
          <Button type="submit" isLoading={isSending} isDisabled={isSending} aria-describedby="boot-effect">{t("Boot hosts: {{count}}", { count })}</Button>
          <p id="boot-effect" className="atoll-muted">{t("Each host is switched off without a shutdown, and boots the discovery image: check the addresses first.")}</p>
        </div>
      </Form>
    </div>
  );
}
