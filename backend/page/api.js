// SPDX-License-Identifier: Apache-2.0
// Questions to the server (docs/api.md). Only this origin is ever asked.

// What went wrong, in words for the page.
export class ApiError extends Error {
  constructor(message, status) {
    super(message);
    this.status = status;
  }
}

const SLOW_MS = 300; // from then on the page says that it is asking

export function address(path, params) {
  const query = new URLSearchParams();
  for (const [key, value] of Object.entries(params || {})) if (value !== "" && value !== undefined && value !== null) query.set(key, value);
  const text = query.toString();
  return `/api/v1/${path}${text ? `?${text}` : ""}`;
}

export async function ask(url, signal) {
  const began = performance.now();
  let answer;
  try {
    // The whole address: that of the page may have a name and token in it, which fetch() refuses to take over.
    answer = await fetch(location.origin + url, { signal, headers: { Accept: "application/json" }, credentials: "same-origin" });
  } catch (e) {
    if (e.name === "AbortError") throw e;
    throw new ApiError("hearth does not answer. Is it still running?", 0);
  }
  if (answer.status === 401) location.reload(); // the session is over: to the form
  const text = await answer.text();
  let data = null;
  try {
    data = JSON.parse(text);
  } catch (e) {
    // told below
  }
  if (!answer.ok) throw new ApiError((data && data.error) || text.slice(0, 300) || `status ${answer.status}`, answer.status);
  if (!data) throw new ApiError(`the answer of ${url} is no JSON`, answer.status);
  return { data, url, took_ms: performance.now() - began, size_bytes: text.length };
}

// Asks one question at a time: a newer one ends the one before it. The same again is not asked unless forced. Of a new question
// with a smaller one, @first, that is asked and shown before it.
export class Loader {
  constructor(show, fail, busy) {
    Object.assign(this, { show, fail, busy: busy || (() => {}), url: "", last: null, abort: null });
  }

  async load(url, force, first) {
    if (url === this.url && !force) return;
    const isNew = url !== this.url;
    this.url = url;
    if (this.abort) this.abort.abort();
    const abort = (this.abort = new AbortController());
    const slow = setTimeout(() => this.busy(true), SLOW_MS);
    try {
      for (const next of isNew && first && first !== url ? [first, url] : [url]) {
        const answer = await ask(next, abort.signal);
        if (abort.signal.aborted) return;
        this.last = answer;
        this.show(answer.data, answer);
      }
    } catch (e) {
      if (e.name === "AbortError") return;
      if (!(e instanceof ApiError)) console.error(e);
      this.last = null;
      this.fail(e);
    } finally {
      clearTimeout(slow);
      if (abort === this.abort) this.busy(false);
    }
  }

  stop() {
    if (this.abort) this.abort.abort();
    this.url = "";
  }
}
