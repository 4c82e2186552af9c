// Signing in: with a token, or as a user with a password.

import { credentials, signIn } from "../api.js";
import { html, useState } from "../html.js";

const WAYS = [["token", "Token"], ["password", "Password"]];

export function Login() {
  const [way, setWay] = useState("token");
  const failed = credentials.value !== null;
  const submit = (event) => {
    event.preventDefault();
    const { token, user, password } = Object.fromEntries(new FormData(event.target));
    if (way === "token") signIn(`Bearer ${token.trim()}`, true);
    else signIn(`Basic ${base64(`${user}:${password}`)}`, false);
  };
  return html`<main class="login">
    <form class="card" onSubmit=${submit}>
      <h1>tandemq</h1>
      <div class="tabs" role="group" aria-label="How to sign in">
        ${WAYS.map(([name, label]) => html`<button type="button" aria-pressed=${way === name}
          onClick=${() => setWay(name)}>${label}</button>`)}
      </div>
      ${way === "token"
        ? html`<label key="token">Token <input name="token" type="password" required autofocus
            autocomplete="current-password" /></label>`
        : html`<label key="user">User <input name="user" required autofocus autocomplete="username" /></label>
            <label key="password">Password <input name="password" type="password" required
              autocomplete="current-password" /></label>`}
      <p class="fault" role="alert">${failed ? "The server did not accept this." : ""}</p>
      <button class="primary">Sign in</button>
      <p class="muted">${way === "token"
        ? "The token is kept until this tab is closed."
        : "The password is kept until this page is reloaded."}</p>
    </form>
  </main>`;
}

const base64 = (text) => btoa(String.fromCharCode(...new TextEncoder().encode(text)));
