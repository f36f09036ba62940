// Mistakes: failed validations, merged where one correction ends them, those first that others follow from.

import { type TopicName, TOPICS, topicOf } from "./topics";

/** A failed validation, or a finding. */
export interface Failed {
  id: string;
  /** Name of the host; empty: the cluster. */
  host: string;
  observed: string;
  required?: string;
}

export interface Mistake<F extends Failed> {
  /** The failed validation that names the mistake best. */
  first: F;
  topic: TopicName | undefined;
  /** Hosts on which it shows; none: it is the cluster's. */
  hosts: string[];
}

/** The mistakes behind failed validations, in the order of these, but for topics that follow from others. */
export function mistakesOf<F extends Failed>(failed: F[]): Mistake<F>[] {
  const merged = new Map<string, Mistake<F>>();
  const seen = new Set<string>();
  for (const one of failed) {
    const topic = topicOf(one.id);
    const { isShared = false } = topic ? TOPICS[topic] : {};
    // Of the validations of a host about one topic, the first names the mistake.
    const ofHost = `${topic ?? one.id} ${one.host}`;
    if (!isShared && seen.has(ofHost)) continue;
    seen.add(ofHost);
    const key = isShared ? topic! : JSON.stringify([topic ?? one.id, one.observed, one.required]);
    const known = merged.get(key);
    if (!known) merged.set(key, { first: one, topic, hosts: one.host === "" ? [] : [one.host] });
    else if (known.first.host !== "" && one.host === "") merged.set(key, { first: one, topic, hosts: [] });
    else if (known.first.host !== "" && !known.hosts.includes(one.host)) known.hosts.push(one.host);
  }
  const found = [...merged.values()];
  // Hosts that are not ready are no mistake of their own beside those of hosts.
  const isConsequence = ({ topic }: Mistake<F>) => topic === "readiness" && found.length > 1;
  return ordered(found.filter((mistake) => !isConsequence(mistake)));
}

/** Each topic after those that it follows from; else the order stays. */
function ordered<F extends Failed>(mistakes: Mistake<F>[]): Mistake<F>[] {
  const result: Mistake<F>[] = [];
  const add = (mistake: Mistake<F>) => {
    if (result.includes(mistake)) return;
    const { follows = [] } = mistake.topic ? TOPICS[mistake.topic] : {};
    for (const before of mistakes) if (before.topic && follows.includes(before.topic)) add(before);
    result.push(mistake);
  };
  mistakes.forEach(add);
  return result;
}
