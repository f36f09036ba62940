// One login for all rows that have none: racks of one vendor often share it.

import { Button, ExpandableSection, FormGroup, TextInput } from "@patternfly/react-core";
import { useId, useState } from "react";
import { useTranslation } from "react-i18next";

export function OneLogin({ fill }: { fill: (username: string, password: string) => void }) {
  const { t } = useTranslation();
  const id = useId();
  const [isOpen, setOpen] = useState(false);
  const [username, setUsername] = useState("");
  const [password, setPassword] = useState("");
  const take = () => {
    fill(username, password);
    setPassword("");
    setOpen(false);
  };
  return (
    <ExpandableSection toggleText={t("One login for all rows without one")} isExpanded={isOpen} onToggle={(_, isExpanded) => setOpen(isExpanded)}>
      <FormGroup label={t("User name")} fieldId={`${id}-user`}>
        <TextInput id={`${id}-user`} value={username} autoComplete="off" spellCheck={false} onChange={(_, typed) => setUsername(typed)} />
      </FormGroup>
      <FormGroup label={t("Password")} fieldId={`${id}-password`}>
        <TextInput id={`${id}-password`} type="password" value={password} autoComplete="new-password" onChange={(_, typed) => setPassword(typed)} />
      </FormGroup>
      <Button variant="secondary" className="atoll-row" isDisabled={username === "" && password === ""} onClick={take}>{t("Fill in")}</Button>
    </ExpandableSection>
  );
}
