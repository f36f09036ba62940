// Certificates: that of the registry for download, how each client comes to trust it, and the site's checks of all.

import { Button, Card, CardBody, CardTitle, Content, DescriptionList, DescriptionListDescription, DescriptionListGroup, DescriptionListTerm } from "@patternfly/react-core";
import { useTranslation } from "react-i18next";
import type { SiteCheck } from "../api/records";
import { useResource } from "../api/resource";
import { useServices } from "../api/site";
import { ChecksTable } from "../components/checks_table";
import { Copyable } from "../components/copyable";
import { PageFrame } from "../components/page";

const FILE = "registry-ca.crt";
const URL_OF_FILE = `/services/${FILE}`;

/** Clients, and the command by which each trusts the registry at `host`. */
function clients(host: string): { title: string; command: string }[] {
  return [
    { title: "podman, skopeo, buildah", command: `sudo install -D -m 644 ${FILE} /etc/containers/certs.d/${host}/ca.crt` },
    { title: "docker", command: `sudo install -D -m 644 ${FILE} /etc/docker/certs.d/${host}/ca.crt` },
    { title: "atoll mirror", command: `atoll mirror --ca ${FILE} --from archives docker://${host}` },
    { title: "oc-mirror, oc", command: `SSL_CERT_FILE=${FILE} oc-mirror --help` },
    { title: "curl", command: `curl --cacert ${FILE} https://${host}/v2/` },
    { title: "All programs of RHEL and Fedora", command: `sudo cp ${FILE} /etc/pki/ca-trust/source/anchors/ && sudo update-ca-trust` },
    { title: "All programs of Debian and Ubuntu", command: `sudo cp ${FILE} /usr/local/share/ca-certificates/ && sudo update-ca-certificates` },
    { title: "macOS", command: `sudo security add-trusted-cert -d -r trustRoot -k /Library/Keychains/System.keychain ${FILE}` },
    { title: "Windows", command: `certutil -addstore -f Root ${FILE}` },
    { title: "A running cluster", command: `oc create configmap site-ca -n openshift-config --from-file=${host.replace(":", "..")}=${FILE} && oc patch image.config.openshift.io/cluster --type merge -p '{"spec":{"additionalTrustedCA":{"name":"site-ca"}}}'` },
  ];
}

export default function Certificates() {
  const { t } = useTranslation();
  const services = useServices();
  const report = useResource<{ checks: SiteCheck[] }>("/doctor", 60_000);
  const checks = report.data?.checks.filter(({ group }) => group === "certificates") ?? [];
  const host = services?.registry ? new URL(services.registry).host : `${location.hostname}:5000`;
  return (
    <PageFrame title={t("Certificates")}>
      {services?.registry_ca && (
        <Card>
          <CardTitle component="h2">{t("The registry's certificate")}</CardTitle>
          <CardBody>
            <Content component="p">{t("Clients of the registry have to trust it once. Clusters that are installed here get it with their hosts.")}</Content>
            <Content component="p">{t("Where atoll install made the certificates, the file has the site's authority, too: programs that trust it also trust the addresses of the reverse proxy.")}</Content>
            <Button component="a" href={URL_OF_FILE} download={FILE}>{t("Download")}</Button>{" "}
            <Copyable label={t("Command")}>{`curl -fO ${location.origin}${URL_OF_FILE}`}</Copyable>
            <DescriptionList isHorizontal className="atoll-row">
              {clients(host).map(({ title, command }) => (
                <DescriptionListGroup key={title}>
                  <DescriptionListTerm>{t(title)}</DescriptionListTerm>
                  <DescriptionListDescription><Copyable label={t(title)}>{command}</Copyable></DescriptionListDescription>
                </DescriptionListGroup>
              ))}
            </DescriptionList>
          </CardBody>
        </Card>
      )}
      {checks.length > 0 && (
        <Card>
          <CardTitle component="h2">{t("Checks")}</CardTitle>
          <CardBody>
            <ChecksTable checks={checks} />
          </CardBody>
        </Card>
      )}
    </PageFrame>
  );
}
