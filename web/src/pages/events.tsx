import { useTranslation } from "react-i18next";
import { EventsTable } from "../components/events_table";
import { PageFrame } from "../components/page";

export default function Events() {
  const { t } = useTranslation();
  return <PageFrame title={t("Events")}><EventsTable /></PageFrame>;
}
