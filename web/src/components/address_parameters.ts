// Filter, order and page of a table in the address: they survive a reload and can be sent to others.

import { useSearchParams } from "react-router-dom-v5-compat";

/** Parameters with the prefix `scope`; a change of others leads to the first page. */
export function useAddressParameters(scope = "") {
  const [parameters, setParameters] = useSearchParams();
  return {
    parameter: (name: string) => parameters.get(scope + name),
    change: (changes: Record<string, string>) =>
      setParameters((before) => {
        const after = new URLSearchParams(before);
        for (const [name, value] of Object.entries({ page: "", ...changes })) {
          if (value === "") after.delete(scope + name);
          else after.set(scope + name, value);
        }
        return after;
      }, { replace: true }),
  };
}
