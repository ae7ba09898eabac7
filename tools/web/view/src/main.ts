// SPDX-License-Identifier: Apache-2.0
// The page of hlo-view: the graph and nothing else.
import { h } from "../../common/dom";
import { explore } from "../../common/graph/explorer";

const host = h("main");
document.getElementById("page")!.replaceChildren(host);
void explore(host, { area: "", titled: true });
