// The form of a rehearsal: a site or a profile, faults, release.

import {
  Button, Content, ExpandableSection, Form, FormGroup, FormHelperText, FormSelect, FormSelectOption, HelperText, HelperTextItem, TextInput, ToggleGroup,
  ToggleGroupItem,
} from "@patternfly/react-core";
import { type ReactNode, useId, useState } from "react";
import { useTranslation } from "react-i18next";
import type { ApiError } from "../api/client";
import type { Versions } from "../api/records";
import { useResource } from "../api/resource";
import { byName } from "../components/format";
import { Failure } from "../components/loaded";
import { type Draft, hostsOf, missing } from "./draft";
import { FaultTable } from "./fault_table";
import { ProfileTable } from "./profile_table";
import type { RehearsalOptions } from "./records";
import { SiteEditor } from "./site_editor";

const REFRESH = 60_000;

interface Props {
  options: RehearsalOptions;
  draft: Draft;
  change: (changed: (before: Draft) => Draft) => void;
  start: () => void;
  isStarting: boolean;
  failure: ApiError | undefined;
}

export function RehearsalForm({ options: { profiles, faults }, draft, change, start, isStarting, failure }: Props) {
  const { t } = useTranslation();
  const reason = useId();
  const set = (members: Partial<Draft>) => change((before) => ({ ...before, ...members }));
  const problem = missing(draft);
  const isSite = draft.source === "site";
  const count = Object.keys(draft.faults).length;
  return (
    <Form onSubmit={(event) => event.preventDefault()} autoComplete="off">
      <FormGroup label={t("Machines of")} role="group" isStack>
        <ToggleGroup aria-label={t("Machines of")}>
          <ToggleGroupItem text={t("My site")} buttonId="source-site" isSelected={isSite} onChange={() => set({ source: "site" })} />
          <ToggleGroupItem text={t("A profile")} buttonId="source-profile" isSelected={!isSite} onChange={() => set({ source: "profile" })} />
        </ToggleGroup>
      </FormGroup>
      {isSite
        ? (
          <FormGroup label={t("Site file")} role="group">
            <SiteEditor site={draft.site} change={(changed) => change((before) => ({ ...before, site: changed(before.site) }))} />
            <Help>{t("The browser does not store it. The server removes passwords, pull secrets and tokens before it stores the site, and the site when the rehearsal ends.")}</Help>
          </FormGroup>
        )
        : <ProfileTable profiles={profiles} chosen={draft.profile} choose={(profile) => set({ profile })} />}
      <Section title={count === 0 ? t("Faults") : `${t("Faults")} (${count})`}>
        <Content component="p">{t("Each fault shows how a mistake appears. Name hosts, separated by commas, or leave the choice to the seed.")}</Content>
        <FaultTable faults={faults} chosen={draft.faults} hosts={hostsOf(draft, profiles)} change={(chosen) => set({ faults: chosen })} />
      </Section>
      <Release chosen={draft.release} choose={(release) => set({ release })} />
      <Section title={t("More")}>
        {isSite && (
          <FormGroup label={t("Profile in addition")} fieldId="site-profile">
            <FormSelect id="site-profile" value={draft.siteProfile} onChange={(_, siteProfile) => set({ siteProfile })}>
              <FormSelectOption value="" label={t("none")} />
              {profiles.map(({ name, purpose }) => <FormSelectOption key={name} value={name} label={`${name}: ${t(purpose)}`} />)}
            </FormSelect>
            <Help>{t("Its faults, GPUs and workers that join later are added to the site.")}</Help>
          </FormGroup>
        )}
        <FormGroup label={t("Seed")} fieldId="seed">
          <TextInput id="seed" value={draft.seed} onChange={(_, seed) => set({ seed })} />
          <Help>{t("The same seed plays the same rehearsal.")}</Help>
        </FormGroup>
      </Section>
      {failure && <Failure error={failure} />}
      <div>
        <Button isAriaDisabled={problem !== undefined} aria-describedby={reason} isLoading={isStarting} isDisabled={isStarting}
          onClick={() => problem === undefined && start()}>{t("Rehearse")}</Button>
        <p id={reason} className="atoll-muted">{problem === undefined ? t("It takes about a minute, and continues without this page.") : t(problem)}</p>
      </div>
    </Form>
  );
}

function Help({ children }: { children: ReactNode }) {
  return <FormHelperText><HelperText><HelperTextItem>{children}</HelperTextItem></HelperText></FormHelperText>;
}

/** Content that is made when it is opened. */
function Section({ title, children }: { title: string; children: ReactNode }) {
  const [isOpen, setOpen] = useState(false);
  return <ExpandableSection toggleText={title} isExpanded={isOpen} onToggle={(_, isExpanded) => setOpen(isExpanded)}>{isOpen && children}</ExpandableSection>;
}

function Release({ chosen, choose }: { chosen: string; choose: (version: string) => void }) {
  const { t } = useTranslation();
  const versions = useResource<Versions>("/openshift-versions", REFRESH);
  const table = versions.data ?? {};
  const standard = Object.keys(table).find((version) => table[version]?.default);
  return (
    <FormGroup label={t("Release")} fieldId="release">
      <FormSelect id="release" value={chosen} onChange={(_, version) => choose(version)}>
        <FormSelectOption value="" label={standard === undefined ? t("Default") : `${t("Default")} (${standard})`} />
        {Object.keys(table).sort((one, other) => byName(other, one)).map((version) => <FormSelectOption key={version} value={version} label={version} />)}
      </FormSelect>
      {versions.data && Object.keys(table).length === 0 && <Help>{t("This site has no releases yet: carry one in first.")}</Help>}
    </FormGroup>
  );
}
