// Rows of BMCs that are typed: a page of them at a time, each problem below its field.

import { Button, Checkbox, FormHelperText, HelperText, HelperTextItem, Pagination, TextInput } from "@patternfly/react-core";
import { Table, Tbody, Td, Th, Thead, Tr } from "@patternfly/react-table";
import { useTranslation } from "react-i18next";
import { usePaginationTitles } from "../components/pagination_titles";
import type { Field, Problem, RowProblems } from "./checks";
import type { BmcTarget } from "./records";
import type { RowRefusal } from "./refusal";

export const ROWS_ON_PAGE = 20;

/** Id of a field, for the focus. */
export function fieldId(row: number, field: Field): string {
  return `bmc-${row}-${field}`;
}

interface Shared {
  /** Whether missing values are problems by now. */
  isAsked: boolean;
  refused: RowRefusal | undefined;
  change: (row: number, members: Partial<BmcTarget>) => void;
  remove: (row: number) => void;
}

interface Props extends Shared {
  rows: BmcTarget[];
  problems: RowProblems[];
  /** From 1 on. */
  page: number;
  setPage: (page: number) => void;
}

export function TargetTable({ rows, problems, page, setPage, ...shared }: Props) {
  const { t } = useTranslation();
  const titles = usePaginationTitles();
  const first = (page - 1) * ROWS_ON_PAGE;
  return (
    <>
      <div className="atoll-scroll">
        <Table aria-label={t("BMCs of the hosts")} variant="compact" className="atoll-inputs">
          <Thead>
            <Tr>
              <Th>{t("Name")}</Th><Th>{t("Address")}</Th><Th>{t("User name")}</Th><Th>{t("Password")}</Th><Th>{t("Certificate")}</Th>
              <Th screenReaderText={t("Actions")} />
            </Tr>
          </Thead>
          <Tbody>
            {rows.slice(first, first + ROWS_ON_PAGE).map((target, index) => {
              const row = first + index;
              return <TargetRow key={row} row={row} target={target} problems={problems[row] ?? {}} {...shared} />;
            })}
          </Tbody>
        </Table>
      </div>
      {rows.length > ROWS_ON_PAGE && (
        <Pagination itemCount={rows.length} page={page} perPage={ROWS_ON_PAGE} titles={titles} isCompact perPageOptions={[{ title: String(ROWS_ON_PAGE), value: ROWS_ON_PAGE }]}
          onSetPage={(_, value) => setPage(value)} />
      )}
    </>
  );
}

interface RowProps extends Shared {
  row: number;
  target: BmcTarget;
  problems: RowProblems;
}

function TargetRow({ row, target, problems, isAsked, refused, change, remove }: RowProps) {
  const { t } = useTranslation();
  const number = row + 1;
  const cell = (field: Field, name: string, placeholder?: string) => (
    <Td dataLabel={name}>
      <TargetField row={row} field={field} label={t("{{field}} of row {{row}}", { field: name, row: number })} value={target[field]} placeholder={placeholder}
        problem={shownProblem(problems[field], isAsked)} reason={refused?.row === row && refused.field === field ? refused.reason : undefined}
        change={(value) => change(row, { [field]: value })} />
    </Td>
  );
  return (
    <Tr>
      {cell("name", t("Name"), "host-0")}
      {cell("address", t("Address"), "redfish-virtualmedia://192.0.2.1/redfish/v1/Systems/1")}
      {cell("username", t("User name"))}
      {cell("password", t("Password"))}
      <Td dataLabel={t("Certificate")}>
        <Checkbox id={`bmc-${row}-verify`} className="atoll-control" label={t("Verify")} aria-label={`${t("Verify the certificate")}: ${number}`} isChecked={!target.disable_certificate_verification}
          onChange={(_, isChecked) => change(row, { disable_certificate_verification: !isChecked })} />
      </Td>
      <Td dataLabel={t("Actions")}>
        <Button variant="link" isInline isDanger aria-label={t("Remove row {{row}}", { row: number })} onClick={() => remove(row)}>{t("Remove")}</Button>
      </Td>
    </Tr>
  );
}

/** Missing values are no mistake while they may still be typed. */
function shownProblem(problem: Problem | undefined, isAsked: boolean): Problem | undefined {
  return problem?.isMissing && !isAsked ? undefined : problem;
}

interface FieldProps {
  row: number;
  field: Field;
  label: string;
  value: string;
  placeholder: string | undefined;
  problem: Problem | undefined;
  /** Of a refusal of the service. */
  reason: string | undefined;
  change: (value: string) => void;
}

function TargetField({ row, field, label, value, placeholder, problem: found, reason, change }: FieldProps) {
  const { t } = useTranslation();
  const id = fieldId(row, field);
  const { problem, values } = found ?? {};
  const text = problem === undefined ? reason : t(problem, values);
  const isSecret = field === "password";
  return (
    <>
      <TextInput id={id} aria-label={label} value={value} type={isSecret ? "password" : "text"} autoComplete={isSecret ? "new-password" : "off"} spellCheck={false}
        {...(placeholder !== undefined && { placeholder })} {...(text !== undefined && { validated: "error" as const, "aria-describedby": `${id}-problem` })}
        onChange={(_, typed) => change(typed)} />
      {text !== undefined && (
        <FormHelperText><HelperText id={`${id}-problem`} isLiveRegion><HelperTextItem variant="error">{text}</HelperTextItem></HelperText></FormHelperText>
      )}
    </>
  );
}
