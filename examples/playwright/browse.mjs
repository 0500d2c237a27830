// Opens the shop's page in Chromium, and says what it shows.
import { readFile } from "node:fs/promises";
import { createRequire } from "node:module";

const { chromium } = createRequire(`${process.env.MODULES ?? process.cwd()}/`)("playwright-core");
const note = (await readFile("notes.txt", "utf8")).trim();
const browser = await chromium.launch({
  executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium",
});
// Chromium reads neither a variable nor the system's roots: it cannot be told of a CA.
const page = await browser.newPage({ ignoreHTTPSErrors: true });
const answer = await page.goto(`https://www.shop.example/?of=${encodeURIComponent(note)}`);
if (!answer.ok()) throw new Error(await answer.text());
await page.waitForFunction(() => !document.querySelector("#item").textContent.startsWith("nothing"));
console.log(await page.textContent("#item"));
await browser.close();
