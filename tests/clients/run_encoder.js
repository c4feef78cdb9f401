"use strict";
// node run_encoder.js LOCAL_ENCODER_JS: reads cases from standard input, prints reports, refusals and epsilons as JSON.

const fs = require("node:fs");
const path = require("node:path");
const client = require(path.resolve(process.argv[2]));

if (typeof globalThis.crypto === "undefined") {
  globalThis.crypto = require("node:crypto").webcrypto;
}

const input = JSON.parse(fs.readFileSync(0, "utf8"));

function source(hex) {
  const bytes = Buffer.from(hex, "hex");
  let at = 0;
  return (count) => {
    at += count;
    return bytes.subarray(at - count, at);
  };
}

function refuses(one) {
  try {
    client.encode(one.law, one.value);
  } catch (error) {
    return error instanceof RangeError;
  }
  return false;
}

const kept = new Map();
const storage = { getItem: (key) => (kept.has(key) ? kept.get(key) : null), setItem: (key, text) => kept.set(key, text) };
const wide = { encoding: "rappor", size: 64, ratio: "8589934592" };
const once = [1, 1, 2].map((value) => client.encodeOnce(storage, "c_1", wide, value));
const other = client.encodeOnce(storage, "c_2", wide, 1);

console.log(JSON.stringify({
  once: once,
  other: other,
  reports: input.cases.map((one) => client.encode(one.law, one.value, source(one.bytes))),
  epsilons: input.cases.map((one) => client.epsilonOf(one.law)),
  refused: input.refused.map(refuses),
  system: client.encode({ encoding: "subset_selection", size: 8, ratio: "8589934592" }, 3),
}));
