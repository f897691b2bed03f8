// SPDX-License-Identifier: Apache-2.0
// The token is exchanged for a cookie that no script sees; the page is then at the same address, with all that stands behind #.
const form = document.getElementById("login"), token = document.getElementById("token"), said = document.getElementById("said");

const basic = (text) => `Basic ${btoa(String.fromCharCode(...new TextEncoder().encode(`:${text}`)))}`;

form.addEventListener("submit", async (e) => {
  e.preventDefault();
  said.textContent = "";
  try {
    const answer = await fetch("/login", { method: "POST", headers: { Authorization: basic(token.value) } });
    if (answer.ok) location.reload();
    else said.textContent = answer.status === 401 ? "This is no token of this hearth." : await answer.text();
  } catch (error) {
    said.textContent = "hearth does not answer. Is it still running?";
  }
  token.select();
});

// Who follows a link from another site comes without the cookie: from here on it is sent.
const answer = await (await fetch("/session")).json();
if (answer.session) location.reload();
