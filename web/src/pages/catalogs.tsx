// Operator catalogs of this site: their packages, with a filter.

import { Content, FormSelect, FormSelectOption } from "@patternfly/react-core";
import { useTranslation } from "react-i18next";
import { Link, useSearchParams } from "react-router-dom-v5-compat";
import { useDocuments } from "../api/resource";
import { NoCatalogs, useCatalogs } from "../catalog/catalogs";
import { type Package, metas } from "../catalog/records";
import { type Column, DataTable } from "../components/data_table";
import { Loaded } from "../components/loaded";
import { PageFrame } from "../components/page";

export default function Catalogs() {
  const { t } = useTranslation();
  const [parameters, setParameters] = useSearchParams();
  const catalogs = useCatalogs();
  const ready = catalogs.data?.filter(({ is_ready: isReady }) => isReady) ?? [];
  const chosen = ready.find(({ name }) => name === parameters.get("catalog")) ?? ready[0];
  const packages = useDocuments<Package>(chosen && metas(chosen.name, { schema: "olm.package" }));
  const columns: Column<Package>[] = [
    { id: "name", title: t("Package"), text: ({ name }) => name, cell: ({ name }) => <Link to={`/catalogs/${chosen?.name}/${name}`}>{name}</Link> },
    { id: "channel", title: t("Default channel"), text: ({ defaultChannel }) => defaultChannel ?? "", cell: ({ defaultChannel }) => defaultChannel },
  ];
  return (
    <PageFrame title={t("Operator catalogs")}
      actions={ready.length > 1 && (
        <FormSelect aria-label={t("Catalog")} value={chosen?.name} onChange={(_, value) => setParameters({ catalog: value })}>
          {ready.map(({ name }) => <FormSelectOption key={name} value={name} label={name} />)}
        </FormSelect>
      )}>
      {catalogs.hasNone
        ? <NoCatalogs />
        : (
          <Loaded resource={catalogs}>
            {() => (
              <>
                {chosen && <Content component="p" className="atoll-mono">{chosen.source}</Content>}
                <Loaded resource={packages}>
                  {(list) => (
                    <DataTable label={t("Packages")} columns={columns} rows={list} rowId={({ name }) => name}
                      empty={{ title: t("No packages"), body: t("The catalog is empty.") }} />
                  )}
                </Loaded>
              </>
            )}
          </Loaded>
        )}
    </PageFrame>
  );
}
