// All repositories that the login may see, with a filter; tags are counted for the visible ones only.

import { Alert, Button } from "@patternfly/react-core";
import { createContext, useContext, useMemo, useState } from "react";
import { useTranslation } from "react-i18next";
import { Link } from "react-router-dom-v5-compat";
import { ApiError } from "../api/client";
import { repositories, tagsAfter } from "../api/registry";
import { type Column, DataTable } from "../components/data_table";
import { imagePath } from "./image_name";
import { RegistryLoaded } from "./log_in";
import { type Details, useDetails, useRegistry } from "./resource";

/** Tags that are counted at the most: one page of the list. */
const COUNTED = 1000;

// Columns stay the same when counts arrive: a change of them sorts all rows anew.
const Counts = createContext<Details<number>>(new Map());

const countTags = (name: string) => tagsAfter(name, "", COUNTED).then(({ length }) => length);

export function Repositories() {
  const { t } = useTranslation();
  const names = useRegistry("repositories", repositories);
  const [shown, setShown] = useState<string[]>([]);
  const counts = useDetails("repositories", shown, countTags);
  const columns = useMemo<Column<string>[]>(() => [
    { id: "name", title: t("Repository"), text: (name) => name, cell: (name) => <Link to={imagePath(name)}>{name}</Link> },
    { id: "tags", title: t("Tags"), cell: (name) => <TagCount name={name} /> },
  ], [t]);
  return (
    <RegistryLoaded resource={names}>
      {({ entries, isCut }) => (
        <Counts.Provider value={counts}>
          {isCut && <ListIsCut count={entries.length} />}
          <DataTable label={t("Repositories")} columns={columns} rows={entries} rowId={(name) => name} onShown={setShown}
            empty={{
              title: t("No repository yet"),
              body: t("Nothing was pushed yet, or your login may see no repository. A mirror plan names the content to publish."),
              action: <Button component={(props) => <Link {...props} to="/mirror-plan" />}>{t("Mirror plan")}</Button>,
            }} />
        </Counts.Provider>
      )}
    </RegistryLoaded>
  );
}

function TagCount({ name }: { name: string }) {
  const { t } = useTranslation();
  const count = useContext(Counts).get(name);
  if (count === undefined || count instanceof ApiError) return <>–</>;
  return <>{count < COUNTED ? count : t("{{count, number}} or more", { count })}</>;
}

export function ListIsCut({ count }: { count: number }) {
  const { t } = useTranslation();
  return (
    <Alert isInline variant="info" variantLabel={t("Info")}
      title={t("Only the first {{count, number}} are shown; the registry's own pages have all of them.", { count })} />
  );
}
