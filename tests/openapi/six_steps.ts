// The six steps with the client that hey-api makes, in ./client. HUNDI_URL and HUNDI_API_KEY name a test server.
import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import * as api from "./client";
import { client } from "./client/client.gen";

const SECONDS_MAX = 60;
client.setConfig({ baseUrl: process.env.HUNDI_URL!, auth: process.env.HUNDI_API_KEY! });

const headers = () => ({ "Idempotency-Key": randomUUID() });

/** The object that a call answers; fails where it answers a refusal. */
async function answered<T>(call: Promise<{ data?: T; error?: unknown }>): Promise<NonNullable<T>> {
  const { data, error } = await call;
  assert.ok(data, JSON.stringify(error));
  return data;
}

async function wait<T extends { status: string }>(get: () => Promise<{ data?: T; error?: unknown }>, status: T["status"]): Promise<T> {
  const end = Date.now() + SECONDS_MAX * 1000;
  for (;;) {
    const found = await answered(get());
    if (found.status === status) return found;
    assert.ok(Date.now() < end, `stays ${found.status}`);
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}

async function main() {
  const beneficiary = await answered(api.createBeneficiary({
    headers: headers(),
    body: { name: "Asha Rao", account_number: "50100012345678", ifsc: "HDFC0000001", account_type: "nre",
      email: "asha@example.com", phone: "+919820012345" },
  }));
  await wait(() => api.getBeneficiary({ path: { id: beneficiary.id } }), "active");
  const sender = await answered(api.createSender({
    headers: headers(), body: { name: "Ravi Rao", type: "individual", country: "AE" },
  }));
  const lock = await answered(api.createQuoteLock({
    headers: headers(), body: { sell_currency: "USD", buy_currency: "INR", amount: "1000.00" },
  }));
  const transfer = await answered(api.createTransfer({
    headers: headers(),
    body: { sender_id: sender.id, beneficiary_id: beneficiary.id, quote_lock_id: lock.id, amount: "1000.00",
      currency: "USD", payout_currency: "INR", funding: { rail: "stablecoin", asset: "USDT", chain: "tron" } },
  }));
  const deposit = await answered(api.testDepositTransfer({ path: { id: transfer.id }, headers: headers(), body: {} }));
  assert.equal(deposit.transfer_id, transfer.id);
  const settled = await wait(() => api.getTransfer({ path: { id: transfer.id } }), "payout_settled");
  const reference = settled.payout?.unique_transaction_reference;
  assert.match(reference ?? "", /^TEST/);

  // A refusal is typed as one.
  const refused = await api.createSender({ headers: headers(), body: { name: "", type: "individual", country: "AE" } });
  assert.equal(refused.error?.errors[0]?.code, "parameter_empty");
  console.log(`TypeScript: ${settled.id} was paid with ${reference}`);
}

main().catch((error) => {
  console.error(error);
  process.exit(1);
});
