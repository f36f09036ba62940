// The link from carried-in content to the page that offers its release for installations.

import { useTranslation } from "react-i18next";
import { Link } from "react-router-dom-v5-compat";
import { useResource } from "../api/resource";
import { RELEASE_IMAGES, type ReleaseImage } from "./records";

/** Parameter of the page of versions that opens its dialog. */
export const ADDING = "add-release";

/** Nothing where the server offers the releases of its settings only. */
export function OfferRelease() {
  const { t } = useTranslation();
  const images = useResource<ReleaseImage[]>(RELEASE_IMAGES);
  return images.data === undefined ? null : <Link to={`/versions?${ADDING}`}>{t("Offer the release")}</Link>;
}
