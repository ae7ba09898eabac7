// SPDX-License-Identifier: Apache-2.0
// A Chromium for the tests of pages.
import { existsSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { pathToFileURL } from "node:url";

export const flags = Object.fromEntries(process.argv.slice(2).map((argument) => argument.replace(/^--/, "").split("=", 2)));

// Exit code 77, which ctest counts as skipped.
const skip = (why) => {
  console.log(`skipped: ${why}`);
  process.exit(77);
};

// Returns a browser, and the source of axe-core.
export async function launch() {
  const executablePath = ["/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome"].find(existsSync);
  if (!executablePath) skip("no Chromium here (tools/install-deps installs it)");
  if (!existsSync(join(flags.page, "node_modules/playwright-core"))) skip("playwright-core is not installed: the build had no npm");
  const required = createRequire(pathToFileURL(join(flags.page, "x.js")));
  const { chromium } = required("playwright-core");
  // As root Chromium has no sandbox; without the rest it talks to the network on its own account.
  const browser = await chromium.launch({ executablePath, args: ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync"] });
  return { browser, axe: required("axe-core").source };
}

// Draws all charts of a page.
export async function drawAll(page) {
  for (const chart of await page.$$(".chart")) {
    await chart.scrollIntoViewIfNeeded();
    await page.waitForFunction((element) => element.dataset.drawn === "yes", chart);
  }
  await page.evaluate(() => scrollTo(0, 0));
}

// Returns the violations that axe-core finds, a line each.
export async function violations(page, axe) {
  await page.addScriptTag({ content: axe });
  return page.evaluate(async () => {
    const result = await globalThis.axe.run(document, { resultTypes: ["violations"] });
    return result.violations.map((v) => `${v.id}: ${v.help}: ${v.nodes.slice(0, 3).map((n) => n.html.slice(0, 120)).join(" | ")}`);
  });
}

// Returns the fraction of pixels that differ by more than 40 of 255 between two pictures, given as data URIs, at
// this width, and the difference of their heights as a fraction.
export const differ = (page, a, b, width) => page.evaluate(async ([first, second, wide]) => {
  const draw = async (uri) => {
    const image = new Image();
    image.src = uri;
    await image.decode();
    const canvas = document.createElement("canvas");
    canvas.width = wide;
    canvas.height = Math.max(1, Math.round((image.height / image.width) * wide));
    const context = canvas.getContext("2d", { willReadFrequently: true });
    context.imageSmoothingQuality = "high";
    context.drawImage(image, 0, 0, canvas.width, canvas.height);
    return { canvas, data: context.getImageData(0, 0, canvas.width, canvas.height).data };
  };
  const x = await draw(first), y = await draw(second);
  const size = Math.min(x.data.length, y.data.length);
  let other = 0;
  for (let k = 0; k < size; k += 4) other += Math.max(...[0, 1, 2].map((c) => Math.abs(x.data[k + c] - y.data[k + c]))) > 40 ? 1 : 0;
  return { part: other / (size / 4), height: Math.abs(x.canvas.height - y.canvas.height) / Math.max(x.canvas.height, y.canvas.height), small: x.canvas.toDataURL("image/png") };
}, [a, b, width]);
export const uri = (bytes) => `data:image/png;base64,${bytes.toString("base64")}`;

// Runs tests one by one and counts them.
export class Tests {
  passed = 0;
  failed = 0;
  async run(name, body) {
    try {
      await body();
      this.passed += 1;
      console.log(`ok      ${name}`);
    } catch (error) {
      this.failed += 1;
      console.log(`FAILED  ${name}\n${String(error.stack ?? error).replace(/^/gm, "  ")}`);
    }
  }
  finish() {
    console.log(`${this.passed} passed, ${this.failed} failed`);
    process.exit(this.failed ? 1 : 0);
  }
}
