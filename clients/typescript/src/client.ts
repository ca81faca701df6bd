import { randomUUID } from "node:crypto";
import { readFileSync } from "node:fs";

import { ApiPromise, type ApiResponse } from "./answers.js";
import { type ErrorEntry, ConnectionFailed, ConnectionTimedOut, HundiError, apiError } from "./errors.js";
import type * as t from "./types.js";
import { VERSION } from "./version.js";

const ATTEMPTS_MAX = 6;
const PAUSE_SECONDS_FIRST = 0.5;
const PAUSE_SECONDS_MAX = 30;
const TIMEOUT_SECONDS = 30;
const PAGE_OBJECTS = 100;
const BASE_URL = "http://127.0.0.1:8080";
const AGENT = `hundi-typescript/${VERSION} node/${process.versions.node}`;

/** What bounds a call. */
export interface CallLimits {
  /** Bounds the attempts of one call. */
  attemptsMax?: number;
  /** Bounds one attempt. */
  timeoutSeconds?: number;
}

export interface ClientOptions extends CallLimits {
  /** The service's address, or else HUNDI_BASE_URL. */
  baseUrl?: string;
  /** Names your program to the operator, such as `shop/1.4`. */
  appInfo?: string;
  /** Sends the requests; for a proxy or certificates of your own. */
  fetch?: typeof globalThis.fetch;
  /** Waits between attempts; for tests. */
  sleep?: (seconds: number) => Promise<void>;
}

/** Options of one call. */
export interface RequestOptions extends CallLimits {
  /** Ends the call, also between two attempts. */
  signal?: AbortSignal;
}

export interface PostOptions extends RequestOptions {
  /** Store it before the call, and pass it again to repeat a call whose outcome is unknown. */
  idempotencyKey?: string;
}

type QueryValue = string | number | boolean | undefined;

/** The parameters of a request. Those of a list have a type of its own, such as `ListTransfers`. */
export type Query = Record<string, QueryValue | Record<string, QueryValue>>;

/** A page of a list. */
export interface Page<T> {
  data: T[];
  has_next: boolean;
}

interface RequestParts extends PostOptions {
  body?: object | undefined;
  query?: Query;
  accept?: "application/json" | "application/pdf" | "text/csv";
}

function searchOf(query: Query): string {
  const search = new URLSearchParams();
  for (const [name, value] of Object.entries(query)) {
    for (const [inner, held] of typeof value === "object" ? Object.entries(value) : ([["", value]] as const)) {
      if (held !== undefined) search.set(inner ? `${name}.${inner}` : name, String(held));
    }
  }
  return search.size > 0 ? `?${search}` : "";
}

