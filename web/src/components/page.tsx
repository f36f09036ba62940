// The frame of a page: title in window and heading, path back, actions.

import { Breadcrumb, BreadcrumbItem, Flex, FlexItem, PageSection, Title } from "@patternfly/react-core";
import { type ReactNode, useEffect } from "react";
import { useTranslation } from "react-i18next";
import { Link } from "react-router-dom-v5-compat";

interface Frame {
  title: string;
  beside?: ReactNode;
  parents?: { path: string; title: string }[];
  actions?: ReactNode;
  children: ReactNode;
}

export function PageFrame({ title, beside, parents, actions, children }: Frame) {
  const { t } = useTranslation();
  useEffect(() => {
    document.title = `${title} · Atoll`;
  }, [title]);
  return (
    <>
      <PageSection hasBodyWrapper={false} aria-labelledby="page-title">
        {parents && (
          <Breadcrumb className="atoll-path" aria-label={t("Path")}>
            {parents.map(({ path, title: name }) => (
              <BreadcrumbItem key={path} render={({ className }) => <Link className={className} to={path}>{name}</Link>} />
            ))}
            <BreadcrumbItem isActive>{title}</BreadcrumbItem>
          </Breadcrumb>
        )}
        <Flex justifyContent={{ default: "justifyContentSpaceBetween" }} alignItems={{ default: "alignItemsCenter" }}>
          <FlexItem>
            <Flex alignItems={{ default: "alignItemsCenter" }}>
              <Title headingLevel="h1" id="page-title">{title}</Title>
              {beside}
            </Flex>
          </FlexItem>
          {actions && <FlexItem><Flex>{actions}</Flex></FlexItem>}
        </Flex>
      </PageSection>
      <PageSection hasBodyWrapper={false} isFilled className="atoll-content">{children}</PageSection>
    </>
  );
}
