// The editor of mirror plans, with completion from the catalogs of this site. The plan is a draft of this browser's tab
// until it is downloaded.

import {
  Alert, Button, Card, CardBody, CardTitle, Checkbox, Content, Flex, Form, FormGroup, List, ListItem, TextArea, TextInput,
} from "@patternfly/react-core";
import { type ReactNode, useEffect, useId } from "react";
import { useTranslation } from "react-i18next";
import { useSearchParams } from "react-router-dom-v5-compat";
import { useDocuments } from "../api/resource";
import { useCatalogs } from "../catalog/catalogs";
import { type CatalogEntry, type Channel, type Package, metas } from "../catalog/records";
import { Copyable } from "../components/copyable";
import { download } from "../components/download";
import { PageFrame } from "../components/page";
import { DraftHint, DraftNotice, useDraft } from "../drafts/draft";
import { ARCHITECTURES, EMPTY, type PlannedCatalog, type PlannedPackage, problems, toYaml, withPackage } from "../mirror/plan";

const FILE = "imageset-config.yaml";

const replaced = <T,>(list: T[], index: number, item: T): T[] => list.map((one, at) => (at === index ? item : one));
const without = <T,>(list: T[], index: number): T[] => list.filter((_, at) => at !== index);

export default function MirrorPlan() {
  const { t } = useTranslation();
  const { values: plan, change: setPlan, isRestored, end } = useDraft("mirror-plan", EMPTY);
  const [parameters, setParameters] = useSearchParams();
  const served = useCatalogs();
  useEffect(() => {
    const [catalog, name] = [parameters.get("catalog"), parameters.get("package")];
    if (!catalog || !name || !served.data) return;
    const source = served.data.find((one) => one.name === catalog)?.source ?? catalog;
    setPlan((before) => withPackage(before, source, { name, channel: parameters.get("channel") ?? "", minVersion: "" }));
    setParameters({}, { replace: true });
  }, [parameters, served.data]);

  const found = problems(plan);
  const yaml = toYaml(plan);
  const setCatalog = (index: number, catalog: PlannedCatalog) => setPlan({ ...plan, catalogs: replaced(plan.catalogs, index, catalog) });
  return (
    <PageFrame title={t("Mirror plan")}
      actions={(
        <>
          <Button variant="primary" isDisabled={found.length > 0} onClick={() => download(FILE, yaml)}>{t("Download")}</Button>
          <Button variant="link" onClick={end}>{t("Start anew")}</Button>
        </>
      )}>
      <Content component="p">{t("A plan names releases, operators and images. On the connected side, atoll mirror packs them into archives; inside, it publishes them.")}</Content>
      {isRestored ? <DraftNotice discard={end} /> : <DraftHint />}
      <Form onSubmit={(event) => event.preventDefault()}>
        <Part title={t("Releases")} add={t("Add a channel")} onAdd={() => setPlan({ ...plan, channels: [...plan.channels, { name: "", minVersion: "", maxVersion: "" }] })}>
          <Flex>
            {ARCHITECTURES.map((one) => (
              <Checkbox key={one} id={`architecture-${one}`} label={one} isChecked={plan.architectures.includes(one)}
                onChange={(_, isChecked) => setPlan({ ...plan, architectures: isChecked ? [...plan.architectures, one] : plan.architectures.filter((other) => other !== one) })} />
            ))}
            <Checkbox id="graph" label={t("Upgrade graph")} isChecked={plan.hasGraph} onChange={(_, hasGraph) => setPlan({ ...plan, hasGraph })} />
          </Flex>
          {plan.channels.map((channel, index) => {
            const set = (members: Partial<typeof channel>) => setPlan({ ...plan, channels: replaced(plan.channels, index, { ...channel, ...members }) });
            return (
              <Row key={index} remove={() => setPlan({ ...plan, channels: without(plan.channels, index) })}>
                <Field label={t("Channel")} hint="stable-4.18" value={channel.name} set={(name) => set({ name })} />
                <Field label={t("Minimum version")} hint="4.18.1" value={channel.minVersion} set={(minVersion) => set({ minVersion })} />
                <Field label={t("Maximum version")} hint="4.18.30" value={channel.maxVersion} set={(maxVersion) => set({ maxVersion })} />
              </Row>
            );
          })}
        </Part>
        <Part title={t("Operators")} add={t("Add a catalog")} onAdd={() => setPlan({ ...plan, catalogs: [...plan.catalogs, { catalog: "", packages: [] }] })}>
          {plan.catalogs.map((catalog, index) => (
            <CatalogPart key={index} planned={catalog} served={served.data ?? []} set={(changed) => setCatalog(index, changed)}
              remove={() => setPlan({ ...plan, catalogs: without(plan.catalogs, index) })} />
          ))}
        </Part>
        <Part title={t("Other images")}>
          <FormGroup label={t("One image per line")} fieldId="images">
            <TextArea id="images" rows={4} value={plan.additionalImages.join("\n")}
              onChange={(_, text) => setPlan({ ...plan, additionalImages: text === "" ? [] : text.split("\n").map((line) => line.trim()) })} />
          </FormGroup>
        </Part>
      </Form>
      {found.length > 0 && (
        <Alert isInline variant="warning" variantLabel={t("Warning")} title={t("The plan is not complete")}>
          <List>{found.map(({ problem, values }) => <ListItem key={problem + JSON.stringify(values)}>{t(problem, values)}</ListItem>)}</List>
        </Alert>
      )}
      <Card>
        <CardTitle component="h2">{FILE}</CardTitle>
        <CardBody>
          <pre className="atoll-mono">{yaml}</pre>
          <Content component="p">{t("What it weighs, before anything is transferred:")} <Copyable label={t("Command")}>{`atoll mirror --config ${FILE} --dry-run file://out`}</Copyable></Content>
          <Content component="p">{t("Pack:")} <Copyable label={t("Command")}>{`atoll mirror --config ${FILE} file://out`}</Copyable></Content>
        </CardBody>
      </Card>
    </PageFrame>
  );
}

