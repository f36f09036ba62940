// The shell: masthead, navigation, and the page of the address.

import { Alert, Button, Page, PageSidebar, PageSidebarBody, PageToggleButton, Skeleton, SkipToContent } from "@patternfly/react-core";
import { Masthead, MastheadBrand, MastheadContent, MastheadLogo, MastheadMain, MastheadToggle, Nav, NavGroup, NavItem } from "@patternfly/react-core";
import { FormSelect, FormSelectOption, PageSection, Toolbar, ToolbarContent, ToolbarItem } from "@patternfly/react-core";
import BarsIcon from "@patternfly/react-icons/dist/esm/icons/bars-icon";
import { Component, type ReactNode, Suspense, lazy, useId, useState, useSyncExternalStore } from "react";
import { useTranslation } from "react-i18next";
import { BrowserRouter, Link, Navigate, Route, Routes, useLocation } from "react-router-dom-v5-compat";
import { session } from "./api/client";
import { useServices } from "./api/site";
import { dropDrafts } from "./drafts/store";
import { LANGUAGES, type Language, chooseLanguage, language } from "./i18n";
import { NotFound } from "./pages/not_found";
import { GROUPS, ROUTES } from "./pages/routes";
import { type Theme, chooseTheme, theme } from "./theme";

const Wizard = lazy(() => import("./wizard"));
/** Root of the library's pages. */
const LIBRARY = "/assisted-installer";
/** Addresses of the list of clusters in the library, whose place our page has. */
const LIBRARY_LIST = /^\/(cluster-list|assisted-installer(\/clusters)?)\/?$/;

function Preferences() {
  const { t } = useTranslation();
  const [chosen, choose] = useState(theme());
  const [languageId, themeId] = [useId(), useId()];
  const isLoggedIn = useSyncExternalStore(session.subscribe, session.get);
  const change = (value: Theme) => {
    chooseTheme(value);
    choose(value);
  };
  return (
    <Toolbar isFullHeight isStatic>
      <ToolbarContent>
        <ToolbarItem align={{ default: "alignEnd" }} className="atoll-preference">
          <label htmlFor={languageId}>{t("Language")}</label>
          <FormSelect id={languageId} value={language()} onChange={(_, value) => chooseLanguage(value as Language)}>
            {Object.entries(LANGUAGES).map(([id, name]) => <FormSelectOption key={id} value={id} label={name} />)}
          </FormSelect>
        </ToolbarItem>
        <ToolbarItem className="atoll-preference">
          <label htmlFor={themeId}>{t("Colour scheme")}</label>
          <FormSelect id={themeId} value={chosen} onChange={(_, value) => change(value as Theme)}>
            <FormSelectOption value="system" label={t("As the system")} />
            <FormSelectOption value="light" label={t("Light")} />
            <FormSelectOption value="dark" label={t("Dark")} />
          </FormSelect>
        </ToolbarItem>
        {isLoggedIn && (
          <ToolbarItem className="atoll-account">
            {/* Pages of the server, not of this application. */}
            <a href="/token">{t("Token")}</a> <a href="/logout" onClick={dropDrafts}>{t("Log out")}</a>
          </ToolbarItem>
        )}
      </ToolbarContent>
    </Toolbar>
  );
}

function Header() {
  const { t } = useTranslation();
  return (
    <Masthead>
      <MastheadMain>
        <MastheadToggle>
          <PageToggleButton variant="plain" aria-label={t("Navigation")}><BarsIcon /></PageToggleButton>
        </MastheadToggle>
        <MastheadBrand>
          <MastheadLogo component={(props) => <Link {...props} to="/" className="atoll-brand" />}>
            <img src="/status/icon.svg" alt="" width="28" height="28" />Atoll
          </MastheadLogo>
        </MastheadBrand>
      </MastheadMain>
      <MastheadContent><Preferences /></MastheadContent>
    </Masthead>
  );
}

function Navigation() {
  const { t } = useTranslation();
  const { pathname } = useLocation();
  const services = useServices();
  // The page of the registry links to the registry's own ones.
  const links = [[t("Registry"), services?.registry_api ? null : services?.registry], [t("Downloads"), services?.downloads]];
  const isActive = (path: string) =>
    path === "/" ? pathname === "/" : pathname.startsWith(path) || (path === "/clusters" && pathname.startsWith(LIBRARY));
  return (
    <PageSidebar>
      <PageSidebarBody>
        <Nav aria-label={t("Main")}>
          {GROUPS.map((group) => (
            <NavGroup key={group} title={t(group)}>
              {ROUTES.filter((route) => route.group === group && (route.needs === undefined || services?.[route.needs])).map(({ path, title }) => (
                <NavItem key={path} itemId={path} isActive={isActive(path)}><Link to={path}>{t(title)}</Link></NavItem>
              ))}
              {group === "Content" && links.map(([title, url]) => url && (
                <NavItem key={url} itemId={url} to={url}>{title}</NavItem>
              ))}
            </NavGroup>
          ))}
        </Nav>
      </PageSidebarBody>
    </PageSidebar>
  );
}

/** Shows the defect of a page in its place: the others keep working. */
class PageBoundary extends Component<{ children: ReactNode; title: string; again: string }, { error?: Error }> {
  override state: { error?: Error } = {};

  static getDerivedStateFromError(error: Error) {
    return { error };
  }

  override render() {
    const { error } = this.state;
    if (!error) return this.props.children;
    const { title, again } = this.props;
    return (
      <PageSection hasBodyWrapper={false}>
        <Alert isInline variant="danger" title={title} actionLinks={<Button variant="link" onClick={() => location.reload()}>{again}</Button>}>
          {error.message}
        </Alert>
      </PageSection>
    );
  }
}

function Content() {
  const { t } = useTranslation();
  const { pathname } = useLocation();
  if (LIBRARY_LIST.test(pathname)) return <Navigate to="/clusters" replace />;
  const isLibrary = pathname.startsWith(LIBRARY);
  return (
    <PageBoundary key={isLibrary ? LIBRARY : pathname} title={t("This page has a defect, or is of an older version.")} again={t("Load it again")}>
      <Suspense fallback={<PageSection hasBodyWrapper={false}><Skeleton height="12rem" screenreaderText={t("Loading")} /></PageSection>}>
        {isLibrary
          ? <Wizard />
          : (
            <Routes>
              {ROUTES.map(({ path, component: Page }) => <Route key={path} path={path} element={<Page />} />)}
              <Route path="*" element={<NotFound />} />
            </Routes>
          )}
      </Suspense>
    </PageBoundary>
  );
}

export function App() {
  const { t } = useTranslation();
  return (
    <BrowserRouter>
      <Page masthead={<Header />} sidebar={<Navigation />} isManagedSidebar mainContainerId="main"
        skipToContent={<SkipToContent href="#main">{t("Skip to content")}</SkipToContent>}>
        <Content />
      </Page>
    </BrowserRouter>
  );
}