/** An ID as a part of a path. An empty one would lead to the list. */
function segment(id: string): string {
  if (!id) throw new TypeError("the ID is empty");
  return encodeURIComponent(id);
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
  readonly balance: Balance;
  readonly beneficiaries: Beneficiaries;
  readonly corridors: Corridors;
  readonly senders: Senders;
  readonly quoteLocks: QuoteLocks;
  readonly transfers: Transfers;
  readonly deposits: Resource<t.Deposit, t.ListDeposits>;
  readonly payouts: Payouts;
  readonly refunds: Refunds;
  readonly statements: Statements;
  readonly events: Events;
  readonly webhookEndpoints: WebhookEndpoints;
  readonly testHelpers: TestHelpers;
  readonly #apiKey: string;
  readonly #options: ClientOptions;

  constructor(apiKey?: string, options: ClientOptions = {}) {
    this.#apiKey = findKey(apiKey);
    this.#options = options;
    this.balance = new Balance(this);
    this.corridors = new Corridors(this);
    this.statements = new Statements(this);
    this.beneficiaries = new Beneficiaries(this, "beneficiaries");
    this.senders = new Senders(this, "senders");
    this.quoteLocks = new QuoteLocks(this, "quote_locks");
    this.transfers = new Transfers(this, "transfers");
    this.deposits = new Resource<t.Deposit, t.ListDeposits>(this, "deposits");
    this.payouts = new Payouts(this, "payouts");
    this.refunds = new Refunds(this, "refunds");
    this.events = new Events(this, "events");
    this.webhookEndpoints = new WebhookEndpoints(this, "webhook_endpoints");
    this.testHelpers = new TestHelpers(this);
  }

  /** A client with the same key and other options. */
  withOptions(options: ClientOptions): Client {
    return new Client(this.#apiKey, { ...this.#options, ...options });
  }

  /** Sends a request until its answer is one that a retry would not change. */
  request<T>(method: "GET" | "POST" | "DELETE", path: string, parts: RequestParts = {}): ApiPromise<T> {
    return ApiPromise.of(this.#send<T>(method, path, parts));
  }

  async #send<T>(method: string, path: string, parts: RequestParts): Promise<ApiResponse<T>> {
    const options = this.#options;
    const sleep = options.sleep ?? pause;
    const attemptsMax = Math.max(1, parts.attemptsMax ?? options.attemptsMax ?? ATTEMPTS_MAX);
    const timeoutSeconds = parts.timeoutSeconds ?? options.timeoutSeconds ?? TIMEOUT_SECONDS;
    const base = (options.baseUrl ?? (process.env.HUNDI_BASE_URL || BASE_URL)).replace(/\/+$/, "");
    const url = base + path + searchOf(parts.query ?? {});
    const headers: Record<string, string> = {
      Accept: parts.accept ?? "application/json",
      Authorization: `Bearer ${this.#apiKey}`,
      "User-Agent": options.appInfo ? `${AGENT} ${options.appInfo}` : AGENT,
    };
    const idempotencyKey = method === "POST" ? (parts.idempotencyKey ?? randomUUID()) : undefined;
    if (idempotencyKey !== undefined) Object.assign(headers, { "Idempotency-Key": idempotencyKey, "Content-Type": "application/json" });
    const body = method === "POST" ? JSON.stringify(parts.body ?? {}) : null;
    for (let attempt = 1; ; attempt += 1) {
      const isLast = attempt >= attemptsMax;
      let seconds = Math.min(PAUSE_SECONDS_MAX, PAUSE_SECONDS_FIRST * 2 ** (attempt - 1)) * (0.5 + Math.random() / 2);
      parts.signal?.throwIfAborted();
      const timeout = AbortSignal.timeout(timeoutSeconds * 1000);
      const [signal, release] = either(timeout, parts.signal);
      let answer: Response;
      let content: Uint8Array;
      try {
        answer = await (options.fetch ?? fetch)(url, { method, headers, body, signal, redirect: "error" });
        content = new Uint8Array(await answer.arrayBuffer());
      } catch (error) {
        if (parts.signal?.aborted) throw parts.signal.reason;
        if (isLast) throw new (timeout.aborted ? ConnectionTimedOut : ConnectionFailed)(error, idempotencyKey);
        await sleep(seconds, parts.signal);
        continue;
      } finally {
        release();
      }
      const data = dataOf(answer, content);
      const errors = (data as { errors?: ErrorEntry[] } | undefined)?.errors ?? [];
      const requestId = answer.headers.get("request-id");
      if (answer.ok && data !== undefined) {
        const isReplayed = answer.headers.get("idempotent-replayed") === "true";
        return { data: data as T, status: answer.status, headers: answer.headers, requestId, isReplayed };
      }
      if (answer.ok || isLast || !isWorthARetry(answer.status, errors)) {
        throw apiError(answer.status, errors, requestId, idempotencyKey, answer.headers);
      }
      const told = answer.headers.get("retry-after") ?? "";
      if (/^[0-9]+$/.test(told)) seconds = Math.max(seconds, Number(told));
      await sleep(seconds, parts.signal);
    }
  }
}

function pause(seconds: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => {
      signal?.removeEventListener("abort", end);
      resolve();
    }, seconds * 1000);
    const end = () => {
      clearTimeout(timer);
      reject(signal?.reason);
    };
    signal?.addEventListener("abort", end, { once: true });
  });
}

/** A signal that follows the first of two. `AbortSignal.any` needs Node 20. */
function either(first: AbortSignal, second: AbortSignal | undefined): [AbortSignal, () => void] {
  if (!second) return [first, () => {}];
  const both = new AbortController();
  const end = () => both.abort(first.aborted ? first.reason : second.reason);
  for (const signal of [first, second]) signal.addEventListener("abort", end, { once: true });
  return [both.signal, () => { for (const signal of [first, second]) signal.removeEventListener("abort", end); }];
}

