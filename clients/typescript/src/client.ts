import { randomUUID } from "node:crypto";
import { readFileSync } from "node:fs";

import { ApiError, ConnectionFailed, HundiError, type ErrorEntry } from "./errors.js";
import type * as t from "./types.js";

const ATTEMPTS_MAX = 6;
const PAUSE_SECONDS_FIRST = 0.5;
const PAUSE_SECONDS_MAX = 30;
const TIMEOUT_SECONDS = 30;
const PAGE_OBJECTS = 100;

export interface ClientOptions {
  baseUrl?: string;
  /** Bounds the attempts of one call. */
  attemptsMax?: number;
  /** Bounds one attempt. */
  timeoutSeconds?: number;
  /** Waits between attempts; for tests. */
  sleep?: (seconds: number) => Promise<void>;
}

export interface PostOptions {
  /** Store it before the call, and pass it again to repeat a call whose outcome is unknown. */
  idempotencyKey?: string;
}

/** Filters and cursors of a list; names such as `created.gte` are quoted. */
export type Query = Record<string, string | number | boolean | undefined>;

interface Page<T> {
  data: T[];
  has_next: boolean;
}

/** The specification's table: 5xx, 429, and 409 while the first request runs. */
function isWorthARetry(status: number, errors: ErrorEntry[]): boolean {
  return status === 429 || status >= 500 || (status === 409 && errors.some((error) => error.code === "resource_locked"));
}

function findKey(given: string | undefined): string {
  const file = process.env.HUNDI_API_KEY_FILE;
  const key = (given || process.env.HUNDI_API_KEY || (file ? readFileSync(file, "utf8") : "")).trim();
  if (!key) throw new HundiError("no API key: pass apiKey, or set HUNDI_API_KEY or HUNDI_API_KEY_FILE");
  return key;
}

/** Calls the service with one API key: the argument, or HUNDI_API_KEY, or what the file HUNDI_API_KEY_FILE holds. One attribute a resource, one method an operation. */
export class Client {
  readonly beneficiaries: Beneficiaries;
  readonly senders: Senders;
  readonly quoteLocks: QuoteLocks;
  readonly transfers: Transfers;
  readonly deposits: Resource<t.Deposit>;
  readonly payouts: Payouts;
  readonly refunds: Refunds;
  readonly events: Events;
  readonly webhookEndpoints: WebhookEndpoints;
  readonly testHelpers: TestHelpers;
  readonly #apiKey: string;
  readonly #baseUrl: string;
  readonly #attemptsMax: number;
  readonly #timeoutSeconds: number;
  readonly #sleep: (seconds: number) => Promise<void>;

  constructor(apiKey?: string, options: ClientOptions = {}) {
    this.#apiKey = findKey(apiKey);
    this.#baseUrl = (options.baseUrl ?? "http://127.0.0.1:8080").replace(/\/+$/, "");
    this.#attemptsMax = Math.max(1, options.attemptsMax ?? ATTEMPTS_MAX);
    this.#timeoutSeconds = options.timeoutSeconds ?? TIMEOUT_SECONDS;
    this.#sleep = options.sleep ?? ((seconds) => new Promise((resolve) => setTimeout(resolve, seconds * 1000)));
    this.beneficiaries = new Beneficiaries(this, "beneficiaries");
    this.senders = new Senders(this, "senders");
    this.quoteLocks = new QuoteLocks(this, "quote_locks");
    this.transfers = new Transfers(this, "transfers");
    this.deposits = new Resource<t.Deposit>(this, "deposits");
    this.payouts = new Payouts(this, "payouts");
    this.refunds = new Refunds(this, "refunds");
    this.events = new Events(this, "events");
    this.webhookEndpoints = new WebhookEndpoints(this, "webhook_endpoints");
    this.testHelpers = new TestHelpers(this);
  }

  balance(): Promise<t.Balance> {
    return this.request("GET", "/v1/balance");
  }

  corridors(): Promise<t.CorridorList> {
    return this.request("GET", "/v1/corridors");
  }

  /** What transfers moved in a period. */
  statement(query: Query = {}): Promise<t.Statement> {
    return this.request("GET", "/v1/statements", { query });
  }

