// A real OpenID Connect provider on a port of its own, which can be stopped, given new keys, and made to sign wrong tokens.
import { createServer } from "node:http";
import { createRequire } from "node:module";
import { resolve } from "node:path";
import { pathToFileURL } from "node:url";

const require = createRequire(resolve(process.env.HUNDI_TEST_PROVIDER_TOOLS, "package.json"));
const load = (name) => import(pathToFileURL(require.resolve(name)).href);
const { default: Provider } = await load("oidc-provider");
const jose = await load("jose");

export const CLIENT = "hundi console";
// With signs that have to be written otherwise in a form and in a header.
export const SECRET = "a secret+of%the:client/and more=of it";

const makeKey = async (alg, kid) => {
  const { privateKey } = await jose.generateKeyPair(alg, { extractable: true });
  return { ...(await jose.exportJWK(privateKey)), alg, kid, use: "sig" };
};
const makeKeys = (mark) => Promise.all(["RS256", "ES256", "EdDSA"].map((alg) => makeKey(alg, `${alg}-${mark}`)));

// What one types at the provider is its subject for the person; the address follows from the name in it.
export const subjectOf = (name) => `kx-${name}`;
const account = (subject) => {
  const name = subject.slice(3);
  return {
    accountId: subject,
    claims: () => ({
      sub: subject,
      email: name.startsWith("second-") ? `${name.slice(7)}@example.com` : `${name}@example.com`,
      email_verified: !name.startsWith("unverified"),
    }),
  };
};

export const start = async () => {
  const state = { keys: await makeKeys("first"), alg: "RS256", redirect: "", tamper: null, detour: null, instead: null, asked: [] };
  let answer = (_, reply) => reply.writeHead(503).end();
  const server = createServer((request, reply) => {
    state.asked.push(request.url.split("?")[0]);
    if (state.instead) return state.instead(request, reply);
    return answer(request, reply);
  });
  await new Promise((done) => server.listen(0, "127.0.0.1", done));
  const { port } = server.address();
  const issuer = `http://127.0.0.1:${port}`;

  // The provider as it is set up now; what it remembers is gone.
  const set = (changes = {}) => {
    Object.assign(state, changes);
    const provider = new Provider(issuer, {
      clients: [{
        client_id: CLIENT, client_secret: SECRET, redirect_uris: [state.redirect], id_token_signed_response_alg: state.alg,
      }],
      jwks: { keys: state.keys },
      claims: { openid: ["sub"], email: ["email", "email_verified"] },
      conformIdTokenClaims: false,
      pkce: { required: () => true },
      features: { devInteractions: { enabled: true } },
      cookies: { keys: ["of the checks"] },
      ttl: { Interaction: 600, Session: 600, Grant: 600, AccessToken: 600, IdToken: 600, AuthorizationCode: 60 },
      findAccount: (_, subject) => account(subject),
    });
    provider.use(async (context, next) => {
      await next();
      if (context.path === "/token" && context.body?.id_token && state.tamper) {
        context.body.id_token = await state.tamper(context.body.id_token);
      }
      const location = context.response.get("location") ?? "";
      if (state.detour && location.startsWith(state.redirect)) {
        const url = new URL(location);
        state.detour(url);
        context.set("location", url.href);
      }
    });
    answer = provider.callback();
  };
  // A token with other claims, or another head, signed with one of the provider's own keys unless another is given.
  const signAnew = (change) => async (token) => {
    const made = { claims: jose.decodeJwt(token), header: jose.decodeProtectedHeader(token), key: null };
    change(made);
    const own = state.keys.find((key) => key.alg === state.alg);
    return new jose.SignJWT(made.claims).setProtectedHeader(made.header).sign(await jose.importJWK(made.key ?? own, state.alg));
  };
  const unsigned = async (token) => new jose.UnsecuredJWT(jose.decodeJwt(token)).encode();
  return {
    issuer, state, set, signAnew, unsigned, makeKey, makeKeys,
    count: (path) => state.asked.filter((one) => one === path).length,
    stop: () => new Promise((done) => { server.close(done); server.closeAllConnections(); }),
    goOn: () => new Promise((done) => server.listen(port, "127.0.0.1", done)),
  };
};
