// A table with text filter, choice of one attribute, sorting, pages, selection and expanded rows.

import {
  EmptyState, EmptyStateActions, EmptyStateBody, EmptyStateFooter, FormSelect, FormSelectOption, Pagination, SearchInput,
  Toolbar, ToolbarContent, ToolbarItem,
} from "@patternfly/react-core";
import { ExpandableRowContent, Table, Tbody, Td, Th, Thead, Tr } from "@patternfly/react-table";
import { type ReactNode, useDeferredValue, useEffect, useMemo, useState } from "react";
import { useTranslation } from "react-i18next";
import { useAddressParameters } from "./address_parameters";
import { byName, words } from "./format";
import { usePaginationTitles } from "./pagination_titles";
import { usePrinting } from "./printing";

export interface Column<Row> {
  id: string;
  title: string;
  cell: (row: Row) => ReactNode;
  /** Text of the cell, for filter and order. */
  text?: (row: Row) => string;
  /** Value of the order, when it is not that of the text. */
  order?: (row: Row) => number;
}

interface Props<Row> {
  label: string;
  /** Prefix of its parameters in the address, where a page has several tables. */
  scope?: string;
  columns: Column<Row>[];
  rows: Row[];
  rowId: (row: Row) => string;
  /** Texts that are searched beside those of the columns. */
  searched?: (row: Row) => string;
  /** Whether the last one in order is first, until another order is chosen. */
  startsDescending?: boolean;
  choice?: { id: string; title: string; of: (row: Row) => string; /** The text of a value; default: `words`. */ word?: (value: string) => string };
  actions?: (selected: Row[]) => ReactNode;
  details?: (row: Row) => ReactNode;
  /** Is called with the ids of the rows of the page, for what is loaded for these only. */
  onShown?: (ids: string[]) => void;
  empty: { title: string; body: string; action?: ReactNode };
}

const PAGE_SIZES = [20, 50, 100];
/** Rows on paper: all of most tables. */
const MAX_PRINTED = 1000;

