// A pull secret from registry, user and password. It is made in the page: nothing is sent.

import { Content, Form, FormGroup, FormHelperText, HelperText, HelperTextItem, TextArea, TextInput } from "@patternfly/react-core";
import { useState } from "react";
import { useTranslation } from "react-i18next";
import { Copyable } from "../components/copyable";
import { PageFrame } from "../components/page";
import { DraftHint, DraftNotice, useDraft } from "../drafts/draft";
import { likelyRegistry, mergedPullSecret } from "./pull_secret_format";

/** What is not secret. */
const START = { registry: likelyRegistry(location.hostname), user: "" };

export default function PullSecret() {
  const { t } = useTranslation();
  const draft = useDraft("pull-secret", START);
  const { registry, user } = draft.values;
  const [password, setPassword] = useState("");
  const [present, setPresent] = useState("");
  const result = mergedPullSecret({ registry, user, password, present });
  return (
    <PageFrame title={t("Pull secret")}>
      <Content component="p">{t("Hosts and clusters pull images with it: here, with a login at the registry of this site. It is made in this page, nothing is sent.")}</Content>
      {draft.isRestored ? <DraftNotice discard={draft.end} /> : <DraftHint />}
      <Form onSubmit={(event) => event.preventDefault()} autoComplete="off">
        <FormGroup label={t("Registry, with its port")} fieldId="registry" isRequired>
          <TextInput id="registry" value={registry} onChange={(_, value) => draft.change({ registry: value, user })} />
        </FormGroup>
        <FormGroup label={t("User")} fieldId="user" isRequired>
          <TextInput id="user" value={user} onChange={(_, value) => draft.change({ registry, user: value })} autoComplete="off" />
        </FormGroup>
        <FormGroup label={t("Password")} fieldId="password" isRequired>
          <TextInput id="password" type="password" value={password} onChange={(_, value) => setPassword(value)} autoComplete="new-password" />
        </FormGroup>
        <FormGroup label={t("A pull secret that it is added to")} fieldId="present">
          <TextArea id="present" value={present} onChange={(_, value) => setPresent(value)} rows={3} />
          {"problem" in result && result.field === "present" && (
            <FormHelperText><HelperText><HelperTextItem variant="error">{t(result.problem)}</HelperTextItem></HelperText></FormHelperText>
          )}
        </FormGroup>
      </Form>
      {"text" in result && <Copyable label={t("Pull secret")}>{result.text}</Copyable>}
      {"problem" in result && result.field !== "present" && <Content component="p" className="atoll-muted">{t(result.problem)}</Content>}
    </PageFrame>
  );
}