function CatalogPart({ planned, served, set, remove }: { planned: PlannedCatalog; served: CatalogEntry[]; set: (changed: PlannedCatalog) => void; remove: () => void }) {
  const { t } = useTranslation();
  // A copy of the catalog here knows its packages: references of mirrors end as those of their originals.
  const path = planned.catalog.split("/").slice(1).join("/");
  const copy = served.find(({ source }) => source === planned.catalog || (path !== "" && source.endsWith(`/${path}`)));
  const packages = useDocuments<Package>(copy && metas(copy.name, { schema: "olm.package" }));
  const channels = useDocuments<Channel>(copy && metas(copy.name, { schema: "olm.channel" }));
  const setPackage = (index: number, changed: PlannedPackage) => set({ ...planned, packages: replaced(planned.packages, index, changed) });
  return (
    <Card>
      <CardBody>
        <Row remove={remove}>
          <Field label={t("Catalog")} hint="registry.example.org/catalog:v4.18" value={planned.catalog} set={(catalog) => set({ ...planned, catalog })}
            options={served.map(({ source }) => source)} />
        </Row>
        {planned.packages.map((one, index) => (
          <Row key={index} remove={() => set({ ...planned, packages: without(planned.packages, index) })}>
            <Field label={t("Package")} value={one.name} set={(name) => setPackage(index, { ...one, name })} options={packages.data?.map(({ name }) => name)} />
            <Field label={t("Channel")} hint={t("default")} value={one.channel} set={(channel) => setPackage(index, { ...one, channel })}
              options={channels.data?.filter((channel) => channel.package === one.name).map(({ name }) => name)} />
            <Field label={t("Minimum version")} hint={t("head only")} value={one.minVersion} set={(minVersion) => setPackage(index, { ...one, minVersion })} />
          </Row>
        ))}
        <Button variant="link" onClick={() => set({ ...planned, packages: [...planned.packages, { name: "", channel: "", minVersion: "" }] })}>{t("Add a package")}</Button>
      </CardBody>
    </Card>
  );
}

function Part({ title, add, onAdd, children }: { title: string; add?: string; onAdd?: () => void; children: ReactNode }) {
  return (
    <Card>
      <CardTitle component="h2">{title}</CardTitle>
      <CardBody>
        {children}
        {add && <Button variant="secondary" onClick={onAdd}>{add}</Button>}
      </CardBody>
    </Card>
  );
}

function Row({ remove, children }: { remove: () => void; children: ReactNode }) {
  const { t } = useTranslation();
  return (
    <Flex alignItems={{ default: "alignItemsFlexEnd" }} className="atoll-row">
      {children}
      <Button variant="plain" aria-label={t("Remove")} onClick={remove}>✕</Button>
    </Flex>
  );
}

function Field({ label, value, hint, set, options }: { label: string; value: string; hint?: string; set: (value: string) => void; options?: string[] }) {
  const id = useId();
  return (
    <FormGroup label={label} fieldId={id}>
      <TextInput id={id} value={value} placeholder={hint} list={options && `${id}-options`} onChange={(_, text) => set(text)} />
      {options && <datalist id={`${id}-options`}>{options.map((option) => <option key={option} value={option} />)}</datalist>}
    </FormGroup>
  );
}
