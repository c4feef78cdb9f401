"use strict";
// Shows /openapi.json. Everything is set as text, never as markup; the key stays in the input field.

const METHODS = ["get", "post", "put", "patch", "delete"];

function element(name, text, className) {
  const node = document.createElement(name);
  if (text !== undefined) node.textContent = text;
  if (className) node.className = className;
  return node;
}

// Text in which words between backticks are code.
function prose(name, text) {
  const node = element(name);
  text.split(/`([^`]+)`/).forEach((part, place) => node.append(place % 2 ? element("code", part) : part));
  return node;
}

function resolve(document_, schema) {
  const found = /^#\/components\/schemas\/(.+)$/.exec(schema.$ref || "");
  return found ? document_.components.schemas[found[1]] : schema;
}

function typeText(document_, schema) {
  if (schema.$ref) return schema.$ref.split("/").pop();
  if (schema.anyOf) return schema.anyOf.map((part) => typeText(document_, part)).join(" or ");
  if (schema.enum) return schema.enum.map((value) => JSON.stringify(value)).join(" | ");
  if (schema.type === "array") return "list of " + typeText(document_, schema.items || {});
  return schema.const !== undefined ? JSON.stringify(schema.const) : schema.type || "any";
}

function schemaTable(document_, schema, seen) {
  const whole = resolve(document_, schema);
  const box = element("div");
  if (!whole.properties) {
    box.append(element("p", typeText(document_, schema)));
    return box;
  }
  const table = element("table");
  const head = element("tr");
  for (const title of ["field", "type", "meaning"]) head.append(element("th", title));
  table.append(head);
  for (const [name, part] of Object.entries(whole.properties)) {
    const row = element("tr");
    const cell = element("td");
    cell.append(element("code", name));
    if ((whole.required || []).includes(name)) cell.append(element("span", " (required)"));
    row.append(cell, element("td", typeText(document_, part)));
    const meaning = prose("td", part.description || "");
    const options = [part, ...(part.anyOf || []), part.items || {}];
    for (const option of options) {
      if (option.$ref && !seen.includes(option.$ref)) {
        meaning.append(schemaTable(document_, option, [...seen, option.$ref]));
      }
    }
    row.append(meaning);
    table.append(row);
  }
  box.append(table);
  return box;
}

function section(title, content) {
  const box = element("details");
  box.append(element("summary", title), content);
  return box;
}

// A fresh text for each question; crypto.randomUUID is not there without TLS.
function randomKey() {
  return Array.from(crypto.getRandomValues(new Uint8Array(16)), (byte) => byte.toString(16).padStart(2, "0")).join("");
}

function tryBox(document_, path, method, operation) {
  const box = element("form");
  const fields = [];
  for (const parameter of operation.parameters || []) {
    const label = element("label", parameter.name + " (" + parameter.in + ")");
    const input = element("input");
    label.append(input);
    box.append(label);
    fields.push([parameter, input]);
  }
  let body = null;
  const media = operation.requestBody && operation.requestBody.content["application/json"];
  if (media) {
    body = element("textarea");
    body.spellcheck = false;
    const examples = Object.values(media.examples || {});
    body.value = examples.length ? JSON.stringify(examples[0].value, null, 2) : "{}";
    const label = element("label", "body");
    label.append(body);
    box.append(label);
  }
  const command = element("pre");
  const answer = element("pre");
  answer.hidden = true;
  const request = () => {
    let address = path;
    const query = new URLSearchParams();
    const headers = {};
    for (const [parameter, input] of fields) {
      if (!input.value) continue;
      if (parameter.in === "path") address = address.replace("{" + parameter.name + "}", encodeURIComponent(input.value));
      if (parameter.in === "query") query.set(parameter.name, input.value);
      if (parameter.in === "header") headers[parameter.name] = input.value;
    }
    if (body) headers["Content-Type"] = "application/json";
    return { address: address + (query.size ? "?" + query : ""), headers };
  };
  const send = async (to, headers, content) => {
    const key = document.getElementById("key").value.trim();
    if (operation.security.length && key) headers["Authorization"] = "Bearer " + key;
    const response = await fetch(to, {
      method: method.toUpperCase(),
      headers,
      body: content,
      credentials: "omit",
    });
    const text = await response.text();
    let value = null;
    try { value = JSON.parse(text); } catch { /* not JSON: shown as it is */ }
    const shown = value === null ? text : JSON.stringify(value, null, 2);
    return { ok: response.ok, value, shown: response.status + " " + response.statusText + "\n\n" + shown };
  };
  // An operation that spends is sent in two steps: the price of exactly this body first, which costs nothing.
  const spends = operation["x-spends"] === true;
  const button = element("button", spends ? "Show the price" : "Send");
  let priced = null;
  let waiting = false;
  const price = async () => {
    const asked = body.value;
    const estimate = await send("/v1/estimates", { "Content-Type": "application/json" }, asked);
    if (!estimate.ok || body.value !== asked) return "No price, so nothing was spent.\n\n" + estimate.shown;
    priced = asked;
    const { epsilon, delta } = estimate.value.price;
    button.textContent = "Spend epsilon " + epsilon + " and send";
    return "This question costs epsilon " + epsilon + " and delta " + delta
      + ". Nothing is spent yet: the button spends it.\n\n" + estimate.shown;
  };
  const quote = (text) => "'" + text.replaceAll("'", "'\\''") + "'";
  const show = () => {
    const { address, headers } = request();
    const parts = ["curl -sS -X " + method.toUpperCase() + " " + quote(location.origin + address)];
    if (operation.security.length) parts.push('-H "Authorization: Bearer $NOISEGATE_KEY"');
    for (const [name, value] of Object.entries(headers)) parts.push("-H " + quote(name + ": " + value));
    if (body) parts.push("-d " + quote(body.value));
    command.textContent = parts.join(" \\\n  ");
  };
  box.addEventListener("input", () => {
    priced = null;
    if (spends) button.textContent = "Show the price";
    show();
  });
  box.addEventListener("submit", async (event) => {
    event.preventDefault();
    if (waiting) return;
    waiting = true;
    answer.hidden = false;
    answer.textContent = "Waiting.";
    try {
      if (spends && priced !== body.value) {
        answer.textContent = await price();
      } else {
        const { address, headers } = request();
        // Sent twice by accident, it is charged once.
        if (spends && !headers["Idempotency-Key"]) headers["Idempotency-Key"] = randomKey();
        priced = null;
        if (spends) button.textContent = "Show the price";
        answer.textContent = (await send(address, headers, body ? body.value : undefined)).shown;
      }
    } catch {
      answer.textContent = "The server could not be reached.";
    }
    waiting = false;
  });
  box.append(command, button, answer);
  show();
  return box;
}

function operationBox(document_, path, method, operation) {
  const box = element("details", undefined, "operation");
  box.id = operation.operationId;
  const summary = element("summary");
  summary.append(
    element("span", method.toUpperCase(), "method"),
    element("code", path),
    element("span", " " + (operation.summary || "")),
  );
  box.append(summary, prose("p", operation.description || ""));
  const roles = operation["x-roles"];
  box.append(element("p", roles ? "Roles: " + roles.join(", ") + "." : "Everybody, without a key.", "roles"));
  const media = operation.requestBody && operation.requestBody.content["application/json"];
  if (media) box.append(section("Request body", schemaTable(document_, media.schema, [media.schema.$ref])));
  const answers = element("div");
  for (const [status, response] of Object.entries(operation.responses)) {
    const inner = element("div");
    inner.append(prose("p", response.description || ""));
    for (const content of Object.values(response.content || {})) {
      if (content.example) inner.append(element("pre", JSON.stringify(content.example, null, 2)));
      if (content.schema) inner.append(schemaTable(document_, content.schema, [content.schema.$ref]));
    }
    answers.append(section(status, inner));
  }
  box.append(section("Answers", answers));
  box.addEventListener("toggle", () => {
    if (box.open && !box.dataset.ready) {
      box.dataset.ready = "yes";
      box.append(section("Try it", tryBox(document_, path, method, operation)));
    }
  });
  return box;
}

async function main() {
  const place = document.getElementById("operations");
  const response = await fetch("/openapi.json", { credentials: "omit" });
  const document_ = await response.json();
  const about = document_.info.description + "\n\nVersion " + document_.info.version + ".";
  document.getElementById("about").append(...about.split(/\n{2,}/).map((part) => prose("p", part)));
  const groups = new Map();
  for (const [path, item] of Object.entries(document_.paths)) {
    for (const method of METHODS) {
      if (!item[method]) continue;
      const tag = (item[method].tags || ["Other"])[0];
      if (!groups.has(tag)) groups.set(tag, []);
      groups.get(tag).push([path, method, item[method]]);
    }
  }
  place.replaceChildren();
  const list = element("ul");
  for (const [tag, operations] of groups) {
    place.append(element("h2", tag));
    for (const [path, method, operation] of operations) {
      place.append(operationBox(document_, path, method, operation));
      const link = element("a", operation.summary);
      link.href = "#" + operation.operationId;
      link.addEventListener("click", () => { document.getElementById(operation.operationId).open = true; });
      const entry = element("li");
      entry.append(link);
      list.append(entry);
    }
  }
  document.getElementById("contents").append(list);
}

document.getElementById("credentials").addEventListener("submit", (event) => event.preventDefault());
main().catch(() => { document.getElementById("operations").textContent = "The description of this API could not be read."; });
