// Users of the registry, their rights and tokens: lines of files on its host, so commands instead of forms.

import { Card, CardBody, CardTitle, Content } from "@patternfly/react-core";
import { useTranslation } from "react-i18next";
import { Copyable } from "../components/copyable";
import { Facts } from "../components/facts";
import { registryHost } from "./image_name";

const RULES = `rules:
  - { users: [admin], repositories: ["**"], actions: [pull, push, delete] }
  - { users: [ci], repositories: ["team/*"], actions: [push] }
  - { users: ["*"], repositories: ["ocp/**"], actions: [pull] }`;

export function Users({ url }: { url: string | null | undefined }) {
  const { t } = useTranslation();
  const file = "secrets/registry.htpasswd";
  const command = (text: string) => <Copyable label={t("Command")}>{text}</Copyable>;
  return (
    <div className="atoll-tab">
      <Card>
        <CardTitle component="h2">{t("Users")}</CardTitle>
        <CardBody>
          <Content component="p">{t("Users are lines of the file of REGISTRY_AUTH_HTPASSWD_PATH. Change it on the registry's host:")}</Content>
          <Facts of={[
            [t("Add, or change the password"), command(`./atoll registry htpasswd ${file} USER`)],
            [t("With a random password"), command(`./atoll registry htpasswd --generate ${file} USER`)],
            [t("Delete"), command(`./atoll registry htpasswd --delete ${file} USER`)],
            [t("Then, in a pod"), command("podman restart atoll_registry_1")],
            [t("Log in with it"), command(`podman login ${registryHost(url)}`)],
          ]} />
        </CardBody>
      </Card>
      <Card>
        <CardTitle component="h2">{t("Rights")}</CardTitle>
        <CardBody>
          <Content component="p">{t("Every user has all rights, unless REGISTRY_AUTH_POLICY_PATH names a file of rules, which only grant. Maintenance requires the right to delete in all repositories. The file is read again when it changes:")}</Content>
          <pre className="atoll-mono atoll-scroll" tabIndex={0} role="region" aria-label={t("Rights")}>{RULES}</pre>
        </CardBody>
      </Card>
      <Card>
        <CardTitle component="h2">{t("Tokens of another issuer")}</CardTitle>
        <CardBody>
          <Content component="p">{t("With REGISTRY_AUTH_TOKEN_REALM, _SERVICE, _ISSUER and _ROOTCERTBUNDLE or _JWKS, the registry takes tokens of that issuer in place of passwords. REALM and SERVICE below are these settings:")}</Content>
          <div className="atoll-row">{command("curl -u USER \"REALM?service=SERVICE&scope=registry:catalog:*&scope=repository:NAME:pull,delete\"")}</div>
          <Facts of={[
            ["registry:catalog:*", t("List of the repositories")],
            ["repository:NAME:pull", t("Tags and manifests of one repository")],
            ["repository:NAME:delete", t("Deletion in one repository")],
            ["registry:maintenance:*", t("Garbage, damaged content, and the usage of quotas")],
          ]} />
        </CardBody>
      </Card>
    </div>
  );
}
