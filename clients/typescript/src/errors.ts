/** The base of all errors of this package. */
export class HundiError extends Error {
  constructor(message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = new.target.name;
  }
}

export interface ErrorEntry {
  code: string;
  message: string;
  metadata: Record<string, unknown>;
}

/**
 * The service refused the request, or answered with an error to the last attempt. Branch on `codes`. Behind a status of
 * 500 or more the outcome is unknown: send the request again with the same `idempotencyKey`.
 */
export class ApiError extends HundiError {
  constructor(
    readonly status: number,
    readonly errors: ErrorEntry[],
    /** Finds the request in the operator's log. */
    readonly requestId: string | null,
    readonly idempotencyKey?: string,
    readonly headers: Headers = new Headers(),
  ) {
    const said = errors.map((error) => `${error.code}: ${error.message}`).join("; ");
    const unread = status >= 200 && status < 300 ? "the answer is not JSON" : `HTTP status ${status}`;
    super(`${said || unread} (${requestId})`);
  }

  get codes(): string[] {
    return this.errors.map((error) => error.code);
  }

  /** Whether the cause can heal, and the request then needs a new idempotency key. */
  get newKeyRequired(): boolean {
    return this.errors.some((error) => error.metadata.new_key_required === true);
  }
}

/** 400: a field is wrong, or a rule of business forbids it. */
export class BadRequestError extends ApiError {}
/** 401: the API key is missing, wrong or has expired. */
export class AuthenticationError extends ApiError {}
/** 403: the API key may not do this. */
export class PermissionDeniedError extends ApiError {}
/** 404: the object, or one that the body names, does not exist for this key. */
export class NotFoundError extends ApiError {}
/** 409: the idempotency key belongs to another request, or to one that still runs. */
export class ConflictError extends ApiError {}
/** 429: too many requests, also behind all retries. */
export class RateLimitError extends ApiError {}
/** 500 or more, also behind all retries. The outcome is unknown. */
export class ServerError extends ApiError {}

const KINDS: Record<number, typeof ApiError> = {
  400: BadRequestError,
  401: AuthenticationError,
  403: PermissionDeniedError,
  404: NotFoundError,
  409: ConflictError,
  429: RateLimitError,
};

/** The error of a status. */
export function apiError(status: number, ...rest: [ErrorEntry[], string | null, string | undefined, Headers]): ApiError {
  const kind = KINDS[status] ?? (status >= 500 ? ServerError : ApiError);
  return new kind(status, ...rest);
}

/** No attempt got an answer. The outcome is unknown: send the request again with the same key. */
export class ConnectionFailed extends HundiError {
  constructor(cause: unknown, readonly idempotencyKey: string | undefined) {
    super(`no answer after all attempts: ${cause instanceof Error ? cause.message : String(cause)}`, { cause });
  }
}

/** The last attempt had no answer in time. */
export class ConnectionTimedOut extends ConnectionFailed {}

/** A delivery is not from the service, or too old. Answer it with 400. */
export class WebhookVerificationError extends HundiError {}
