// Texts of page controls: PatternFly's own are in English only.

import type { PaginationTitles } from "@patternfly/react-core";
import { useTranslation } from "react-i18next";

export function usePaginationTitles(): PaginationTitles {
  const { t } = useTranslation();
  return {
    items: t("rows"),
    itemsPerPage: t("Rows per page"),
    perPageSuffix: t("per page"),
    ofWord: t("of"),
    paginationAriaLabel: t("Pages"),
    currPageAriaLabel: t("Current page"),
    toFirstPageAriaLabel: t("First page"),
    toPreviousPageAriaLabel: t("Previous page"),
    toNextPageAriaLabel: t("Next page"),
    toLastPageAriaLabel: t("Last page"),
  };
}
