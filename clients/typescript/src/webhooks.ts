import { createHmac, timingSafeEqual } from "node:crypto";

import { WebhookVerificationError } from "./errors.js";
import type { Event } from "./types.js";

const TOLERANCE_SECONDS = 300;

type Headers = Record<string, string | string[] | undefined> | globalThis.Headers;

function header(headers: Headers, name: string): string {
  const named = headers instanceof globalThis.Headers
    ? headers.get(name)
    : Object.entries(headers).find(([other]) => other.toLowerCase() === name)?.[1];
  if (typeof named !== "string") throw new WebhookVerificationError(`the header ${name} is missing`);
  return named;
}

/**
 * Returns the event of a delivery. `body` is what arrived, byte for byte.
 * Throws WebhookVerificationError if the signature is wrong, or the timestamp is more than five minutes away.
 */
export function verifyWebhook(
  body: Uint8Array | string,
  headers: Headers,
  secret: string,
  nowSeconds: number = Date.now() / 1000,
): Event {
  const id = header(headers, "webhook-id");
  const timestamp = header(headers, "webhook-timestamp");
  if (!/^[0-9]+$/.test(timestamp)) throw new WebhookVerificationError("the timestamp is malformed");
  const expected = createHmac("sha256", secret).update(`${id}.${timestamp}.`).update(body).digest();
  // Every entry is compared, so that the time taken tells nothing.
  const matches = header(headers, "webhook-signature").split(" ").map((entry) => {
    const signature = Buffer.from(entry.replace(/^v1,/, ""), "base64");
    return signature.length === expected.length && timingSafeEqual(signature, expected);
  });
  if (!matches.includes(true)) throw new WebhookVerificationError("no signature matches");
  if (Math.abs(nowSeconds - Number(timestamp)) > TOLERANCE_SECONDS) {
    throw new WebhookVerificationError("the timestamp is more than five minutes away");
  }
  return JSON.parse(Buffer.from(body).toString("utf8")) as Event;
}
