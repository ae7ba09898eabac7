// SPDX-License-Identifier: Apache-2.0
// Why a card is empty, and what fills it: flags are those of the tool that wrote the report.
import { h } from "../../common/dom";
import type { Report } from "./types";

type What = "spans" | "host" | "source" | "scopes" | "devices" | "variation";

export function missing(r: Report, what: What): HTMLElement {
  const has = (flag: string) => r.flags.includes(flag);
  const flag = (name: string) => h("code", {}, name);
  const texts: Record<What, (Node | string | null)[]> = {
    spans: ["No spans of the program: ", ...(r.tool === "ir-dump"
      ? ["the script opens no ", flag("scope"), " and no Trace, or none was recorded."]
      : has("--host") ? ["the host is a model. A recorded one has them: ", flag("--host=profile:FILE.xplane.pb"), "."] : ["the host is a model."])],
    host: has("--host") ? ["The host only calls. ", flag("--host=trace=12ms,compile=3s,input=5ms"), " gives it work, and ", flag("--host=profile:FILE.xplane.pb"), " that of a recorded run."] : ["The host has no other work."],
    source: has("--debug")
      ? ["No operation has a source line: none was recorded. ", flag("--debug"), " records them with the scopes, and is on for reports; operations outside of layers have none."]
      : ["No operation has a source line: the module has no ", flag("source_file"), " in its metadata. JAX and PyTorch/XLA (XLA_HLO_DEBUG=1) write it."],
    scopes: ["The program names no scopes: its operations have no ", flag("op_name"), has("--debug") ? [", which ", flag("--debug"), " records"] : ". Named scopes of JAX and Traces of PyTorch/XLA write them", "."].flat(),
    devices: ["One device: nothing is exchanged.", ...(has("--device") && r.tool === "hlo-run" ? [" A module with replicas or partitions, on as many chips (", flag(`--device=${r.device}:2x2`), "), has collectives."]
      : has("--replicas") ? [" ", flag("--replicas=4"), " simulates data-parallel training."] : [])],
    variation: has("--straggler") ? ["All devices have the same times; ", flag("--jitter"), " and ", flag("--straggler"), " vary them."] : ["All devices have the same times."],
  };
  return h("p", { class: "quiet missing" }, ...texts[what]);
}
