// The format of pull secrets. Source: containers-auth.json(5).

interface Login {
  registry: string;
  user: string;
  password: string;
  /** A pull secret whose other logins are kept; may be empty. */
  present: string;
}

type Result = { text: string } | { field: keyof Login; problem: string };

/** The pull secret with this login, or the first problem. */
export function mergedPullSecret({ registry, user, password, present }: Login): Result {
  if (!/^[a-z0-9]([a-z0-9.-]*[a-z0-9])?(:\d{1,5})?$/i.test(registry)) return { field: "registry", problem: "The registry is a host name, with a port if it has another than 443." };
  if (user === "" || user.includes(":")) return { field: "user", problem: "A user is required, without a colon." };
  if (password === "") return { field: "password", problem: "A password is required." };
  let others: Record<string, unknown> = {};
  if (present.trim() !== "") {
    try {
      const { auths } = JSON.parse(present) as { auths?: unknown };
      if (typeof auths !== "object" || auths === null) throw new SyntaxError();
      others = auths as Record<string, unknown>;
    } catch {
      return { field: "present", problem: 'This is no pull secret: expected is {"auths":{…}}.' };
    }
  }
  const bytes = new TextEncoder().encode(`${user}:${password}`);
  const auth = btoa(String.fromCharCode(...bytes));
  return { text: JSON.stringify({ auths: { ...others, [registry]: { auth } } }) };
}

/** The registry beside a web UI of this name, as the names of one site are usually built; addresses have none. */
export function likelyRegistry(hostname: string): string {
  const [, ...domain] = hostname.split(".");
  return domain.length === 0 || /^[\d.]+$|:/.test(hostname) ? hostname : `registry.${domain.join(".")}`;
}
