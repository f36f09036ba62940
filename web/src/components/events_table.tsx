// Events, the newest first: filtered by the service, and live.

import { FormSelect, FormSelectOption, Pagination, SearchInput, Toolbar, ToolbarContent, ToolbarItem } from "@patternfly/react-core";
import { Table, Tbody, Td, Th, Thead, Tr } from "@patternfly/react-table";
import { useTranslation } from "react-i18next";
import useSWR from "swr";
import { type ApiError, request } from "../api/client";
import type { SiteEvent } from "../api/records";
import { useLive } from "../api/resource";
import { useAddressParameters } from "./address_parameters";
import { words } from "./format";
import { Loaded } from "./loaded";
import { usePaginationTitles } from "./pagination_titles";
import { usePrinting } from "./printing";
import { Reason } from "./reason";
import { StatusLabel } from "./status";
import { Time } from "./time";

const SEVERITIES = ["info", "warning", "error", "critical"];
const PAGE = 50;

export function EventsTable({ clusterId }: { clusterId?: string }) {
  const { t } = useTranslation();
  const titles = usePaginationTitles();
  const { parameter, change } = useAddressParameters();
  const message = parameter("message") ?? "";
  const severity = parameter("severity") ?? "";
  const page = Math.max(1, Number(parameter("page")) || 1);
  const filter: Record<string, string> = {
    ...(clusterId && { cluster_id: clusterId }), ...(message && { message }), ...(severity && { severities: severity }),
  };
  const query = new URLSearchParams({ ...filter, order: "descending", limit: String(PAGE), offset: String((page - 1) * PAGE) });
  const path = `/events?${query.toString()}`;
  const { data, error, mutate } = useSWR<{ data: SiteEvent[]; headers: Headers }, ApiError>(path, (key: string) => request<SiteEvent[]>(key), { keepPreviousData: true });
  // Not by the whole filter: the page has a connection of this one already.
  useLive(clusterId ? { cluster_id: clusterId } : {}, [path]);
  const isPrinting = usePrinting();
  const count = Number(data?.headers.get("event-count") ?? 0);
  return (
    <>
      <Toolbar>
        <ToolbarContent>
          <ToolbarItem>
            <SearchInput aria-label={t("Message")} placeholder={t("Message")} resetButtonLabel={t("Clear")} value={message}
              onChange={(_, value) => change({ message: value })} onClear={() => change({ message: "" })} />
          </ToolbarItem>
          <ToolbarItem>
            <FormSelect aria-label={t("Severity")} value={severity} onChange={(_, value) => change({ severity: value })}>
              <FormSelectOption value="" label={`${t("Severity")}: ${t("all")}`} />
              {SEVERITIES.map((one) => <FormSelectOption key={one} value={one} label={t(words(one))} />)}
            </FormSelect>
          </ToolbarItem>
          <ToolbarItem align={{ default: "alignEnd" }}>
            <Pagination itemCount={count} page={page} perPage={PAGE} titles={titles} isCompact onSetPage={(_, value) => change({ page: String(value) })} perPageOptions={[{ title: String(PAGE), value: PAGE }]} />
          </ToolbarItem>
        </ToolbarContent>
      </Toolbar>
      <Loaded resource={{ data: data?.data, error, reload: mutate as never }}>
        {(events) => events.length === 0
          ? <p className="atoll-nothing">{t("No events.")}</p>
          : (
            <Table aria-label={t("Events")} variant="compact">
              <Thead><Tr><Th>{t("Time")}</Th><Th>{t("Severity")}</Th><Th>{t("Message")}</Th></Tr></Thead>
              <Tbody>
                {events.map((event, index) => (
                  <Tr key={`${event.event_time} ${event.name} ${index}`}>
                    <Td dataLabel={t("Time")} modifier="nowrap"><Time at={event.event_time} /></Td>
                    <Td dataLabel={t("Severity")}><StatusLabel status={event.severity} /></Td>
                    <Td dataLabel={t("Message")}><Reason text={event.message} /></Td>
                  </Tr>
                ))}
              </Tbody>
            </Table>
          )}
      </Loaded>
      {isPrinting && count > PAGE && <p>{t("{{count}} more are not shown", { count: count - (data?.data.length ?? 0) })}</p>}
    </>
  );
}
