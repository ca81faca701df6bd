export { Client, type ClientOptions, type PostOptions } from "./client.js";
export { ApiError, ConnectionFailed, HundiError, WebhookVerificationError, type ErrorEntry } from "./errors.js";
export { verifyWebhook } from "./webhooks.js";
export type * from "./types.js";
