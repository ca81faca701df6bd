export { ApiPromise, type ApiResponse } from "./answers.js";
export {
  Client, Pager, type CallLimits, type ClientOptions, type Page, type Period, type PostOptions, type Query, type RequestOptions,
} from "./client.js";
export {
  ApiError, AuthenticationError, BadRequestError, ConflictError, ConnectionFailed, ConnectionTimedOut, HundiError, NotFoundError,
  PermissionDeniedError, RateLimitError, ServerError, WebhookVerificationError, type ErrorEntry,
} from "./errors.js";
export { verifyWebhook } from "./webhooks.js";
export type * from "./types.js";
