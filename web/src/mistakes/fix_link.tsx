// The link to the step of the wizard where a mistake is corrected.

import { useContext } from "react";
import { useTranslation } from "react-i18next";
import { Link } from "react-router-dom-v5-compat";
import { CurrentStep } from "./current_step";
import { type TopicName, TOPICS } from "./topics";

/** Nothing where the mistake is corrected outside, or on this step. */
export function FixLink({ topic, cluster }: { topic: TopicName | undefined; cluster: string | undefined }) {
  const { t } = useTranslation();
  const current = useContext(CurrentStep);
  const { step, title } = topic ? TOPICS[topic] : {};
  return step && title && cluster && step !== current ? <Link to={`/assisted-installer/clusters/${cluster}?step=${step}`}>{t(title)}</Link> : null;
}