export function DataTable<Row>({ label, scope = "", columns, rows, rowId, searched, startsDescending = false, choice, actions, details, onShown, empty }: Props<Row>) {
  const { t } = useTranslation();
  const titles = usePaginationTitles();
  const { parameter, change } = useAddressParameters(scope);
  const [selected, setSelected] = useState<ReadonlySet<string>>(new Set());
  const [expanded, setExpanded] = useState<ReadonlySet<string>>(new Set());
  const search = parameter("search") ?? "";
  const chosen = choice ? (parameter(choice.id) ?? "") : "";
  const sortColumn = Math.max(0, columns.findIndex(({ id }) => id === parameter("sort")));
  const isDescending = (parameter("order") ?? (startsDescending ? "desc" : "asc")) === "desc";
  const size = Number(parameter("size")) || 20;

  const wanted = useDeferredValue(search).trim().toLowerCase();
  const found = useMemo(() => {
    const text = (row: Row) => [...columns.map((column) => column.text?.(row) ?? ""), searched?.(row) ?? ""].join("\n").toLowerCase();
    const column = columns[sortColumn];
    const compare = (one: Row, other: Row) =>
      column?.order ? column.order(one) - column.order(other) : byName(column?.text?.(one) ?? "", column?.text?.(other) ?? "");
    const kept = rows.filter((row) => (!choice || chosen === "" || choice.of(row) === chosen) && (wanted === "" || text(row).includes(wanted)));
    kept.sort((one, other) => (isDescending ? compare(other, one) : compare(one, other)));
    return kept;
  }, [rows, columns, wanted, chosen, sortColumn, isDescending]);

  const pages = Math.max(1, Math.ceil(found.length / size));
  const page = Math.min(pages, Math.max(1, Number(parameter("page")) || 1));
  const isPrinting = usePrinting();
  const shown = isPrinting ? found.slice(0, MAX_PRINTED) : found.slice((page - 1) * size, page * size);
  const shownIds = shown.map(rowId).join("\n");
  useEffect(() => onShown?.(shownIds === "" ? [] : shownIds.split("\n")), [shownIds]);
  const selectedRows = rows.filter((row) => selected.has(rowId(row)));
  const toggled = (set: ReadonlySet<string>, id: string) => {
    const copy = new Set(set);
    if (!copy.delete(id)) copy.add(id);
    return copy;
  };

  if (rows.length === 0) {
    return (
      <EmptyState titleText={empty.title} headingLevel="h2">
        <EmptyStateBody>{empty.body}</EmptyStateBody>
        {empty.action && <EmptyStateFooter><EmptyStateActions>{empty.action}</EmptyStateActions></EmptyStateFooter>}
      </EmptyState>
    );
  }
  const word = choice?.word ?? words;
  const values = choice && [...new Set(rows.map(choice.of))].sort(byName);
  const pagination = (variant: "top" | "bottom") => (
    <Pagination itemCount={found.length} page={page} perPage={size} variant={variant} titles={titles} isCompact={variant === "top"}
      perPageOptions={PAGE_SIZES.map((value) => ({ title: String(value), value }))}
      onSetPage={(_, value) => change({ page: String(value) })}
      onPerPageSelect={(_, value) => change({ size: String(value) })} />
  );
  const columnCount = columns.length + (actions ? 1 : 0) + (details ? 1 : 0);
  return (
    <>
      <Toolbar>
        <ToolbarContent>
          <ToolbarItem>
            <SearchInput aria-label={t("Filter")} placeholder={t("Filter")} resetButtonLabel={t("Clear")} value={search}
              onChange={(_, value) => change({ search: value })} onClear={() => change({ search: "" })} />
          </ToolbarItem>
          {choice && (
            <ToolbarItem>
              <FormSelect aria-label={choice.title} value={chosen} onChange={(_, value) => change({ [choice.id]: value })}>
                <FormSelectOption value="" label={`${choice.title}: ${t("all")}`} />
                {values?.map((value) => <FormSelectOption key={value} value={value} label={t(word(value))} />)}
              </FormSelect>
            </ToolbarItem>
          )}
          {actions && <ToolbarItem>{actions(selectedRows)}</ToolbarItem>}
          <ToolbarItem align={{ default: "alignEnd" }}>{pagination("top")}</ToolbarItem>
        </ToolbarContent>
      </Toolbar>
      <div className="atoll-scroll">
        <Table aria-label={label} variant="compact" isExpandable={details !== undefined}>
          <Thead>
            <Tr>
              {details && <Th className="atoll-control" screenReaderText={t("Details")} />}
              {actions && (
                <Th className="atoll-control" aria-label={t("Select all")} select={{
                  isSelected: shown.length > 0 && shown.every((row) => selected.has(rowId(row))),
                  onSelect: (_, isAll) => setSelected(new Set(isAll ? found.map(rowId) : [])),
                }} />
              )}
              {columns.map((column, index) => (
                <Th key={column.id} modifier="nowrap" {...((column.text ?? column.order) && {
                  sort: {
                    columnIndex: index,
                    sortBy: { index: sortColumn, direction: isDescending ? ("desc" as const) : ("asc" as const) },
                    onSort: (_: unknown, __: number, direction: string) => change({ sort: column.id, order: direction }),
                  },
                })}>{column.title}</Th>
              ))}
            </Tr>
          </Thead>
          {shown.map((row, rowIndex) => {
            const id = rowId(row);
            const isExpanded = expanded.has(id);
            return (
              <Tbody key={id} isExpanded={isExpanded}>
                <Tr>
                  {details && (
                    <Td className="atoll-control" expand={{ rowIndex, isExpanded, onToggle: () => setExpanded(toggled(expanded, id)) }} />
                  )}
                  {actions && (
                    <Td className="atoll-control" select={{ rowIndex, isSelected: selected.has(id), onSelect: () => setSelected(toggled(selected, id)) }} />
                  )}
                  {columns.map((column) => <Td key={column.id} dataLabel={column.title}>{column.cell(row)}</Td>)}
                </Tr>
                {details && isExpanded && (
                  <Tr isExpanded>
                    <Td colSpan={columnCount}><ExpandableRowContent>{details(row)}</ExpandableRowContent></Td>
                  </Tr>
                )}
              </Tbody>
            );
          })}
        </Table>
      </div>
      {isPrinting && (wanted !== "" || chosen !== "") && <p>{t("Filter")}: {[search.trim(), chosen && t(word(chosen))].filter(Boolean).join(", ")}</p>}
      {isPrinting && found.length > MAX_PRINTED && <p>{t("{{count}} more are not shown", { count: found.length - MAX_PRINTED })}</p>}
      {found.length === 0 && <p className="atoll-nothing">{t("Nothing matches the filter.")}</p>}
      {found.length > size && pagination("bottom")}
    </>
  );
}
