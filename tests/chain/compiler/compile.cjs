// Compiles the contracts of the chain tests and prints bytecode and selectors as JSON.
// Arguments: the folder with node_modules, the folder with the contracts.
const fs = require("fs");
const path = require("path");
const { createRequire } = require("module");

const [tools, contracts] = process.argv.slice(2).map((folder) => path.resolve(folder));
const solc = createRequire(path.join(tools, "package.json"))("solc");

const sources = {};
for (const name of fs.readdirSync(contracts).filter((name) => name.endsWith(".sol")).sort()) {
  sources[name] = { content: fs.readFileSync(path.join(contracts, name), "utf8") };
}
const input = {
  language: "Solidity",
  sources,
  settings: {
    evmVersion: "paris",
    optimizer: { enabled: true, runs: 200 },
    // No hash of the sources at the end of the bytecode, so that a comment changes nothing.
    metadata: { appendCBOR: false, bytecodeHash: "none" },
    outputSelection: { "*": { "*": ["evm.bytecode.object", "evm.methodIdentifiers"] } },
  },
};
const find = (name) => ({ contents: fs.readFileSync(path.join(tools, "node_modules", name), "utf8") });
const output = JSON.parse(solc.compile(JSON.stringify(input), { import: find }));
for (const fault of output.errors || []) console.error(fault.formattedMessage);
if ((output.errors || []).some((fault) => fault.severity === "error")) process.exit(1);

const made = { compiler: solc.version(), contracts: {} };
for (const [source, name] of [["Token.sol", "Token"], ["Multisend.sol", "Multisend"]]) {
  const { evm } = output.contracts[source][name];
  made.contracts[name] = { bytecode: evm.bytecode.object, selectors: evm.methodIdentifiers };
}
console.log(JSON.stringify(made, null, 1));
