// Log-in at the registry, and its content where it may ask for one. Passwords and tokens stay in the memory of this tab.

import {
  Alert, Button, Content, Form, FormGroup, FormHelperText, FormSelect, FormSelectOption, HelperText, HelperTextItem, Modal, ModalBody, ModalHeader, TextInput,
} from "@patternfly/react-core";
import { type FormEvent, type ReactNode, useId, useState } from "react";
import { useTranslation } from "react-i18next";
import type { ApiError } from "../api/client";
import { isLoginAccepted, passwordLogin, registryLogin, tokenLogin } from "../api/registry";
import type { Resource } from "../api/resource";
import { Failure, Loaded } from "../components/loaded";
import { asApiError, useHasLogins, useRegistryLogin } from "./resource";

type Kind = "password" | "token";

export function LogIn({ refused, done }: { refused?: ApiError; done?: () => void }) {
  const { t } = useTranslation();
  const id = useId();
  const [kind, setKind] = useState<Kind>("password");
  const [user, setUser] = useState("");
  const [secret, setSecret] = useState("");
  const [state, setState] = useState<"editing" | "asking" | "wrong" | ApiError>("editing");
  const present = useRegistryLogin();
  const isToken = kind === "token";
  const logIn = async (event: FormEvent) => {
    event.preventDefault();
    setState("asking");
    const login = isToken ? tokenLogin(secret) : passwordLogin(user, secret);
    try {
      const isAccepted = await isLoginAccepted(login);
      setState(isAccepted ? "editing" : "wrong");
      if (!isAccepted) return;
      registryLogin.set(login);
      done?.();
    } catch (error) {
      setState(asApiError(error));
    }
  };
  return (
    <Form onSubmit={(event) => void logIn(event)} isWidthLimited>
      {refused && present && (
        <Alert isInline variant="warning" variantLabel={t("Warning")}
          title={present.user === undefined ? t("The token has expired, or lacks the scope {{scope}}.", refused.values) : t("The registry no longer takes the password.")} />
      )}
      <FormGroup label={t("Log in with")} fieldId={`${id}-kind`}>
        <FormSelect id={`${id}-kind`} value={kind} onChange={(_, value) => {
          setKind(value as Kind);
          setSecret("");
          setState("editing");
        }}>
          <FormSelectOption value="password" label={t("User and password")} />
          <FormSelectOption value="token" label={t("A token of another issuer")} />
        </FormSelect>
      </FormGroup>
      {!isToken && (
        <FormGroup label={t("User")} fieldId={`${id}-user`} isRequired>
          <TextInput id={`${id}-user`} value={user} onChange={(_, value) => setUser(value)} autoComplete="username" isRequired />
        </FormGroup>
      )}
      <FormGroup label={isToken ? t("Token") : t("Password")} fieldId={`${id}-secret`} isRequired>
        <TextInput id={`${id}-secret`} type="password" value={secret} onChange={(_, value) => setSecret(value)} isRequired
          autoComplete={isToken ? "off" : "current-password"} {...(state === "wrong" && { validated: "error" as const })} aria-describedby={`${id}-help`} />
        <FormHelperText>
          <HelperText id={`${id}-help`} isLiveRegion>
            <HelperTextItem variant={state === "wrong" ? "error" : "default"}>
              {state !== "wrong"
                ? t("It stays in the memory of this tab until you log out or close it.")
                : isToken ? t("The registry does not take this token.") : t("User or password are wrong.")}
            </HelperTextItem>
          </HelperText>
        </FormHelperText>
      </FormGroup>
      {typeof state === "object" && <Failure error={state} />}
      <div><Button type="submit" isLoading={state === "asking"} isDisabled={state === "asking" || secret === "" || (!isToken && user === "")}>{t("Log in")}</Button></div>
    </Form>
  );
}

/** A resource of the registry: where it takes a login, the form for it. */
export function RegistryLoaded<T>({ resource, children }: { resource: Resource<T>; children: (data: T) => ReactNode }) {
  const { t } = useTranslation();
  const { error } = resource;
  if (error?.status !== 401) return <Loaded resource={resource}>{children}</Loaded>;
  return (
    <>
      <Content component="p">{t("This needs a login at the registry, which has users of its own.")}</Content>
      <LogIn refused={error} />
    </>
  );
}

/** Who is logged in, and the buttons that change it. */
export function Account() {
  const { t } = useTranslation();
  const [isOpen, setIsOpen] = useState(false);
  const login = useRegistryLogin();
  const hasLogins = useHasLogins();
  if (login) {
    return (
      <>
        <span>{login.user ?? t("Token")}</span>
        <Button variant="secondary" onClick={() => registryLogin.set(undefined)}>{t("Log out")}</Button>
      </>
    );
  }
  if (!hasLogins) return null;
  return (
    <>
      <Button variant="secondary" onClick={() => setIsOpen(true)}>{t("Log in")}</Button>
      <Modal isOpen={isOpen} variant="small" onClose={() => setIsOpen(false)} aria-label={t("Log in")}>
        <ModalHeader title={t("Log in")} />
        <ModalBody><LogIn done={() => setIsOpen(false)} /></ModalBody>
      </Modal>
    </>
  );
}