  /** Sends a request until its answer is one that a retry would not change. */
  async request<T>(
    method: "GET" | "POST" | "DELETE",
    path: string,
    { body, query = {}, idempotencyKey }: { body?: object | undefined; query?: Query } & PostOptions = {},
  ): Promise<T> {
    const search = new URLSearchParams();
    for (const [name, value] of Object.entries(query)) if (value !== undefined) search.set(name, String(value));
    const url = `${this.#baseUrl}${path}${search.size > 0 ? `?${search}` : ""}`;
    const headers: Record<string, string> = { Authorization: `Bearer ${this.#apiKey}`, "User-Agent": "hundi-typescript/0.2.0" };
    if (method === "POST") {
      idempotencyKey ??= randomUUID();
      headers["Idempotency-Key"] = idempotencyKey;
      headers["Content-Type"] = "application/json";
    }
    const content = method === "POST" ? JSON.stringify(body ?? {}) : null;
    for (let attempt = 1; ; attempt += 1) {
      const isLast = attempt >= this.#attemptsMax;
      let pause = Math.min(PAUSE_SECONDS_MAX, PAUSE_SECONDS_FIRST * 2 ** (attempt - 1)) * (0.5 + Math.random() / 2);
      try {
        const signal = AbortSignal.timeout(this.#timeoutSeconds * 1000);
        const answer = await fetch(url, { method, headers, body: content, signal, redirect: "error" });
        const text = await answer.text();
        if (answer.ok) return JSON.parse(text) as T;
        const errors = errorsIn(text);
        if (isLast || !isWorthARetry(answer.status, errors)) {
          throw new ApiError(answer.status, errors, answer.headers.get("request-id"));
        }
        const told = answer.headers.get("retry-after") ?? "";
        if (/^[0-9]+$/.test(told)) pause = Math.max(pause, Number(told));
      } catch (error) {
        if (error instanceof ApiError) throw error;
        if (isLast) throw new ConnectionFailed(error, idempotencyKey);
      }
      await this.#sleep(pause);
    }
  }
}

function errorsIn(text: string): ErrorEntry[] {
  try {
    return (JSON.parse(text) as { errors?: ErrorEntry[] }).errors ?? [];
  } catch {
    return [];
  }
}

/** A kind of object that can be read. */
export class Resource<T extends { id: string }> {
  protected readonly path: string;

  constructor(protected readonly client: Client, name: string) {
    this.path = `/v1/${name}`;
  }

  retrieve(id: string): Promise<T> {
    return this.client.request("GET", `${this.path}/${encodeURIComponent(id)}`);
  }

  /** Iterates over all objects, oldest first. */
  list(query: Query = {}): AsyncGenerator<T, void, undefined> {
    return this.pages<T>(this.path, query);
  }

  protected async *pages<R extends { id: string }>(path: string, query: Query): AsyncGenerator<R, void, undefined> {
    const asked: Query = { limit: PAGE_OBJECTS, ...query };
    const cursor = asked.ending_before === undefined ? "starting_after" : "ending_before";
    for (;;) {
      const page: Page<R> = await this.client.request("GET", path, { query: asked });
      yield* page.data;
      const last = page.data.at(-1);
      if (!page.has_next || !last) return;
      asked[cursor] = last.id;
    }
  }

