// Help: the topics that the wizard's links lead to, each with an address of its own.

import { Card, CardBody, CardTitle, Content } from "@patternfly/react-core";
import { useEffect } from "react";
import { useTranslation } from "react-i18next";
import { Link, useLocation } from "react-router-dom-v5-compat";
import { PageFrame } from "../components/page";
import { TOPICS, type Topic } from "./help_topics";

export default function Help() {
  const { t } = useTranslation();
  const { hash } = useLocation();
  useEffect(() => {
    document.getElementById(hash.slice(1))?.scrollIntoView();
  }, [hash]);
  return (
    <PageFrame title={t("Help")}>
      {Object.entries<Topic>(TOPICS).map(([id, { title, paragraphs, page }]) => (
        <Card key={id} id={id}>
          <CardTitle component="h2">{t(title)}</CardTitle>
          <CardBody>
            {paragraphs.map((text) => <Content key={text} component="p">{t(text)}</Content>)}
            {page && <Link to={page.path}>{t(page.title)}</Link>}
          </CardBody>
        </Card>
      ))}
      <Content component="p">
        <a href="/docs" target="_blank" rel="noreferrer">{t("Description of the API")}</a>
        {" · "}<a href="/status/">{t("Status page without scripts of others")}</a>
        {" · "}<a href="/notices.txt">{t("Licences")}</a>
      </Content>
    </PageFrame>
  );
}
