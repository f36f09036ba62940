// How archives get here: the commands of each step.

import { Content, List, ListComponent, ListItem, OrderType } from "@patternfly/react-core";
import { useTranslation } from "react-i18next";
import { Link } from "react-router-dom-v5-compat";
import { Copyable } from "../components/copyable";

/** A path as a word of the shell. */
function quoted(path: string): string {
  return /^[\w./-]+$/.test(path) ? path : `'${path.replaceAll("'", "'\\''")}'`;
}

export function HowTo({ folder }: { folder: string }) {
  const { t } = useTranslation();
  const inside = quoted(folder || "archives");
  return (
    <>
      <List component={ListComponent.ol} type={OrderType.number}>
        <ListItem>
          {t("Outside, pack what the image set names. Later runs pack only what is new, as the next sequence:")}{" "}
          <Copyable label={t("Command")}>atoll mirror --config imageset-config.yaml file://out</Copyable>{" "}
          <Link to="/mirror-plan">{t("Write an image set")}</Link>
        </ListItem>
        <ListItem>
          {t("Copy all files of a sequence to a stick or disc:")}{" "}
          <Copyable label={t("Command")}>cp out/mirror_seq*.tar /media/stick/</Copyable>
        </ListItem>
        <ListItem>
          {t("Inside, copy them into the folder of this server:")}{" "}
          <Copyable label={t("Command")}>{`cp /media/stick/mirror_seq*.tar ${inside}/`}</Copyable>
        </ListItem>
        <ListItem>
          {t("Verify them here, or on the host of the folder, there also whose signature they have:")}{" "}
          <Copyable label={t("Command")}>{`atoll mirror verify ${inside}/mirror_seq1_000000.tar --key carrier.pub`}</Copyable>
        </ListItem>
        <ListItem>{t("Publish them here, one sequence after the other, and apply the manifests to the clusters.")}</ListItem>
      </List>
      <Content component="p" className="atoll-muted">{t("In the pod the folder is archives beside compose.yaml. While files are being copied, their set is damaged: it is whole when the last one has arrived.")}</Content>
    </>
  );
}
