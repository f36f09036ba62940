import { execFileSync } from "node:child_process";
import { expect, test } from "vitest";
import { quoted, replaceCommand } from "./command";

test("the command has the choices of the plan", () => {
  expect(replaceCommand({ node: "cp-1" })).toBe("atoll node replace cp-1 --kubeconfig kubeconfig");
  expect(replaceCommand({ node: "cp-1", new_name: "cp-3", new_address: "fd00::3", unwanted: true, also_lost: ["cp-0", "cp-2"] }))
    .toBe("atoll node replace cp-1 --kubeconfig kubeconfig --new-name cp-3 --new-address fd00::3 --unwanted --also-lost cp-0 --also-lost cp-2");
  expect(replaceCommand({ node: "cp-1", new_name: "-x", new_address: "10.0.0.1; reboot" }))
    .toBe("atoll node replace cp-1 --kubeconfig kubeconfig --new-name=-x --new-address '10.0.0.1; reboot'");
});

test.each(["cp-1.example.com", "", "a b", "it's", "''", "$(reboot)", "`id`", "a;b", "a\nb", "~", "*", "!x", "\\", "ä", '"'])("a shell does not change %j", (word) => {
  expect(execFileSync("/bin/sh", ["-c", `printf %s ${quoted(word)}`], { encoding: "utf8" })).toBe(word);
});
