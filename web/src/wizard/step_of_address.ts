// The step that the address names: links to it come from the list of mistakes and from the page of the cluster.

import { useEffect } from "react";
import { useLocation } from "react-router-dom-v5-compat";

export { CurrentStep } from "../mistakes/current_step";

/** Goes to the step of the address, at each navigation to it. Steps that the wizard does not have are left out. */
export function useStepOfAddress<Step extends string>(steps: Step[] | undefined, go: (step: Step) => void): void {
  const { search, key } = useLocation();
  const areKnown = steps !== undefined;
  useEffect(() => {
    const named = new URLSearchParams(search).get("step");
    const step = steps?.find((one) => one === named);
    if (step !== undefined) go(step);
  }, [search, key, areKnown]);
}