/** What an answer holds; undefined where it cannot be read. */
function dataOf(answer: Response, content: Uint8Array): unknown {
  const type = answer.headers.get("content-type") ?? "";
  if (answer.ok && type.startsWith("application/pdf")) return content;
  const text = new TextDecoder().decode(content);
  if (answer.ok && type.startsWith("text/csv")) return text;
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** All objects of a list, which is asked for page by page. `pages()` are the pages. */
export class Pager<T extends { id: string }> implements AsyncIterable<T> {
  constructor(
    private readonly client: Client,
    private readonly path: string,
    private readonly query: object,
    private readonly options: RequestOptions,
  ) {}

  async *pages(): AsyncGenerator<Page<T>, void, undefined> {
    const query = { limit: PAGE_OBJECTS, ...this.query } as Query;
    const cursor = query.ending_before === undefined ? "starting_after" : "ending_before";
    for (;;) {
      const page: Page<T> = await this.client.request<Page<T>>("GET", this.path, { ...this.options, query });
      yield { data: page.data, has_next: page.has_next };
      const last = page.data.at(-1);
      if (!page.has_next || !last) return;
      query[cursor] = last.id;
    }
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<T, void, undefined> {
    for await (const page of this.pages()) yield* page.data;
  }
}

class Balance {
  constructor(private readonly client: Client) {}

  retrieve(options?: RequestOptions): ApiPromise<t.Balance> {
    return this.client.request("GET", "/v1/balance", options);
  }
}

class Corridors {
  constructor(private readonly client: Client) {}

  /** What can be sent where, with the limits of an amount. */
  list(options?: RequestOptions): ApiPromise<t.Corridor[]> {
    return this.client.request<t.CorridorList>("GET", "/v1/corridors", options).map((list) => list.data);
  }
}

/** A period, from one Unix second up to another. */
export interface Period {
  from?: number;
  to?: number;
}

class Statements {
  constructor(private readonly client: Client) {}

  /** What transfers moved in a period. */
  retrieve(period: Period = {}, options?: RequestOptions): ApiPromise<t.Statement> {
    return this.client.request("GET", "/v1/statements", { ...options, query: { ...period } });
  }
  /** The same for a spreadsheet. */
  retrieveCsv(period: Period = {}, options?: RequestOptions): ApiPromise<string> {
    return this.client.request("GET", "/v1/statements", { ...options, query: { ...period, format: "csv" }, accept: "text/csv" });
  }
}

/** A kind of object that can be read. `Q` is how its list can be filtered. */
export class Resource<T extends { id: string }, Q extends object> {
  protected readonly path: string;

  constructor(protected readonly client: Client, name: string) {
    this.path = `/v1/${name}`;
  }

  retrieve(id: string, options?: RequestOptions): ApiPromise<T> {
    return this.get(id, "", options);
  }

  /** All objects, oldest first, with filters such as `{ status: "funding", created: { gte: 1790000000 } }`. */
  list(query: Q = {} as Q, options: RequestOptions = {}): Pager<T> {
    return new Pager<T>(this.client, this.path, query, options);
  }

  protected get<R>(id: string, below: string, options: RequestParts = {}): ApiPromise<R> {
    return this.client.request("GET", `${this.path}/${segment(id)}${below}`, options);
  }

  protected make<R>(below: string, body?: object, options: PostOptions = {}): ApiPromise<R> {
    return this.client.request("POST", this.path + below, { ...options, body });
  }

  protected post<R>(id: string, below: string, body?: object, options: PostOptions = {}): ApiPromise<R> {
    return this.client.request("POST", `${this.path}/${segment(id)}${below}`, { ...options, body });
  }
}

class Beneficiaries extends Resource<t.Beneficiary, t.ListBeneficiaries> {
  create(body: t.CreateBeneficiary, options?: PostOptions): ApiPromise<t.Beneficiary> {
    return this.make("", body, options);
  }
  update(id: string, body: t.UpdateBeneficiary, options?: PostOptions): ApiPromise<t.Beneficiary> {
    return this.post(id, "", body, options);
  }
  /** Checks the details of a beneficiary and creates none. */
  validate(body: t.ValidateBeneficiary, options?: PostOptions): ApiPromise<t.BeneficiaryValidation> {
    return this.make("/validate", body, options);
  }
}

class Senders extends Resource<t.Sender, t.ListSenders> {
  create(body: t.CreateSender, options?: PostOptions): ApiPromise<t.Sender> {
    return this.make("", body, options);
  }
}

class QuoteLocks extends Resource<t.QuoteLock, t.ListQuoteLocks> {
  create(body: t.CreateQuoteLock, options?: PostOptions): ApiPromise<t.QuoteLock> {
    return this.make("", body, options);
  }
}

class Transfers extends Resource<t.Transfer, t.ListTransfers> {
  create(body: t.CreateTransfer, options?: PostOptions): ApiPromise<t.Transfer> {
    return this.make("", body, options);
  }
  cancel(id: string, options?: PostOptions): ApiPromise<t.Transfer> {
    return this.post(id, "/cancel", undefined, options);
  }
  resolveFunding(id: string, body: t.ResolveFunding, options?: PostOptions): ApiPromise<t.Transfer> {
    return this.post(id, "/resolve_funding", body, options);
  }
  diagnoseFunding(id: string, body: t.DiagnoseFunding, options?: PostOptions): ApiPromise<t.FundingDiagnosis> {
    return this.post(id, "/funding/diagnose", body, options);
  }
}

class Payouts extends Resource<t.Payout, t.ListPayouts> {
  /** The signed receipt. */
  paymentAdvice(id: string, options?: RequestOptions): ApiPromise<t.PaymentAdviceDocument> {
    return this.get(id, "/payment_advice", options);
  }
  /** The receipt as a page to print. */
  paymentAdvicePdf(id: string, options?: RequestOptions): ApiPromise<Uint8Array> {
    return this.get(id, "/payment_advice", { ...options, accept: "application/pdf" });
  }
}

class Refunds extends Resource<t.Refund, t.ListRefunds> {
  /** Declares where the refund goes. */
  update(id: string, body: t.DeclareRefundAddress, options?: PostOptions): ApiPromise<t.Refund> {
    return this.post(id, "", body, options);
  }
}

class Events extends Resource<t.Event, t.ListEvents> {
  /** Count and chained hash of all events up to a given event, or up to the newest. */
  checkpoint(eventId?: string, options?: RequestOptions): ApiPromise<t.EventCheckpoint> {
    return this.client.request("GET", `${this.path}/checkpoint`, { ...options, query: { event_id: eventId } });
  }
  /**
   * Iterates over events after an ID, oldest first, and waits for new ones: it never ends by itself. Store the ID of
   * each event together with what you did about it, and go on from it: none is missed.
   */
  async *follow(after?: string, waitSeconds = 20, options: RequestOptions = {}): AsyncGenerator<t.Event, void, undefined> {
    for (;;) {
      const query: Query = { limit: PAGE_OBJECTS, wait: waitSeconds, starting_after: after };
      const page: Page<t.Event> = await this.client.request<Page<t.Event>>("GET", this.path, { ...options, query });
      for (const event of page.data) {
        yield event;
        after = event.id;
      }
    }
  }
}

class WebhookEndpoints extends Resource<t.WebhookEndpoint, t.ListWebhookEndpoints> {
  /** The answer shows the secret, this once. */
  create(body: t.CreateWebhookEndpoint, options?: PostOptions): ApiPromise<t.WebhookEndpoint> {
    return this.make("", body, options);
  }
  update(id: string, body: t.UpdateWebhookEndpoint, options?: PostOptions): ApiPromise<t.WebhookEndpoint> {
    return this.post(id, "", body, options);
  }
  delete(id: string, options?: RequestOptions): ApiPromise<t.DeletedWebhookEndpoint> {
    return this.client.request("DELETE", `${this.path}/${segment(id)}`, options);
  }
  rotateSecret(id: string, body: t.RotateWebhookSecret = {}, options?: PostOptions): ApiPromise<t.WebhookEndpoint> {
    return this.post(id, "/rotate_secret", body, options);
  }
  replay(id: string, body: t.ReplayWebhooks, options?: PostOptions): ApiPromise<t.WebhookReplay> {
    return this.post(id, "/replay", body, options);
  }
  /** Starts a drill of the endpoint. */
  drill(id: string, options?: PostOptions): ApiPromise<t.WebhookDrill> {
    return this.post(id, "/drill", undefined, options);
  }
  retrieveDrill(id: string, options?: RequestOptions): ApiPromise<t.WebhookDrill> {
    return this.get(id, "/drill", options);
  }
  /** Each attempt to deliver, with what your receiver answered. */
  listDeliveries(id: string, query: t.ListWebhookEndpointDeliveries = {}, options: RequestOptions = {}): Pager<t.WebhookDelivery> {
    return new Pager<t.WebhookDelivery>(this.client, `${this.path}/${segment(id)}/deliveries`, query, options);
  }
}

/** Moves the simulated world; test keys only. */
class TestHelpers {
  readonly beneficiaries: BeneficiaryHelpers;
  readonly chaos: Chaos;
  readonly clock: Clock;
  readonly payouts: PayoutHelpers;
  readonly refunds: RefundHelpers;
  readonly transfers: TransferHelpers;

  constructor(client: Client) {
    this.beneficiaries = new BeneficiaryHelpers(client, "beneficiaries");
    this.chaos = new Chaos(client, "chaos");
    this.clock = new Clock(client, "clock");
    this.payouts = new PayoutHelpers(client, "payouts");
    this.refunds = new RefundHelpers(client, "refunds");
    this.transfers = new TransferHelpers(client, "transfers");
  }
}

class Helper {
  protected readonly path: string;

  constructor(protected readonly client: Client, name: string) {
    this.path = `/v1/test_helpers/${name}`;
  }

  protected move<R>(id: string, verb: string, body?: object, options: PostOptions = {}): ApiPromise<R> {
    return this.client.request("POST", `${this.path}/${segment(id)}/${verb}`, { ...options, body });
  }
}

class BeneficiaryHelpers extends Helper {
  activate(id: string, options?: PostOptions): ApiPromise<t.Beneficiary> {
    return this.move(id, "activate", undefined, options);
  }
  reject(id: string, options?: PostOptions): ApiPromise<t.Beneficiary> {
    return this.move(id, "reject", undefined, options);
  }
  requireInput(id: string, options?: PostOptions): ApiPromise<t.Beneficiary> {
    return this.move(id, "require_input", undefined, options);
  }
}

class TransferHelpers extends Helper {
  /** The payer sends USDT: what is missing, unless the body says how much. */
  deposit(id: string, body: t.SimulateDeposit = {}, options?: PostOptions): ApiPromise<t.Deposit> {
    return this.move(id, "deposit", body, options);
  }
}

class PayoutHelpers extends Helper {
  settle(id: string, options?: PostOptions): ApiPromise<t.Payout> {
    return this.move(id, "settle", undefined, options);
  }
  fail(id: string, body: t.SimulateFailure = {}, options?: PostOptions): ApiPromise<t.Payout> {
    return this.move(id, "fail", body, options);
  }
  /** The beneficiary's bank sends the money back. */
  return(id: string, body: t.SimulateFailure = {}, options?: PostOptions): ApiPromise<t.Payout> {
    return this.move(id, "return", body, options);
  }
}

class RefundHelpers extends Helper {
  complete(id: string, options?: PostOptions): ApiPromise<t.Refund> {
    return this.move(id, "complete", undefined, options);
  }
}

class Clock extends Helper {
  /** Moves the account's test clock forward. */
  advance(seconds: number, options?: PostOptions): ApiPromise<t.TestClock> {
    return this.client.request("POST", this.path, { ...options, body: { advance_seconds: seconds } });
  }
}

class Chaos extends Helper {
  /** Lets the sandbox attack this key's requests, and one webhook endpoint, for a while. */
  start(body: t.StartChaos = {}, options?: PostOptions): ApiPromise<t.ChaosProfile> {
    return this.client.request("POST", this.path, { ...options, body });
  }
  retrieve(options?: RequestOptions): ApiPromise<t.ChaosProfile> {
    return this.client.request("GET", this.path, options);
  }
  stop(options?: PostOptions): ApiPromise<t.ChaosProfile> {
    return this.client.request("POST", `${this.path}/stop`, options);
  }
  /** What the sandbox saw this key's program do, graded. */
  report(options?: RequestOptions): ApiPromise<t.ChaosReport> {
    return this.client.request("GET", `${this.path}/report`, options);
  }
}
