import { expect, test } from "vitest";
import { hasDetails, sentenceOf } from "./sentence";

const IMAGE = `127.0.0.1:5000/atoll/release@sha256:${"5eb3c4d01472".padEnd(64, "0")}`;

test.each([
  [`the release image cannot be read: registry 127.0.0.1:5000, image ${IMAGE}: image ${IMAGE} was not found`, "The release image cannot be read: image 127.0.0.1:5000/atoll/release@sha256:5eb3c4d01472… was not found"],
  ["pull the image: error sending request for url (https://quay.io:443/v2/): client error (Connect): tcp connect error: Connection refused (os error 111)", "Pull the image: Connection refused"],
  ['failed to pull image: Get "https://192.0.2.1/v2/": dial tcp 192.0.2.1:443: connect: connection refused', "Failed to pull image: connect: connection refused"],
  ["https://192.0.2.1/redfish/v1/Managers/1: the user name or the password is wrong: correct it, and send the request again", "The user name or the password is wrong: correct it, and send the request again"],
  ["read the archive: open mirror_seq1.tar: unexpected end of file: copy the archive again", "Read the archive: unexpected end of file: copy the archive again"],
  ["Host m-0: updated status from discovering to pending-for-input (Machine network: it is not defined; set it ; Waiting for the machine network)", "Host m-0: updated status from discovering to pending-for-input"],
  ["User input is required: Hosts: 0 can be masters; add hosts ; api_vips: none is set ; Waiting for the machine network", "User input is required: Hosts: 0 can be masters; add hosts"],
  [`r.example.org/release:4.18 cannot be read: the registry is not available now, try again: r.example.org/release: error sending request: dns error: 192.0.2.1 has no such name (r.example.org.)`, "r.example.org/release:4.18 cannot be read: 192.0.2.1 has no such name (r.example.org.)"],
  ["one line\n  stack backtrace:\n   0: main", "One line"],
])("%s", (text, sentence) => {
  expect(sentenceOf(text)).toBe(sentence);
  expect(hasDetails(text)).toBe(true);
});

test.each([
  "Memory: the host has 3993 MiB, needs 8192 MiB for role worker; add memory or choose another role",
  "Expecting imageset with prefix mirror_seq2: invalid mirror sequence order: publish the archive of sequence 2 first",
  // Places of a file are what a person looks for.
  "Site: agent-config.yaml: rendezvousIP: names the host that runs the installer: leave it out",
  "api_vips: none is set; set a free address of the hosts' network",
  "hosts[0].networkConfig: 10.0.0.0/8: no such network",
  "The clock was 12:30:05 at https://example.org:8443/",
  "http://127.0.0.1:8090/ leads each host to itself",
  `${IMAGE} needs a login, which this server does not have`,
  "Host m-0: updated status from discovering to known (The host is ready to be installed)",
  "Updated image information (image type is full-iso)",
  "Insufficient",
  "",
])("%s is one sentence", (text) => {
  expect(sentenceOf(text)).toBe(text);
  expect(hasDetails(text)).toBe(false);
});