  protected post<R>(below: string, body?: object, options: PostOptions = {}): Promise<R> {
    return this.client.request("POST", this.path + below, { body, ...options });
  }
}

class Beneficiaries extends Resource<t.Beneficiary> {
  create(body: t.CreateBeneficiary, options?: PostOptions): Promise<t.Beneficiary> {
    return this.post("", body, options);
  }
  update(id: string, body: t.UpdateBeneficiary, options?: PostOptions): Promise<t.Beneficiary> {
    return this.post(`/${id}`, body, options);
  }
  /** Checks the details of a beneficiary and creates none. */
  validate(body: t.ValidateBeneficiary, options?: PostOptions): Promise<t.BeneficiaryValidation> {
    return this.post("/validate", body, options);
  }
}

class Senders extends Resource<t.Sender> {
  create(body: t.CreateSender, options?: PostOptions): Promise<t.Sender> {
    return this.post("", body, options);
  }
}

class QuoteLocks extends Resource<t.QuoteLock> {
  create(body: t.CreateQuoteLock, options?: PostOptions): Promise<t.QuoteLock> {
    return this.post("", body, options);
  }
}

class Transfers extends Resource<t.Transfer> {
  create(body: t.CreateTransfer, options?: PostOptions): Promise<t.Transfer> {
    return this.post("", body, options);
  }
  cancel(id: string, options?: PostOptions): Promise<t.Transfer> {
    return this.post(`/${id}/cancel`, undefined, options);
  }
  resolveFunding(id: string, body: t.ResolveFunding, options?: PostOptions): Promise<t.Transfer> {
    return this.post(`/${id}/resolve_funding`, body, options);
  }
  diagnoseFunding(id: string, body: t.DiagnoseFunding, options?: PostOptions): Promise<t.FundingDiagnosis> {
    return this.post(`/${id}/funding/diagnose`, body, options);
  }
}

class Payouts extends Resource<t.Payout> {
  paymentAdvice(id: string): Promise<t.PaymentAdviceDocument> {
    return this.client.request("GET", `${this.path}/${encodeURIComponent(id)}/payment_advice`);
  }
}

class Refunds extends Resource<t.Refund> {
  /** Declares where the refund goes. */
  update(id: string, body: t.DeclareRefundAddress, options?: PostOptions): Promise<t.Refund> {
    return this.post(`/${id}`, body, options);
  }
}

class Events extends Resource<t.Event> {
  checkpoint(): Promise<t.EventCheckpoint> {
    return this.client.request("GET", `${this.path}/checkpoint`);
  }
  /**
   * Iterates over events after an ID, oldest first, and waits for new ones: it never ends by itself. Store the ID of
   * each event together with what you did about it, and go on from it: none is missed.
   */
  async *follow(after?: string, waitSeconds = 20): AsyncGenerator<t.Event, void, undefined> {
    for (;;) {
      const query: Query = { limit: PAGE_OBJECTS, wait: waitSeconds, starting_after: after };
      const page: Page<t.Event> = await this.client.request("GET", this.path, { query });
      for (const event of page.data) {
        yield event;
        after = event.id;
      }
    }
  }
}

class WebhookEndpoints extends Resource<t.WebhookEndpoint> {
  /** The answer shows the secret, this once. */
  create(body: t.CreateWebhookEndpoint, options?: PostOptions): Promise<t.WebhookEndpoint> {
    return this.post("", body, options);
  }
  update(id: string, body: t.UpdateWebhookEndpoint, options?: PostOptions): Promise<t.WebhookEndpoint> {
    return this.post(`/${id}`, body, options);
  }
  delete(id: string): Promise<t.DeletedWebhookEndpoint> {
    return this.client.request("DELETE", `${this.path}/${encodeURIComponent(id)}`);
  }
  rotateSecret(id: string, body: t.RotateWebhookSecret = {}, options?: PostOptions): Promise<t.WebhookEndpoint> {
    return this.post(`/${id}/rotate_secret`, body, options);
  }
  replay(id: string, body: t.ReplayWebhooks, options?: PostOptions): Promise<t.WebhookReplay> {
    return this.post(`/${id}/replay`, body, options);
  }
  /** Starts a drill of the endpoint. */
  drill(id: string, options?: PostOptions): Promise<t.WebhookDrill> {
    return this.post(`/${id}/drill`, undefined, options);
  }
  retrieveDrill(id: string): Promise<t.WebhookDrill> {
    return this.client.request("GET", `${this.path}/${encodeURIComponent(id)}/drill`);
  }
  deliveries(id: string, query: Query = {}): AsyncGenerator<t.WebhookDelivery, void, undefined> {
    return this.pages<t.WebhookDelivery>(`${this.path}/${encodeURIComponent(id)}/deliveries`, query);
  }
}

/** Moves the simulated world; test keys only. */
class TestHelpers {
  constructor(private readonly client: Client) {}

  private post<R>(path: string, body?: object): Promise<R> {
    return this.client.request("POST", `/v1/test_helpers/${path}`, { body });
  }
  deposit(transferId: string, body: t.SimulateDeposit = {}): Promise<t.Deposit> {
    return this.post(`transfers/${transferId}/deposit`, body);
  }
  advanceClock(seconds: number): Promise<t.TestClock> {
    return this.post("clock", { advance_seconds: seconds });
  }
  /** Lets the sandbox attack this key's requests, and one webhook endpoint, for a while. */
  startChaos(body: t.StartChaos = {}): Promise<t.ChaosProfile> {
    return this.post("chaos", body);
  }
  retrieveChaos(): Promise<t.ChaosProfile> {
    return this.client.request("GET", "/v1/test_helpers/chaos");
  }
  stopChaos(): Promise<t.ChaosProfile> {
    return this.post("chaos/stop");
  }
  /** What the sandbox saw this key's program do, graded. */
  chaosReport(): Promise<t.ChaosReport> {
    return this.client.request("GET", "/v1/test_helpers/chaos/report");
  }
  activateBeneficiary(id: string): Promise<t.Beneficiary> {
    return this.post(`beneficiaries/${id}/activate`);
  }
  rejectBeneficiary(id: string): Promise<t.Beneficiary> {
    return this.post(`beneficiaries/${id}/reject`);
  }
  requireBeneficiaryInput(id: string): Promise<t.Beneficiary> {
    return this.post(`beneficiaries/${id}/require_input`);
  }
  settlePayout(id: string): Promise<t.Payout> {
    return this.post(`payouts/${id}/settle`);
  }
  failPayout(id: string, body: t.SimulateFailure = {}): Promise<t.Payout> {
    return this.post(`payouts/${id}/fail`, body);
  }
  returnPayout(id: string, body: t.SimulateFailure = {}): Promise<t.Payout> {
    return this.post(`payouts/${id}/return`, body);
  }
  completeRefund(id: string): Promise<t.Refund> {
    return this.post(`refunds/${id}/complete`);
  }
}
