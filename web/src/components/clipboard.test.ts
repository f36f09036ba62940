import { afterEach, expect, test, vi } from "vitest";
import { copy } from "./clipboard";

afterEach(() => vi.unstubAllGlobals());

test("without HTTPS the text is copied by a command of the document", () => {
  vi.stubGlobal("navigator", {});
  const setData = vi.fn();
  document.execCommand = () => document.dispatchEvent(Object.assign(new Event("copy", { cancelable: true }), { clipboardData: { setData } }));
  copy("oc apply");
  expect(setData.mock.calls).toEqual([["text/plain", "oc apply"]]);
  // Later copies of the person are not ours.
  document.execCommand("copy");
  expect(setData).toHaveBeenCalledTimes(1);
});
