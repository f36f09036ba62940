import { expect, test } from "vitest";
import { EMPTY, NO_TARGET, paramsOf, typedRows, withFailed, withLogin, withRows } from "./form_values";
import type { BmcBootHost } from "./records";

const row = (name: string, username = "", password = "") => ({ ...NO_TARGET, name, address: `redfish://${name}`, username, password });
const failed = (name: string) => ({ name, address: `https://${name}`, state: "failed" }) as BmcBootHost;

test("empty rows leave, the last one stays", () => {
  expect(typedRows([NO_TARGET, row("a"), NO_TARGET])).toEqual([row("a")]);
  expect(typedRows([NO_TARGET])).toEqual([NO_TARGET]);
});

test("added rows are at most 1000", () => {
  expect(withRows([NO_TARGET], [row("a")])).toEqual([row("a")]);
  expect(withRows([row("a")], Array.from({ length: 1000 }, (_, at) => row(`b${at}`)))).toHaveLength(1000);
});

test("failed hosts are rows without credentials", () => {
  expect(withFailed([row("a", "root", "x"), row("b", "root", "x")], [failed("a")], [])).toEqual([{ ...row("a"), address: "https://a" }, row("b", "root", "x")]);
  const sent = [{ ...row("a", "root", "x"), disable_certificate_verification: true }, row("b", "root", "x")];
  expect(withFailed([NO_TARGET], [failed("a"), failed("b")], sent).map((one) => one.disable_certificate_verification)).toEqual([true, false]);
});

test("one login is that of rows without any", () => {
  expect(withLogin([row("a"), row("b", "admin", "y"), NO_TARGET], "root", "x")).toEqual([row("a", "root", "x"), row("b", "admin", "y"), NO_TARGET]);
});

test("the request has the image type only when it is chosen", () => {
  expect(paramsOf({ ...EMPTY, bmcs: [] })).toEqual({ medium: "virtual-media", bmcs: [], eject_after_install: false });
  expect(paramsOf({ ...EMPTY, imageType: "minimal-iso", ejects: true, bmcs: [] })).toEqual({ medium: "virtual-media", image_type: "minimal-iso", bmcs: [], eject_after_install: true });
});
