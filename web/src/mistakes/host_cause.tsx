// The first mistake of a host, below its state.

import { useContext } from "react";
import { useTranslation } from "react-i18next";
import { Reason } from "../components/reason";
import { CurrentStep } from "./current_step";
import { FixLink } from "./fix_link";
import { TOPICS } from "./topics";
import { type JudgedHost, firstMistakeOfHost } from "./validations";

interface Props {
  host: JudgedHost;
  /** The id of the cluster, while the wizard can change it. */
  cluster: string | undefined;
  /** The text of a host without a mistake. */
  otherwise?: string | undefined;
}

/** A mistake that hosts share has its text once, in the list of the cluster: here, it is what is to be done. */
export function HostCause({ host, cluster, otherwise }: Props) {
  const { t } = useTranslation();
  const current = useContext(CurrentStep);
  const mistake = firstMistakeOfHost(host);
  if (!mistake) return <Reason text={otherwise} />;
  const { first, topic } = mistake;
  const link = <FixLink topic={topic} cluster={cluster} />;
  const { isShared, step, title } = topic ? TOPICS[topic] : {};
  if (!isShared || !title || !cluster) return <><Reason text={first.observed} /> {link}</>;
  return step === current ? <>{t(title)}</> : link;
}
