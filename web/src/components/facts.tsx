// Terms with their values; terms without a value are left out.

import { DescriptionList, DescriptionListDescription, DescriptionListGroup, DescriptionListTerm } from "@patternfly/react-core";
import type { ReactNode } from "react";

export function Facts({ of }: { of: [term: string, value: ReactNode][] }) {
  const shown = of.filter(([, value]) => value !== undefined && value !== null && value !== "" && value !== false);
  return (
    <DescriptionList orientation={{ md: "horizontal" }} isCompact className="atoll-facts">
      {shown.map(([term, value]) => (
        <DescriptionListGroup key={term}>
          <DescriptionListTerm>{term}</DescriptionListTerm>
          <DescriptionListDescription>{value}</DescriptionListDescription>
        </DescriptionListGroup>
      ))}
    </DescriptionList>
  );
}
