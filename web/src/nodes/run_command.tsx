// The command that replaces a node. It runs where the BMCs are reached, and where a person gives their word that the old
// machine is off.

import { Button, Content, List, ListItem } from "@patternfly/react-core";
import { useTranslation } from "react-i18next";
import { address } from "../api/client";
import { Copyable } from "../components/copyable";
import { replaceCommand } from "./command";
import type { ReplacementPlanParams } from "./records";

interface Props {
  cluster: string;
  params: ReplacementPlanParams;
}

export function RunCommand({ cluster, params }: Props) {
  const { t } = useTranslation();
  const kubeconfig = address(`/clusters/${cluster}/downloads/credentials`, { file_name: "kubeconfig" });
  return (
    <>
      <List component="ol">
        <ListItem>
          {t("Download the kubeconfig to the disconnected host:")}{" "}
          <Button variant="link" isInline component="a" href={kubeconfig} download>kubeconfig</Button>
        </ListItem>
        <ListItem>{t("Run the command beside it:")} <Copyable label={t("Command")}>{replaceCommand(params)}</Copyable></ListItem>
      </List>
      <Content component="p">{t("It can be stopped and run again at any point. Where the BMC of the old machine cannot be asked, add --confirm-off: your word that the machine is off. With --image URL, the BMC boots the new node; without it, you do.")}</Content>
    </>
  );
}
