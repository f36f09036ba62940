import { expect, test } from "vitest";
import { MAX_PASTED, parsePasted } from "./pasted";

const rows = (text: string) => parsePasted(text).rows.map(({ name, address, username, password }) => [name, address, username, password]);

test("lines with commas, a heading and blank lines", () => {
  const text = "Name,Address,User,Password\r\n\r\ncp-0,redfish://10.0.0.1,root,s3cret\n cp-1 , redfish://10.0.0.2 , root , s3cret \n";
  expect(rows(text)).toEqual([["cp-0", "redfish://10.0.0.1", "root", "s3cret"], ["cp-1", "redfish://10.0.0.2", "root", "s3cret"]]);
});

test("quoted values have commas, quotes and outer blanks", () => {
  expect(rows('a,redfish://a,root," x,""y"" "\n"b" , "redfish://b","root","z"')).toEqual([["a", "redfish://a", "root", ' x,"y" '], ["b", "redfish://b", "root", "z"]]);
});

test("lines with tabs are as they are", () => {
  expect(rows('a\tredfish://a\troot\t"x, y" \n')).toEqual([["a", "redfish://a", "root", '"x, y" ']]);
});

test("lines with problems stay, and are named without their content", () => {
  const text = 'a,redfish://a,root,s3cret\n\nb,redfish://b,root\nc,redfish://c,root,s3cret,x\nd,redfish://d,root,"s3cret';
  const { rows: good, problems, rest } = parsePasted(text);
  expect(good.map(({ name }) => name)).toEqual(["a"]);
  expect(problems.map(({ line, values }) => [line, values?.count])).toEqual([[3, 3], [4, 5], [5, undefined]]);
  expect(JSON.stringify(problems)).not.toContain("s3cret");
  expect(rest.split("\n")).toHaveLength(3);
});

test("an empty last value is a value", () => {
  expect(rows("a,redfish://a,root,")).toEqual([["a", "redfish://a", "root", ""]]);
});

test("rows and text are bounded", () => {
  const lines = (count: number) => Array.from({ length: count }, (_, at) => `h${at},redfish://h${at},root,x`).join("\n");
  expect(parsePasted(lines(1000)).problems).toEqual([]);
  const { rows: good, problems } = parsePasted(lines(1002));
  expect([good.length, problems.map(({ line }) => line)]).toEqual([1000, [1001, 1002]]);
  expect(parsePasted(lines(3), 2).rest).toBe("h2,redfish://h2,root,x");
  const large = "a".repeat(MAX_PASTED + 1);
  expect(parsePasted(large)).toMatchObject({ rows: [], rest: large, problems: [{ line: 1 }] });
});
