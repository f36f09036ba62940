import { expect, test } from "vitest";
import { parseAddress } from "./bmc_address";

test.each([
  ["redfish://10.0.0.1", "10.0.0.1:443"],
  ["redfish-virtualmedia://BMC.example/redfish/v1/Systems/1/", "bmc.example:443/redfish/v1/Systems/1"],
  ["idrac-virtualmedia+https://[fd00::0001]/redfish/v1/Systems/System.Embedded.1", "[fd00::1]:443/redfish/v1/Systems/System.Embedded.1"],
  ["redfish+http://10.0.0.1", "10.0.0.1:80"],
  ["redfish:10.0.0.1", "10.0.0.1:443"],
  ["https://10.0.0.1", "10.0.0.1:443"],
  ["http://10.0.0.1:8000/redfish/v1", "10.0.0.1:8000"],
])("%s is driven", (address, system) => expect(parseAddress(address)).toEqual({ system }));

test.each([
  ["", "missing"],
  ["10.0.0.1", "Only Redfish"],
  ["ipmi://10.0.0.1", "Only Redfish"],
  ["https:10.0.0.1", "Only Redfish"],
  ["redfish+ssh://10.0.0.1", "Only Redfish"],
  ["file:///etc/passwd", "Only Redfish"],
  ["redfish://root:s3cret@10.0.0.1", "own fields"],
  ["redfish://10.0.0.1 ", "blank"],
  ["redfish://", "neither a name"],
  ["redfish://10.0.0.256", "neither a name"],
  ["redfish://bmc_1", "neither a name"],
  ["redfish://fd00::1", "neither a name"],
  ["redfish://[fd00::g]", "neither a name"],
  ["redfish://10.0.0.1:0", "port"],
  ["redfish://10.0.0.1:65536", "port"],
  ["https://10.0.0.1?token=x", "? or #"],
  ["https://10.0.0.1/redfish/v1/Systems/1#x", "? or #"],
  ["https://10.0.0.1/api", "path"],
  ["https://10.0.0.1/redfish/v1/../../api", "path"],
  ["https://10.0.0.1/redfish/v1/Systems/%1", "path"],
  [`https://bmc/redfish/v1/Systems/${"1".repeat(1024)}`, "1024 bytes"],
])("%s is refused", (address, part) => {
  const parsed = parseAddress(address);
  expect("problem" in parsed && parsed.problem).toContain(part);
});
