/** An answer as it came. */
export interface ApiResponse<T> {
  data: T;
  status: number;
  headers: Headers;
  /** Finds the request in the operator's log. */
  requestId: string | null;
  /** Whether this is the stored answer to an earlier request with the same idempotency key. */
  isReplayed: boolean;
}

/** What a method returns: await it for the object, or its `withResponse()` for status and headers, too. */
export class ApiPromise<T> extends Promise<T> {
  #response: Promise<ApiResponse<T>> | undefined;

  static of<T>(response: Promise<ApiResponse<T>>): ApiPromise<T> {
    const made = new ApiPromise<T>((resolve, reject) => response.then(({ data }) => resolve(data), reject));
    made.#response = response;
    return made;
  }

  // What `then` returns is an ordinary promise.
  static override get [Symbol.species](): PromiseConstructor {
    return Promise;
  }

  /** The object with status, headers and request ID. */
  withResponse(): Promise<ApiResponse<T>> {
    // Who asks for the answer learns of a failure by it, and need not wait for the object, too.
    this.catch(() => {});
    return this.#response ?? Promise.reject(new TypeError("made by hand"));
  }

  /** The same answer with another object made of its own. */
  map<R>(change: (data: T) => R): ApiPromise<R> {
    return ApiPromise.of(this.withResponse().then((response) => ({ ...response, data: change(response.data) })));
  }
}
