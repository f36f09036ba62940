// A site of its own for a test: `atoll up` with the web UI in a temporary folder, and simulated hosts.

import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { chmodSync, closeSync, createWriteStream, existsSync, mkdirSync, mkdtempSync, openSync, readFileSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";

const WEB = resolve(import.meta.dirname, "..");
/** Cached tools, Postgres among them, are searched for below the workspace. */
const WORKSPACE = resolve(WEB, "..");
const PROGRAMS = resolve(WEB, process.env.ATOLL_PROGRAMS ?? "../target/debug");
export const STATIC_ROOT = resolve(WEB, process.env.STATIC_ROOT ?? "../target/web");

/** Ports of an `atoll up`. */
const PORTS = 7;
/** Below the ephemeral ports of outgoing connections. */
const [FIRST_PORT, LAST_PORT] = [20_000, 32_000];
const POLL_MS = 100;
/** A start that takes longer hangs: its error says where, before the limit of hooks ends it without a word. */
const PATIENCE_MS = 3 * 60_000;
/** A response that does not come is asked for again. */
const RESPONSE_MS = 30_000;
const PREFIX = "atoll-pages-";

interface State {
  api_url: string;
  ui_url: string;
  registry: string;
  registry_user: string;
  registry_password_file: string;
  pids: Record<string, number>;
}

export interface Site {
  /** Origin of the web UI. */
  url: string;
  /** A pull secret for the site's registry. */
  pullSecret: string;
  /** Folder of archives that are carried in. */
  archives: string;
  /** Kills a service; the supervisor starts it again. */
  kill(service: string): void;
  /** Kills a service whenever it starts, until the returned function is called. */
  keepDown(service: string): () => void;
  /** Starts hosts that boot the discovery image of a URL. */
  boot(url: string, options?: Machines): Promise<HostSim>;
  /** Starts simulated BMCs, whose hosts are off until they boot a discovery image: their rows, as the page takes them. */
  rack(options?: Machines): Promise<{ rows: string; hostSim: HostSim }>;
  stop(): Promise<void>;
}

interface Machines {
  masters?: number;
  workers?: number;
  speedup?: number;
}

export interface HostSim {
  /** Resolves when all hosts are nodes of an installed cluster; rejects with the end of the log. */
  installed: Promise<void>;
  /** Waits for `wait`; rejects when the hosts fail before. */
  until<T>(wait: Promise<T>): Promise<T>;
}

// Else a killed run leaves its worker, and with it services and browser. Vitest keeps a worker from exiting by itself.
process.on("disconnect", () => process.kill(process.pid, "SIGKILL"));

const sleep = (ms: number) => new Promise((done) => setTimeout(done, ms));

async function isFree(port: number): Promise<boolean> {
  const server = createServer();
  return new Promise((done) => {
    server.once("error", () => done(false));
    // Clients of a service that had this port may try again: an open connection would hold the server.
    server.on("connection", (socket) => socket.destroy());
    server.listen(port, "127.0.0.1", () => server.close(() => done(true)));
  });
}

async function freePorts(): Promise<number> {
  for (;;) {
    const first = FIRST_PORT + Math.floor(Math.random() * (LAST_PORT - FIRST_PORT - PORTS));
    const states = await Promise.all(Array.from({ length: PORTS }, (_, index) => isFree(first + index)));
    if (states.every(Boolean)) return first;
  }
}

function tail(log: string): string {
  return existsSync(log) ? readFileSync(log, "utf8").split("\n").slice(-20).join("\n") : "";
}

interface Program {
  name: string;
  args: string[];
  log: string;
  env?: Record<string, string>;
}

function start({ name, args, log, env = {} }: Program): ChildProcess {
  const out = openSync(log, "a");
  const child = spawn(join(PROGRAMS, name), args, { cwd: WORKSPACE, env: { ...process.env, NO_COLOR: "1", ...env }, stdio: ["pipe", out, out] });
  closeSync(out);
  return child;
}

const hasEnded = (child: ChildProcess) => child.exitCode !== null || child.signalCode !== null;

/** Waits for the end of a program, which must be a success. */
async function succeed(child: ChildProcess, { name, log }: Program): Promise<void> {
  const [code, signal] = hasEnded(child) ? [child.exitCode, child.signalCode] : await once(child, "exit");
  if (code !== 0) throw new Error(`${name} ended with ${code ?? signal}; the end of its log:\n${tail(log)}`);
}

/** Waits until `isSo`, with the end of a log in the error of a wait that hangs. */
async function until(what: string, log: string, isSo: () => boolean | Promise<boolean>): Promise<void> {
  const end = performance.now() + PATIENCE_MS;
  while (!(await isSo())) {
    if (performance.now() > end) throw new Error(`${what}: not after ${PATIENCE_MS / 1000} s; the end of ${log}:\n${tail(log)}`);
    await sleep(POLL_MS);
  }
}

async function end(child: ChildProcess, signal?: NodeJS.Signals): Promise<void> {
  if (hasEnded(child)) return;
  const exit = once(child, "exit");
  // A supervised `atoll up` ends with its input.
  if (signal) child.kill(signal);
  else child.stdin?.end();
  await exit;
}

/** Removes folders of killed runs. */
function sweep(): void {
  for (const name of readdirSync(tmpdir())) {
    const pid = name.startsWith(PREFIX) ? name.slice(PREFIX.length).split("-")[0] : undefined;
    if (pid && !existsSync(`/proc/${pid}`)) rmSync(join(tmpdir(), name), { recursive: true, force: true });
  }
}

interface SiteOptions {
  /** Whether it has a release and a live image. */
  content?: boolean;
}

/** Starts the services. On other ports once more: another program may take one between its choice and the start. */
export async function startSite(options: SiteOptions = {}): Promise<Site> {
  sweep();
  try {
    return await startOnce(options);
  } catch (error) {
    console.error(`A site did not start, another one is tried: ${error}`);
    return await startOnce(options);
  }
}

async function startOnce({ content = true }: SiteOptions): Promise<Site> {
  const data = mkdtempSync(join(tmpdir(), `${PREFIX}${process.pid}-`));
  // Under root, Postgres runs as another user.
  chmodSync(data, 0o755);
  mkdirSync(join(data, "demo"));
  const settings = join(data, "demo/settings.env");
  writeFileSync(settings, "");
  const up: Program = {
    name: "atoll",
    args: ["up", "--supervised", "--data", data, "--ports-from", String(await freePorts()), "--env-file", settings],
    log: join(data, "up.log"),
    // Simulated BMCs are on loopback addresses.
    env: { STATIC_ROOT, BMC_NETWORKS: "127.0.0.0/8" },
  };
  const services = start(up);
  const children: ChildProcess[] = [];
  const stop = async () => {
    await Promise.all(children.map((child) => end(child, "SIGTERM")));
    await end(services);
    rmSync(data, { recursive: true, force: true });
  };
  try {
    const stateFile = join(data, "atoll.json");
    await until("the services are ready", up.log, async () => {
      if (hasEnded(services)) await succeed(services, up);
      return existsSync(stateFile);
    });
    if (content) {
      const make: Program = { name: "demo", args: ["content", "--data", data], log: join(data, "content.log") };
      const made = start(make);
      children.push(made);
      await until("the content is made", make.log, () => hasEnded(made));
      await succeed(made, make);
    }
    const pidOf = (service: string) => (JSON.parse(readFileSync(stateFile, "utf8")) as State).pids[service];
    const state = JSON.parse(readFileSync(stateFile, "utf8")) as State;
    if (content) {
      await until("the release is on offer", up.log, () => hasVersions(state.ui_url));
      // Its live image is there a moment later: an earlier boot of a machine is answered with 503.
      const images = join(data, "image-service");
      await until("the live image is there", up.log, () => existsSync(images) && readdirSync(images).some((name) => name.endsWith(".iso")));
    }
    return {
      url: state.ui_url,
      pullSecret: pullSecret(state),
      archives: join(data, "archives"),
      boot: async (image, options) => {
        const { child, hostSim } = await boot(data, image, options);
        children.push(child);
        return hostSim;
      },
      rack: async (options) => {
        const { child, hostSim, rows } = await rack(data, options);
        children.push(child);
        return { rows, hostSim };
      },
      kill: (service) => {
        const pid = pidOf(service);
        if (pid === undefined) throw new Error(`no ${service} runs`);
        process.kill(pid, "SIGKILL");
      },
      keepDown: (service) => {
        const timer = setInterval(() => {
          try {
            const pid = pidOf(service);
            if (pid !== undefined) process.kill(pid, "SIGKILL");
          } catch {
            // It does not run at the moment.
          }
        }, POLL_MS);
        return () => clearInterval(timer);
      },
      stop,
    };
  } catch (error) {
    await stop();
    throw error;
  }
}

async function hasVersions(url: string): Promise<boolean> {
  const response = await fetch(`${url}/api/assisted-install/v2/openshift-versions`, { signal: AbortSignal.timeout(RESPONSE_MS) }).catch(() => undefined);
  return response?.ok === true && Object.keys((await response.json()) as object).length > 0;
}

function pullSecret({ registry, registry_user: user, registry_password_file: file }: State): string {
  const password = readFileSync(file, "utf8").trimEnd();
  const auth = Buffer.from(`${user}:${password}`).toString("base64");
  return JSON.stringify({ auths: { [registry]: { auth } } });
}

interface StartedMachines {
  child: ChildProcess;
  hostSim: HostSim;
}

async function boot(data: string, url: string, options?: Machines): Promise<StartedMachines> {
  const folder = mkdtempSync(join(data, "machines-"));
  const image = join(folder, "discovery.iso");
  const { ok, status, body } = await fetch(url);
  if (!ok || !body) throw new Error(`${url} responded with ${status}`);
  await pipeline(Readable.fromWeb(body as never), createWriteStream(image));
  return simulate(folder, ["--iso", image], options);
}

async function rack(data: string, options?: Machines): Promise<StartedMachines & { rows: string }> {
  const folder = mkdtempSync(join(data, "bmcs-"));
  const started = simulate(folder, ["--bmcs", folder], options);
  // The last of its files.
  await started.hostSim.until(until("the BMCs are ready", join(folder, "host-sim.log"), () => existsSync(join(folder, "hosts.yaml"))));
  return { ...started, rows: readFileSync(join(folder, "bmcs.csv"), "utf8") };
}

function simulate(folder: string, source: string[], { masters = 3, workers = 0, speedup = 60 }: Machines = {}): StartedMachines {
  const sim: Program = {
    name: "host-sim",
    args: [...source, "--hosts", `masters=${masters},workers=${workers}`, "--speedup", String(speedup), "--state-dir", join(folder, "state")],
    log: join(folder, "host-sim.log"),
  };
  const child = start(sim);
  const installed = succeed(child, sim);
  const failed = new Promise<never>((_, reject) => installed.catch(reject));
  // A test that ends earlier does not wait for them.
  failed.catch(() => {});
  return { child, hostSim: { installed, until: (wait) => Promise.race([wait, failed]) } };
}
