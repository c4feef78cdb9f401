"use strict";
// Runs docs.js on a page of plain objects: node docs_page.js DOCS_JS OPENAPI_JSON. Prints what was sent, as JSON.

const fs = require("node:fs");

class Node_ {
  constructor(name) {
    this.name = name;
    this.children = [];
    this.listeners = {};
    this.dataset = {};
    this.value = "";
    this.textContent = "";
  }
  append(...parts) { this.children.push(...parts); }
  replaceChildren(...parts) { this.children = parts; }
  addEventListener(kind, listener) { (this.listeners[kind] ||= []).push(listener); }
  async fire(kind) {
    for (const listener of this.listeners[kind] || []) await listener({ preventDefault() {} });
  }
  find(test) {
    if (test(this)) return this;
    for (const child of this.children) {
      const found = child instanceof Node_ ? child.find(test) : undefined;
      if (found) return found;
    }
    return undefined;
  }
}

const openapi = JSON.parse(fs.readFileSync(process.argv[3], "utf-8"));
const byId = {};
for (const id of ["key", "operations", "about", "contents", "credentials"]) byId[id] = new Node_(id);
const sent = [];
let refuse = false;
globalThis.document = {
  createElement: (name) => new Node_(name),
  getElementById: (id) => byId[id] || byId.operations.find((node) => node.id === id),
};
globalThis.location = { origin: "http://page" };
globalThis.fetch = async (address, options) => {
  if (address === "/openapi.json") return { json: async () => openapi };
  sent.push({ address, method: options.method, body: options.body, headers: options.headers });
  const value = address === "/v1/estimates" && !refuse ? { price: { epsilon: "0.25", delta: "0" } } : {};
  return { ok: !refuse, status: refuse ? 422 : 200, statusText: "", text: async () => JSON.stringify(value) };
};

async function main() {
  require(process.argv[2]);
  await new Promise((resolve) => setTimeout(resolve, 50));
  const steps = [];
  const step = async (name, work) => {
    sent.length = 0;
    await work();
    steps.push({ name, sent: [...sent], button: button.textContent, answer: answer.textContent });
  };
  const open = async (id) => {
    const box = byId.operations.find((node) => node.id === id);
    box.open = true;
    await box.fire("toggle");
    return box.find((node) => node.name === "form");
  };
  let form = await open("createQuery");
  let button = form.find((node) => node.name === "button");
  let body = form.find((node) => node.name === "textarea");
  let answer = form.children[form.children.length - 1];
  byId.key.value = "ngk_a_b";
  await step("first", () => form.fire("submit"));
  await step("second", () => form.fire("submit"));
  await step("third", () => form.fire("submit"));
  body.value = "{\"dataset\": \"other\"}";
  await form.fire("input");
  await step("edited", () => form.fire("submit"));
  body.value += " ";
  await step("edited in silence", () => form.fire("submit"));
  await step("twice at once", () => Promise.all([form.fire("submit"), form.fire("submit")]));
  refuse = true;
  await step("refused", () => form.fire("submit"));
  await step("refused again", () => form.fire("submit"));
  refuse = false;
  form = await open("createEstimate");
  button = form.find((node) => node.name === "button");
  answer = form.children[form.children.length - 1];
  await step("estimate", () => form.fire("submit"));
  console.log(JSON.stringify(steps));
}

main();
