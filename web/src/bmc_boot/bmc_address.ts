// Addresses of BMCs that the installer API drives: those of a BareMetalHost with Redfish, or https://HOST.

import { MAX_ADDRESS } from "./records";

/** Source: schemes of baremetal-operator that are Redfish. */
const SCHEMES = ["redfish", "redfish-virtualmedia", "redfish-uefihttp", "idrac-virtualmedia", "idrac-redfish", "ilo5-virtualmedia", "ilo5-redfish"];

const PROBLEMS = {
  missing: { problem: "The address is missing." },
  long: { problem: "The address has more than 1024 bytes." },
  blank: { problem: "The address has a blank or a control character: remove it." },
  scheme: { problem: "Only Redfish is driven: write redfish-virtualmedia://192.0.2.1/redfish/v1/Systems/1." },
  credentials: { problem: "The address has a user name or password: write them into their own fields." },
  host: { problem: "The host is neither a name nor an IP address; IPv6 is written as [fd00::1]." },
  port: { problem: "The port is no number from 1 to 65535." },
  query: { problem: "Remove everything from ? or # on." },
  path: { problem: "The path is none of a system, as /redfish/v1/Systems/1." },
};

const LABEL = /^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$/;

function isHost(host: string): boolean {
  const labels = host.split(".");
  if (labels.every((label) => /^\d+$/.test(label))) return labels.length === 4 && labels.every((label) => /^(0|[1-9]\d{0,2})$/.test(label) && Number(label) <= 255);
  return host.length <= 253 && labels.every((label) => LABEL.test(label));
}

/** An IPv6 address in its shortest form; undefined for other texts. */
function ipv6(text: string): string | undefined {
  try {
    return new URL(`http://[${text}]`).hostname;
  } catch {
    return undefined;
  }
}

function parsedHost(text: string): string | undefined {
  const host = text.toLowerCase();
  if (host.startsWith("[") && host.endsWith("]")) return ipv6(host.slice(1, -1));
  return isHost(host) ? host : undefined;
}

function isPath(path: string): boolean {
  const trimmed = path.replace(/\/+$/, "");
  if (trimmed.replace(/^\/+/, "") === "redfish/v1" || trimmed === "") return true;
  return trimmed.startsWith("/redfish/v1/") && !trimmed.split("/").includes("..") && !/%(?![0-9a-f]{2})/i.test(trimmed);
}

/** The system of an address, equal for all its spellings, or the problem of the address, as a text of the locale files. */
export function parseAddress(text: string): { system: string } | { problem: string } {
  if (text === "") return PROBLEMS.missing;
  if (new TextEncoder().encode(text).length > MAX_ADDRESS) return PROBLEMS.long;
  if (/[\s\p{Cc}]/u.test(text)) return PROBLEMS.blank;
  const [, scheme = "", separator = "", rest = ""] = /^([a-z][a-z0-9+-]*)(:\/\/|:)(.*)$/i.exec(text) ?? [];
  const [name = "", transport] = scheme.toLowerCase().split("+");
  const isWeb = ["http", "https"].includes(name) && transport === undefined && separator === "://";
  const isRedfish = SCHEMES.includes(name) && (transport === undefined || ["http", "https"].includes(transport));
  if (!isWeb && !isRedfish) return PROBLEMS.scheme;
  const [, authority = "", path = "", query = ""] = /^([^/?#]*)([^?#]*)(.*)$/.exec(rest) ?? [];
  if (authority.includes("@")) return PROBLEMS.credentials;
  // IPv6 without brackets matches nothing.
  const [, named = "", port] = /^(\[[^\]]*\]|[^:]*)(?::([^:]*))?$/.exec(authority) ?? [];
  const host = parsedHost(named);
  if (host === undefined) return PROBLEMS.host;
  if (port !== undefined && (!/^\d{1,5}$/.test(port) || Number(port) < 1 || Number(port) > 65_535)) return PROBLEMS.port;
  if (query !== "") return PROBLEMS.query;
  if (!isPath(path)) return PROBLEMS.path;
  const standard = name === "http" || transport === "http" ? 80 : 443;
  const trimmed = path.replace(/\/+$/, "");
  const system = trimmed.replace(/^\/+/, "") === "redfish/v1" ? "" : trimmed;
  return { system: `${host}:${port === undefined ? standard : Number(port)}${system}` };
}
