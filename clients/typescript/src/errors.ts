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

/** The service refused the request, or answered with an error to the last attempt. Branch on `codes`. */
export class ApiError extends HundiError {
  constructor(
    readonly status: number,
    readonly errors: ErrorEntry[],
    /** Finds the request in the operator's log. */
    readonly requestId: string | null,
  ) {
    const said = errors.map((error) => `${error.code}: ${error.message}`).join("; ");
    super(`${said || `HTTP status ${status}`} (${requestId})`);
  }

  get codes(): string[] {
    return this.errors.map((error) => error.code);
  }

  /** Whether the cause can heal, and the request then needs a new idempotency key. */
  get newKeyRequired(): boolean {
    return this.errors.some((error) => error.metadata.new_key_required === true);
  }
}

/** No attempt got an answer. The outcome is unknown: send the request again with the same key. */
export class ConnectionFailed extends HundiError {
  constructor(cause: unknown, readonly idempotencyKey: string | undefined) {
    super(`no answer after all attempts: ${cause instanceof Error ? cause.message : String(cause)}`, { cause });
  }
}

/** A delivery is not from the service, or too old. Answer it with 400. */
export class WebhookVerificationError extends HundiError {}
