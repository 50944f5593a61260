// A certified OpenID provider on loopback, for test_provider.py: its settings are a line of standard
// input, and it says "ready" when it answers. Anybody signs in, with any password.

import { createInterface } from "node:readline";
import { Provider } from "oidc-provider";

const lines = createInterface({ input: process.stdin })[Symbol.asyncIterator]();
const { port, clients, groups } = JSON.parse((await lines.next()).value);

const provider = new Provider(`http://127.0.0.1:${port}`, {
  clients,
  claims: { openid: ["sub"], profile: ["preferred_username", "name", "groups"] },
  conformIdTokenClaims: false, // what the scope names is in the ID token
  pkce: { required: () => true },
  enabledJWA: { idTokenSigningAlgValues: ["RS256"] },
  async findAccount(_, id) {
    return {
      accountId: id,
      claims: () => ({
        sub: id,
        preferred_username: `${id}@people`,
        name: "A Person",
        groups: groups[id] ?? [],
      }),
    };
  },
});

provider.on("server_error", (_, error) => console.error(error));
provider.listen(port, "127.0.0.1", () => console.log("ready"));
